// Where the time of one change went: from the apply down to the edge, and back as a count.
import { fill, h } from "./dom.js";
import { table } from "./table.js";
import { command, nodeName, placementAddress, sign, traceAddress, treeAddress } from "./words.js";

export const NAME = "trace";
export const asked = ({ name, at, generation }) => Object.fromEntries(Object.entries({ name, at, generation }).filter(([, value]) => value));

export function draw({ name, at }) {
  const head = h("h1", {}, `Trace of ${name}`), said = h("p", { class: "headline" }), chosen = h("p", { class: "quiet" }), others = h("p"), same = h("span"), clocks = h("ul", { class: "plain quiet" });
  const rows = table("Stages of this change, down the tree and back up", [
    ["Node", (row) => h("a", { href: treeAddress(row.path) }, nodeName(row.path)), "name"],
    ["Stage", (row) => [row.tone === "none" ? "" : sign(row.tone), row.stage], "wide"],
    ["At", (row) => row.at, "number"],
    ["Took", (row) => row.took, "number"],
    ["When", (row) => (row.share === null ? "" : h("span", { class: "stage", "aria-hidden": "true" }, h("span", { style: { "margin-left": `${Math.min(row.from, 99)}%`, width: `${row.share}%` } }))), "wide"],
  ], () => "No node noted anything of it.");
  return {
    title: `Trace of ${name}`,
    element: h("div", {}, h("p", { class: "crumbs" }, h("a", { href: placementAddress(name), "data-up": true }, name)), head, said, chosen, others, rows.element, clocks,
      h("p", { class: "quiet" }, "Each node notes the last 512 changes, until it is started anew. Times are on the clock of the centre. ", same)),
    update(view) {
      fill(head, sign(view.tone), `Trace of ${view.placement}, generation ${view.generation}`);
      fill(said, view.headline);
      fill(chosen, `This is ${view.chosen}.`);
      fill(others, view.generations.length > 1 ? ["Changes that the centre noted: ", view.generations.map((it) => [it === view.generation ? h("b", {}, it) : h("a", { href: traceAddress(name, { at, generation: it }) }, it), " "])] : "");
      rows.update(view.rows);
      // Of what the tree said, and not of the address: somebody else may have made that.
      fill(same, command(`leafcast trace ${view.placement} --generation ${view.generation} --at ${view.path}`));
      fill(clocks, view.clocks.map((text) => h("li", {}, text)));
    },
  };
}
