// One level of the tree: a map whose areas are destinations, or a table; and the node itself.
import { fill, h, keyed } from "./dom.js";
import { table } from "./table.js";
import { squarify } from "./treemap.js";
import { address, copyAddress, figure, many, moment, placementAddress, proofAddress, share, sign, since, todo, TONES, treeAddress } from "./words.js";

export const NAME = "tree";
const PAGE = 200;
const REST = " rest";
export const asked = ({ path, skip, search }) => Object.fromEntries(Object.entries({ path, skip, search }).filter(([, value]) => value));

export function draw(words, go) {
  const { path } = words;
  const link = (more) => treeAddress(path, { as: words.as, search: words.search, skip: words.skip, ...more });
  const asTable = words.as === "table";
  const title = path === "/" ? "Tree" : path;
  const head = h("h1", {}, title), crumbs = h("p", { class: "crumbs" }), figures = h("dl", { class: "figures-list" }), notes = h("div"), said = h("p", { class: "quiet" });
  const map = h("div", { class: "map", role: "list", "aria-label": "Nodes by destinations" });
  const rows = table("Nodes of this level, the worst first", [
    ["Node", (row) => [sign(row.tone), h("a", { href: treeAddress(row.id, { as: "table" }) }, row.name)], "name"],
    ["State", (row) => state(row)],
    ["Destinations", (row) => (row.role === "edge" ? "" : figure(row.edges)), "number"],
    ["Delivered", (row) => share(row.delivered)],
    ["Working", (row) => share(row.working)],
    ["Amiss", (row) => amiss(row) || h("span", { class: "quiet" }, "–")],
    ["Mail not read", (row) => figure(row.lag), "number"],
  ], () => (words.search ? `No node here has "${words.search}" in its name.` : "No nodes below."));
  const search = h("input", { type: "search", "aria-label": "Names with", placeholder: "names with …", value: words.search ?? "", onchange: (event) => go(link({ search: event.target.value.trim(), skip: "" })) });
  const pages = h("p", { class: "pages" });
  const wanted = h("input", { type: "search", "aria-label": "A copy at this edge", placeholder: "deployments.apps/shop/web", size: "34", onchange: (event) => { if (event.target.value.trim()) go(copyAddress(path, event.target.value.trim())); } });
  const copies = h("p", { hidden: true }, h("label", {}, "See the copy of an object here: ", wanted));
  const more = h("p", { class: "pages" }, h("a", { href: address("/events", { search: path === "/" ? "" : path }) }, path === "/" ? "What happened lately" : "What happened here"), h("a", { href: proofAddress(path) }, "Who signed what it has"));
  const level = h("section", {},
    h("div", { class: "toolbar" }, h("div", { class: "switch", role: "group", "aria-label": "Shown as" },
      h("a", { href: link({ as: "" }), "aria-current": asTable ? null : "true" }, "Map"), h("a", { href: link({ as: "table" }), "aria-current": asTable ? "true" : null }, "Table")), search),
    asTable ? rows.element : [map, h("p", { class: "legend" }, Object.entries(TONES).map(([tone, [, word]]) => h("span", { class: "tally" }, sign(tone), word)))], pages);
  let last = null;
  const observer = new ResizeObserver(() => { if (last) lay(map, last); });
  if (!asTable) observer.observe(map);
  return {
    title,
    element: h("div", {}, crumbs, head, notes, figures, said, copies, more, level),
    update(view) {
      const { node } = view;
      fill(head, sign(node.tone), title);
      fill(crumbs, steps(path, words));
      fill(figures, facts(node));
      fill(notes, view.held.map((it) => h("div", { class: "note held" }, h("p", {}, h("a", { href: placementAddress(it.of) }, it.of), ` held: ${it.said} `, since(it.sinceMs)), it.remedy ? h("p", {}, todo(it.remedy)) : "")),
        node.children && !view.answers ? h("p", { class: "note away" }, `${path} does not answer now, so how its children are is not known. Their names and numbers are of the signed inventory.`) : "");
      level.hidden = !node.children;
      copies.hidden = node.role !== "edge";
      fill(said, node.children ? levelText(view, words) : "");
      last = view;
      if (asTable) rows.update(view.rows);
      else lay(map, view);
      const skip = view.skip;
      fill(pages, skip > 0 ? h("a", { href: link({ skip: skip > PAGE ? String(skip - PAGE) : "" }) }, "Previous page") : "", " ",
        skip + view.rows.length < view.count ? h("a", { href: link({ skip: String(skip + PAGE) }) }, "Next page") : "");
    },
  };
}

