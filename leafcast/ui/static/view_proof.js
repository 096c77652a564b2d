// Who signed what a node has: from the root keys by the keys in force to each placement, or to one object.
import { fill, h } from "./dom.js";
import { table } from "./table.js";
import { command, copyAddress, figure, placementAddress, sign, treeAddress } from "./words.js";

export const NAME = "proof";
export const asked = ({ at, placement, object }) => ({ at, ...(placement ? { placement } : {}), ...(object ? { object } : {}) });
const short = (text, shown = 16) => h("code", { title: text }, text.length > shown ? `${text.slice(0, shown)}…` : text);

export function draw({ at, placement, object }) {
  const name = at === "/" ? "the centre" : at, title = object ? `Proof of ${object}` : `Proof of ${name}`;
  const head = h("h1", {}, title), said = h("p", { class: "headline" }), roots = h("li"), keys = h("li"), leads = h("li", { hidden: true }), elsewhere = h("section"), rest = h("p", { class: "quiet" });
  const rows = table("Placements that it has, and who signed them", [
    ["Placement", (row) => [sign(row.tone), h("a", { href: placementAddress(row.placement) }, row.placement)], "name"],
    ["Generation", (row) => row.generation, "number"],
    ["Signed by", (row) => short(row.key)],
    ["Hash of what is signed", (row) => short(row.payload)],
    ["Checked", (row) => row.refused || h("span", { class: "text good" }, "the signature fits"), "wide"],
  ], () => (object ? "None delivers it there now." : placement ? `It has no ${placement}.` : "It has no placement."));
  const crumbs = [h("a", { href: treeAddress(at), "data-up": object ? null : true }, name), placement ? [" / ", placement] : "",
    object ? [" / ", h("a", { href: copyAddress(at, object), "data-up": true }, object)] : ""];
  return {
    title,
    element: h("div", {}, h("p", { class: "crumbs" }, crumbs), head, said,
      h("p", { class: "quiet" }, "The node itself showed these messages, and they were checked here."),
      h("h2", {}, "The chain"), h("ol", { class: "chain" }, roots, keys, h("li", {}, h("b", {}, "Placements"), object ? " that deliver it, and that the keys signed:" : " that the keys signed:", rows.element, rest), leads), elsewhere),
    update(view) {
      fill(head, sign(view.tone), title);
      fill(said, view.headline);
      fill(roots, h("b", {}, "Root keys"), `: ${figure(view.threshold)} of ${figure(view.roots.length)} have to sign which keys are in force.`,
        h("ul", { class: "plain" }, view.roots.map((it) => h("li", {}, sign(it.tone), short(it.id, 40), it.tone === "good" ? " signed; " : " did not sign; ", "public key ", short(it.key)))),
        view.refused ? h("p", { class: "note bad" }, view.refused) : "");
      fill(keys, h("b", {}, "Keys in force"), view.generation === null ? "" : `, by generation ${view.generation} of that message. ${view.keys.length ? "These signed something below:" : "None of them signed anything below."}`,
        h("ul", { class: "plain" }, view.keys.map((it) => h("li", {}, sign(it.tone), short(it.id, 40), it.kinds.length ? ` may sign ${it.kinds.join(", ")} at and below ${it.path}` : " is revoked"))));
      rows.update(view.rows);
      const lists = view.rows.filter((row) => row.object);
      leads.hidden = !lists.length;
      fill(leads, h("b", {}, "The object"), ", as what is signed names it:", lists.map((row) => leading(row, view.isSecret)));
      fill(rest, view.more ? `The first ${figure(view.rows.length)} are shown; the command has them all.` : "");
      fill(elsewhere, view.commands.length ? checking(view, lists) : "");
    },
  };
}

/** By which hashes a placement leads to the object. */
function leading({ placement, refused, object }, isSecret) {
  const said = [h("dt", {}, "By"), h("dd", {}, placement), h("dt", {}, "Manifest"), h("dd", {}, h("code", {}, object.manifest)),
    h("dt", {}, "Hash of the object"), h("dd", {}, object.address ? h("code", {}, object.address) : isSecret ? "It is not shown: by the hash of a Secret in clear its content can be guessed." : "–", object.customized ? " of what each cluster customizes" : "")];
  if (object.source) said.push(h("dt", {}, "At the centre"), h("dd", {}, object.source));
  if (object.sealed) said.push(h("dt", {}, "Sealed"), h("dd", {}, object.closed ? "The centre has no key that opens the manifest: that the hash is of this object is the node's word." : "The manifest tells nobody else whose hash this is. The centre opened it with the placement's key, which does not come to this page."));
  return h("div", {}, h("dl", { class: "leads" }, said), refused ? h("p", { class: "note bad" }, refused) : "");
}

function checking(view, lists) {
  const sealed = lists.some((row) => row.object.sealed);
  return [h("h2", {}, "Check it elsewhere"),
    h("p", {}, "Without this tree, and without trust in this page: write it to a file, and check that on any machine with a public root key that you have from its holder.",
      view.object ? " MANIFEST.yaml is yours: that command says whether it is what was signed." : ""),
    view.commands.map((text) => h("p", {}, command(text))),
    sealed ? h("p", { class: "note held" }, "This tree seals what it sends, so the file has the placement's key: who gets it can read what the placement delivered. Have another key afterwards: ", h("code", {}, "leafcast keys rotate placement NAME")) : "",
    h("p", { class: "quiet" }, "A proof says who signed, and not that there is nothing newer: compare the generations.")];
}
