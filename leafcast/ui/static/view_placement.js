// One placement: what is wrong, grouped by cause, and each tier, the worst first.
import { fill, h } from "./dom.js";
import { table } from "./table.js";
import { isAmiss } from "./view_placements.js";
import { copyAddress, figure, many, placementAddress, share, sign, since, todo, traceAddress, treeAddress } from "./words.js";

export const NAME = "placement";
export const asked = ({ name, at, after, amiss }) => Object.fromEntries(Object.entries({ name, at, after, amiss }).filter(([, value]) => value));

export function draw(words, go) {
  const { name, at = "/" } = words;
  const link = (more) => placementAddress(name, { at: at === "/" ? "" : at, amiss: words.amiss, ...more });
  const head = h("h1", {}, name);
  const headline = h("p", { class: "headline" });
  const notes = h("div"), figures = h("dl", { class: "figures-list" }), faults = h("section"), held = h("section"), conditions = h("section");
  const where = h("p", { class: "crumbs" });
  const only = h("input", { type: "checkbox", id: "amiss", checked: Boolean(words.amiss), onchange: (event) => go(link({ amiss: event.target.checked ? "1" : "", after: "" })) });
  const rows = table("Nodes of this tier, the worst first", [
    ["Node", (row) => [sign(row.tone), row.role === "edge" ? h("a", { href: treeAddress(row.id) }, row.name) : h("a", { href: placementAddress(name, { at: row.id, amiss: words.amiss }) }, row.name)], "name"],
    ["State", (row) => [row.state, " ", since(row.silentSinceMs)]],
    ["Delivered", (row) => (row.role === "edge" ? word(row.states, "synced") : share(row.delivered))],
    ["Working", (row) => (row.role === "edge" ? word(row.health, "healthy") : share(row.working))],
    ["Wave", (row) => row.wave || h("span", { class: "quiet" }, "–")],
    ["Worst", (row) => row.worst, "wide"],
  ], () => (words.amiss ? "No destination here has anything amiss." : words.after ? "Nothing more." : "No node below counts this placement."));
  const pages = h("p", { class: "pages" });
  const exact = h("p", { class: "quiet" });
  return {
    title: name,
    element: h("div", {}, h("p", { class: "crumbs" }, h("a", { href: "/placements", "data-up": at === "/" }, "Placements")), head, headline, h("p", {}, h("a", { href: traceAddress(name) }, "Where the time of its last change went")), notes, held, figures, faults, conditions,
      h("h2", {}, "By tier"), where, h("p", {}, h("label", {}, only, " only destinations with something amiss")), exact, rows.element, pages),
    update(view) {
      const { head: of } = view;
      fill(head, sign(of.tone), of.id);
      fill(headline, of.headline);
      fill(notes, of.problems.map((text) => h("p", { class: "note bad" }, text)), of.notes.map((text) => h("p", { class: "note held" }, text)));
      fill(held, of.held.length ? [h("h2", {}, "Held"), of.held.map((it) => h("div", { class: "note held" }, h("p", {}, it.said, " ", since(it.sinceMs)), it.remedy ? h("p", {}, todo(it.remedy)) : ""))] : []);
      fill(figures,
        pair("Objects", figure(of.selected)), pair("Delivered", share(of.delivered)), pair("Working", share(of.working)),
        pair("Delivery", counts(of.states)), pair("Health", counts(of.health)),
        of.neverJoined ? pair("Never joined", figure(of.neverJoined)) : "",
        of.waitsFor.length ? pair("Waits for answers of", of.waitsFor.join(", ")) : "",
        of.kept ? pair("Copies kept that nothing wants", figure(of.kept)) : "",
        of.repaired ? pair("Put right at edges", many(of.repaired, "time")) : "",
        of.silent.length ? pair("Silent", h("ul", { class: "plain" }, of.silent.map((it) => h("li", {}, h("a", { href: treeAddress(it.id) }, it.id), ` ${it.state} `, since(it.sinceMs), it.destinations > 1 ? `, ${many(it.destinations, "destination")}` : "")))) : "");
      fill(faults, of.faults.length ? [h("h2", {}, "What is wrong, by cause"), h("ol", { class: "faults" }, of.faults.map(fault))] : []);
      fill(conditions, of.conditions.length ? h("details", { open: conditions.querySelector("details")?.open ?? isUntold(of) }, h("summary", {}, `Conditions: ${of.conditions.filter((it) => !isAmiss(it)).length} of ${of.conditions.length} as they should be`),
        h("ul", { class: "plain" }, of.conditions.map((it) => h("li", {}, sign(isAmiss(it) ? "busy" : "good"), h("b", {}, `${it.id} is ${it.status}`), it.reason ? `: ${it.reason}` : "", " ", since(it.sinceMs), it.message ? h("br") : "", it.message)))) : []);
      fill(where, steps(name, view.at, words));
      fill(exact, view.known ? (view.exact ? "Counts of this tier are exact." : "Counts of this tier are at least: not all of it has answered.") : `${view.at} does not hold this placement, or not yet.`);
      rows.update(view.rows);
      fill(pages, words.after ? h("a", { href: link({ after: "" }) }, "First page") : "", " ", view.next ? h("a", { href: link({ after: view.next }) }, "Next page") : "",
        view.next || words.after ? h("span", { class: "quiet" }, " Pages are in the order of names; each shows its worst first.") : "");
    },
  };
}

/** Whether conditions alone say what is amiss. */
const isUntold = (of) => of.conditions.some(isAmiss) && ![of.faults, of.held, of.problems, of.silent].some((it) => it.length);

function fault(it) {
  return h("li", { class: `note ${it.tone}` }, h("p", {}, sign(it.tone), h("b", {}, it.reason)),
    h("p", { class: "quiet" }, `${it.objects || "no object"}; at ${many(it.count, "place")}, for example `, h("a", { href: it.exampleObject.includes("/") ? copyAddress(it.example, it.exampleObject) : treeAddress(it.example) }, it.exampleObject.includes("/") ? `${it.exampleObject} at ${it.example}` : it.example)),
    h("p", {}, it.cause), h("p", {}, todo(it.remedy)));
}

const pair = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
const counts = (listed) => Object.entries(listed).map(([state, count]) => `${figure(count)} ${state}`).join(", ") || "–";

function word(counted, well) {
  const said = Object.keys(counted)[0] ?? "not known yet";
  return said === well ? h("span", { class: "text good" }, said) : said;
}

/** The way from the centre to the node whose children are shown. */
function steps(name, at, words) {
  const names = at.split("/").filter(Boolean);
  const up = names.length ? `/${names.slice(0, -1).join("/")}` : "";
  return ["/", ...names].map((part, index) => {
    const path = `/${names.slice(0, index).join("/")}`;
    const last = index === names.length;
    const said = index === 0 ? "centre" : part;
    return [index ? " / " : "", last ? h("b", {}, said) : h("a", { href: placementAddress(name, { at: path === "/" ? "" : path, amiss: words.amiss }), "data-up": path === up }, said)];
  });
}