function levelText(view, words) {
  const shown = view.rows.length, at = view.skip;
  const which = view.count > shown ? `${figure(at + 1)} to ${figure(at + shown)} of ${many(view.count, "node")}, the worst first` : many(view.count, "node");
  const exact = view.rows.every((row) => row.delivered.exact);
  return `${which}${words.search ? ` with "${words.search}"` : ""}. Delivered and working count each placement at each destination${exact ? ", exactly" : "; at least, where it says so"}.`;
}

function facts(node) {
  const pair = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
  return [
    pair("State", state(node)), node.role === "edge" ? pair("Role", "edge") : pair("Destinations", figure(node.edges)),
    node.target ? pair("SyncTarget", node.target) : "", pair("Delivered", share(node.delivered)), pair("Working", share(node.working)),
    node.role === "edge" && node.objects !== null && node.objects !== undefined ? pair("Objects", figure(node.objects)) : "",
    node.id === "/" ? "" : pair("Mail not read", figure(node.lag)),
  ];
}

function state(node) {
  return [node.state, " ", since(node.silentSinceMs), node.maintenanceUntilMs ? `, maintenance until ${moment(node.maintenanceUntilMs)}${node.maintenanceReason ? `: ${node.maintenanceReason}` : ""}` : ""];
}

function amiss(row) {
  return [[row.failing, "failing"], [row.degraded, "degraded"], [row.unreachable, "unreachable"]].filter(([count]) => count).map(([count, word]) => `${figure(count)} ${word}`).join(", ");
}

/** Tiles by size; what is on other pages is one tile, so that areas stay true. */
function lay(map, view) {
  const tiles = view.rows.map((row) => ({ row, weight: Math.max(1, row.edges) })).sort((a, b) => b.weight - a.weight || (a.row.id < b.row.id ? -1 : 1));
  const rest = view.count - view.rows.length;
  const shown = tiles.reduce((sum, tile) => sum + tile.row.edges, 0);
  if (rest > 0) {
    tiles.push({ row: { id: REST, rest, edges: Math.max(0, view.node.edges - shown) }, weight: Math.max(1, view.node.edges - shown) });
    tiles.sort((a, b) => b.weight - a.weight);
  }
  const { width, height } = map.getBoundingClientRect();
  if (!width || !height) return;
  const places = squarify(tiles.map((tile) => tile.weight), width / height);
  keyed(map, tiles.map((tile) => tile.row), tileOf);
  tiles.forEach((_, at) => {
    const element = map.children[at], place = places[at];
    for (const [name, value] of [["left", place.x], ["top", place.y], ["width", place.w], ["height", place.h]]) element.style.setProperty(name, `${100 * value}%`);
    const w = place.w * width, high = place.h * height;
    element.classList.toggle("small", w < 110 || high < 62);
    element.classList.toggle("tiny", w < 52 || high < 24);
  });
}

function tileOf(row) {
  if (row.id === REST) return h("div", { class: "tile none", role: "listitem" }, h("span", { class: "box" }, h("b", {}, `${figure(row.rest)} more nodes`), h("span", { class: "more" }, "on other pages")));
  const what = row.children || row.role !== "edge" ? many(row.edges, "destination") : "edge";
  const trouble = amiss(row);
  const delivered = row.delivered.of ? `${row.delivered.exact ? "" : "at least "}${figure(row.delivered.n)} of ${figure(row.delivered.of)} delivered` : "";
  const title = [`${row.id}: ${TONES[row.tone][1]}`, row.state, what, delivered, trouble].filter(Boolean).join("; ");
  return h("div", { class: `tile ${row.tone}`, role: "listitem", "data-row": true }, h("a", { class: "box", href: treeAddress(row.id), title },
    h("span", { class: "line" }, sign(row.tone), h("b", {}, row.name)), h("span", { class: "more" }, what), h("span", { class: "more" }, trouble || delivered), h("span", { class: "more" }, row.silentSinceMs ? [`${row.state} `, since(row.silentSinceMs)] : "")));
}

function steps(path, words) {
  const names = path.split("/").filter(Boolean);
  return ["centre", ...names].slice(0, -1).map((said, index) => {
    const to = `/${names.slice(0, index).join("/")}`;
    return [h("a", { href: treeAddress(to, { as: words.as }), "data-up": index === names.length - 1 }, said), " / "];
  });
}
