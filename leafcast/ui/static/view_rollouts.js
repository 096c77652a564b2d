// All Rollouts: of which placement, how far, and what each waits for.
import { h } from "./dom.js";
import { table } from "./table.js";
import { placementAddress, sign } from "./words.js";

export const NAME = "rollouts";
export const asked = () => ({});
const dash = (said) => said || h("span", { class: "quiet" }, "–");

export function draw() {
  const rows = table("Rollouts", [
    ["Rollout", (row) => [sign(row.tone), h("a", { href: `/rollouts/${encodeURIComponent(row.id)}` }, row.id)], "name"],
    ["Placement", (row) => h("a", { href: placementAddress(row.placement) }, row.placement)],
    ["Revision", (row) => dash(row.revision), "number"],
    ["State", (row) => phrase(row.phase)],
    ["Wave", (row) => dash(row.wave)],
    ["Waits for", (row) => row.message, "wide"],
  ], () => "No Rollout. A placement without one goes everywhere at once.");
  return { title: "Rollouts", element: h("div", {}, h("h1", {}, "Rollouts"), rows.element), update(view) { rows.update(view.rows); } };
}

/** "AwaitingApproval" as "awaiting approval". */
export const phrase = (word) => word.replace(/(?<=[a-z])(?=[A-Z])/g, " ").toLowerCase();
