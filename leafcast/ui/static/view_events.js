// What happened lately, the newest first.
import { fill, h } from "./dom.js";
import { table } from "./table.js";
import { address, figure, moment, nodeName, placementAddress, treeAddress } from "./words.js";

export const NAME = "events";
export const asked = ({ search, warnings }) => Object.fromEntries(Object.entries({ search, warnings }).filter(([, value]) => value));

export function draw(words, go) {
  const link = (more) => address("/events", { search: words.search, warnings: words.warnings, ...more });
  const search = h("input", { type: "search", "aria-label": "Events with", placeholder: "with …", value: words.search ?? "", onchange: (event) => go(link({ search: event.target.value.trim() })) });
  const only = h("input", { type: "checkbox", id: "warnings", checked: Boolean(words.warnings), onchange: (event) => go(link({ warnings: event.target.checked ? "1" : "" })) });
  const said = h("p", { class: "quiet" });
  const rows = table("Events, the newest first", [
    ["When", (row) => h("time", { datetime: new Date(row.lastMs).toISOString(), title: `first ${moment(row.firstMs)}` }, moment(row.lastMs)), "when"],
    ["Reason", (row) => (row.type === "Warning" ? h("span", { class: "text away" }, "! ", row.reason) : row.reason), "when"],
    ["Node", (row) => h("a", { href: treeAddress(row.node) }, nodeName(row.node)), "name"],
    ["About", (row) => about(row.object), "name"],
    ["Message", (row) => [row.message, row.count > 1 ? h("span", { class: "quiet" }, ` (${figure(row.count)} times)`) : ""], "wide"],
  ], () => (words.search || words.warnings ? "No event fits." : "Nothing happened lately."));
  return {
    title: "Events",
    element: h("div", {}, h("h1", {}, "Events"), h("div", { class: "toolbar" }, search, h("label", {}, only, " warnings only")), said, rows.element),
    update(view) {
      fill(said, view.count > view.rows.length ? `The newest ${figure(view.rows.length)} of ${figure(view.count)}.` : "", " Equal events are one, with how often they happened.");
      rows.update(view.rows);
    },
  };
}

function about(object) {
  if (object.startsWith("/")) return h("a", { href: treeAddress(object) }, nodeName(object));
  const [kind, name] = object.split("/");
  const short = { edgeplacement: "epl", bindingpolicy: "bp" }[kind];
  return short && name ? h("a", { href: placementAddress(`${short}/${name}`) }, `${short}/${name}`) : object || h("span", { class: "quiet" }, "–");
}
