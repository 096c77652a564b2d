// Who signed what a node has: from the root keys by the keys in force to each placement.
import { fill, h } from "./dom.js";
import { table } from "./table.js";
import { command, figure, placementAddress, sign, treeAddress } from "./words.js";

export const NAME = "proof";
export const asked = ({ at, placement }) => (placement ? { at, placement } : { at });
const short = (text, shown = 16) => h("code", { title: text }, text.length > shown ? `${text.slice(0, shown)}…` : text);

export function draw({ at, placement }) {
  const name = at === "/" ? "the centre" : at, title = `Proof of ${name}`;
  const head = h("h1", {}, title), said = h("p", { class: "headline" }), roots = h("li"), keys = h("li"), elsewhere = h("section"), rest = h("p", { class: "quiet" });
  const rows = table("Placements that it has, and who signed them", [
    ["Placement", (row) => [sign(row.tone), h("a", { href: placementAddress(row.placement) }, row.placement)], "name"],
    ["Generation", (row) => figure(row.generation), "number"],
    ["Signed by", (row) => short(row.key)],
    ["Hash of what is signed", (row) => short(row.payload)],
    ["Checked", (row) => row.refused || h("span", { class: "text good" }, "the signature fits"), "wide"],
  ], () => (placement ? `It has no ${placement}.` : "It has no placement."));
  return {
    title,
    element: h("div", {}, h("p", { class: "crumbs" }, h("a", { href: treeAddress(at), "data-up": true }, name), placement ? [" / ", placement] : ""), head, said,
      h("p", { class: "quiet" }, "The node itself showed these messages, and they were checked here."),
      h("h2", {}, "The chain"), h("ol", { class: "chain" }, roots, keys, h("li", {}, h("b", {}, "Placements"), " that the keys signed:", rows.element, rest)), elsewhere),
    update(view) {
      fill(head, sign(view.tone), title);
      fill(said, view.headline);
      fill(roots, h("b", {}, "Root keys"), `: ${figure(view.threshold)} of ${figure(view.roots.length)} have to sign which keys are in force.`,
        h("ul", { class: "plain" }, view.roots.map((it) => h("li", {}, sign(it.tone), short(it.id, 40), it.tone === "good" ? " signed; " : " did not sign; ", "public key ", short(it.key)))),
        view.refused ? h("p", { class: "note bad" }, view.refused) : "");
      fill(keys, h("b", {}, "Keys in force"), view.generation === null ? "" : `, by generation ${figure(view.generation)} of that message. These signed something below:`,
        h("ul", { class: "plain" }, view.keys.map((it) => h("li", {}, sign(it.tone), short(it.id, 40), it.kinds.length ? ` may sign ${it.kinds.join(", ")} at and below ${it.path}` : " is revoked"))));
      rows.update(view.rows);
      fill(rest, view.more ? `The first ${figure(view.rows.length)} are shown; the command has them all.` : "");
      fill(elsewhere, h("h2", {}, "Check it elsewhere"), h("p", {}, "Without this tree, and without trust in this page: write it to a file, and check that on any machine with a public root key that you have from its holder."),
        view.commands.map((text) => h("p", {}, command(text))), h("p", { class: "quiet" }, "A proof says who signed, and not that there is nothing newer: compare the generations."));
    },
  };
}
