// One copy at an edge: as it is meant, as it is there, and in which fields these differ.
import { fill, h, keyed } from "./dom.js";
import { command, placementAddress, proofAddress, sign, since, todo, treeAddress } from "./words.js";

export const NAME = "copy";
export const asked = ({ at, object }) => ({ at, object: object ?? "" });

export function draw({ at, object = "" }) {
  const head = h("h1", {}, object), said = h("p", { class: "headline" }), notes = h("div"), why = h("section"), differs = h("section"), rules = h("section");
  const meant = h("pre", { tabindex: "0", "aria-label": "As it is meant" }), live = h("pre", { tabindex: "0", "aria-label": "As it is there" });
  const more = h("p"), cut = h("div");
  return {
    title: object,
    element: h("div", {}, h("p", { class: "crumbs" }, h("a", { href: treeAddress(at), "data-up": true }, at)), head, said, notes, why, differs,
      h("div", { class: "panes" }, h("section", {}, h("h2", {}, "Meant"), meant), h("section", {}, h("h2", {}, "There"), live)), cut, rules,
      more, h("p", {}, h("a", { href: proofAddress(at, { object }) }, "Who signed it"))),
    update(view) {
      fill(head, sign(view.tone), object);
      fill(said, headline(view));
      fill(notes, [view.unrendered, view.unread].filter(Boolean).map((text) => h("p", { class: "note away" }, text)), view.notes.map((text) => h("p", { class: "note held" }, text)));
      fill(why, view.why.length ? [h("h2", {}, "What stops it"), view.why.map(stop)] : "");
      fill(differs, view.differs.length ? [h("h2", {}, "Not as it is meant"), h("ul", { class: "plain" }, view.differs.map((field) => h("li", {}, h("code", {}, field))))] : "");
      const asks = view.described ? `leafcast describe ${view.described} --at ${at}` : "";
      if (more.dataset.asks !== asks) { more.dataset.asks = asks; fill(more, asks ? ["More of it: ", command(asks)] : ""); }
      keyed(cut, [["meant", "render"], ["live", "get"]].filter((_, at) => view.cut[at]).map(([id, verb]) => ({ id, verb })), ({ id, verb }) =>
        h("p", { class: "note held" }, id === "meant" ? "What is meant is cut here. " : "What is there is cut here. ", view.described ? ["All of it: ", command(`leafcast ${verb} ${view.described} --at ${at}${verb === "get" ? " -o yaml" : ""}`)] : ""));
      put(meant, view.meant || "The centre sends no such object there.");
      put(live, view.live || (view.unread ? "Not known now." : "It is not there."));
      fill(rules, view.rules.length ? [h("h2", {}, "What was put in, and by which rule"), h("pre", { tabindex: "0", "aria-label": "What was put in" }, view.rules.join("\n"))] : "");
    },
  };
}

/** What stops it on its way, for one placement. */
function stop(it) {
  const by = it.placement ? [h("a", { href: placementAddress(it.placement) }, it.placement), ": "] : "";
  return h("div", { class: `note ${it.tone}` }, h("p", {}, sign(it.tone), by, it.said, " ", since(it.sinceMs)), it.remedy ? h("p", {}, todo(it.remedy)) : "");
}

function headline(view) {
  if (view.unread) return "What is there is not known now.";
  if (view.unrendered) return view.isThere ? "It is there, and the centre does not mean it to be." : "It is not there.";
  if (!view.isThere) return "It is meant to be there, and is not.";
  if (view.isSecret) return "It is there. What a Secret holds does not come to this page, so it is not compared.";
  if (view.differs.length) return "It is there, and not as it is meant.";
  return view.why.length ? "Its fields are there as they are meant, and not all is well." : "It is there as it is meant.";
}

/** The same text is not put anew, so that a selection stays. */
function put(element, text) { if (element.textContent !== text) element.textContent = text; }
