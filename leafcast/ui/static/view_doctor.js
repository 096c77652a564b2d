// What the doctor finds, what failed first; looked at four times a minute at most.
import { fill, h, keyed } from "./dom.js";
import { figure, placementAddress, sign, todo, treeAddress } from "./words.js";

export const NAME = "doctor";
export const asked = () => ({});
const WORDS = { bad: "failed", held: "to be looked at", good: "well" };

export function draw() {
  const summary = h("p", { class: "summary" }, "All nodes are asked, which takes a moment.");
  const amiss = h("ol", { class: "faults" });
  const well = h("details", {}, h("summary", {}, "What is well"), h("ul", { class: "plain" }));
  return {
    title: "Doctor",
    element: h("div", {}, h("h1", {}, "Doctor"), summary, amiss, well),
    update({ rows }) {
      const of = (tone) => rows.filter((row) => row.tone === tone);
      fill(summary, ["bad", "held", "good"].filter((tone) => of(tone).length).map((tone) => h("span", { class: "tally" }, sign(tone), `${figure(of(tone).length)} ${WORDS[tone]}`)));
      keyed(amiss, [...of("bad"), ...of("held")], (row) => h("li", { class: `note ${row.tone}` }, h("p", {}, sign(row.tone), h("b", {}, row.said), " ", h("span", { class: "quiet" }, row.group), " ", about(row.about)),
        row.cause ? h("p", {}, "Why: ", row.cause) : "", row.remedy ? h("p", {}, todo(row.remedy)) : ""));
      keyed(well.querySelector("ul"), of("good"), (row) => h("li", {}, sign(row.tone), `${row.group}: ${row.said}`));
    },
  };
}

function about(object) {
  if (object.startsWith("/")) return h("a", { href: treeAddress(object) }, object);
  const [kind, name] = object.split("/");
  const short = { edgeplacement: "epl", bindingpolicy: "bp" }[kind];
  return short && name ? h("a", { href: placementAddress(`${short}/${name}`) }, `${short}/${name}`) : "";
}
