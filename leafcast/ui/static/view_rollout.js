// One Rollout as a flow through its waves: what each gate waits for, and what happens if nobody acts.
import { actButton } from "./acts.js";
import { fill, h, keyed } from "./dom.js";
import { table } from "./table.js";
import { command, figure, many, placementAddress, share, sign, since } from "./words.js";

export const NAME = "rollout";
export const asked = ({ name }) => ({ name });

const none = () => h("span", { class: "quiet" }, "–");

export function draw({ name }) {
  const head = h("h1", {}, name), of = h("p"), headline = h("p", { class: "headline" }), notes = h("div"), next = h("div");
  const flow = h("ol", { class: "flow" });
  const history = table("Revisions, the newest first", [
    ["Revision", (row) => String(row.id)], ["When", (row) => [since(row.sinceMs, ""), row.sinceMs ? " ago" : ""]], ["By", (row) => row.user || none()], ["Cause", (row) => row.cause || none(), "wide"], ["Outcome", (row) => row.outcome || none()],
  ], () => "No revision yet.");
  return {
    title: `Rollout ${name}`,
    element: h("div", {}, h("p", { class: "crumbs" }, h("a", { href: "/rollouts", "data-up": true }, "Rollouts")), head, of, headline, notes, h("h2", {}, "Waves"), flow, next, h("h2", {}, "Revisions"), history.element),
    update(view) {
      const it = view.head;
      fill(head, sign(it.tone), it.id);
      fill(of, "It steers ", h("a", { href: placementAddress(it.placement) }, it.placement), ". ", h("span", { class: "quiet" }, it.exact ? "Counts are exact." : "Not all have answered: counts are at least."));
      fill(headline, it.headline);
      fill(notes, it.notes.map((text) => h("p", { class: `note ${it.tone}` }, text)));
      if (view.waves.length) keyed(flow, view.waves, (item) => wave(item, it.exact));
      else fill(flow, h("li", { class: "quiet" }, "No wave yet: it begins with the next change of the placement."));
      fill(next, h("p", {}, h("b", {}, "If nobody acts: "), it.unattended), it.next ? h("p", {}, h("b", {}, "Next: "), command(it.next)) : "", it.acts.length ? h("p", { class: "toolbar" }, it.acts.map(actButton)) : "");
      history.update(view.history);
    },
  };
}

function wave(it, exact) {
  const counts = [["failing", it.failing], ["waiting", it.waiting], ["unreachable", it.unreachable]].filter(([, count]) => count).map(([word, count]) => `${figure(count)} ${word}`).join(", ");
  const waits = [`admits ${it.gate}`, it.soak ? `soaks ${it.soak}` : "", it.approval ? `a person approves ${it.approval} it` : ""].filter(Boolean).join(", ");
  return h("li", { class: `wave ${it.tone}${it.inHand ? " in-hand" : ""}`, "aria-current": it.inHand ? "step" : null },
    h("p", { class: "line" }, sign(it.tone), h("b", {}, it.id)), h("p", {}, it.state),
    it.members === null || it.members === undefined ? h("p", { class: "quiet" }, "not begun") : share({ n: it.healthy ?? 0, of: it.members, exact }),
    it.members ? h("p", { class: "quiet" }, `healthy of ${many(it.members, "member")}`) : "", counts ? h("p", {}, counts) : "", h("p", { class: "quiet" }, waits), it.reason ? h("p", {}, it.reason) : "");
}
