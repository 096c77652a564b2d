// All placements, the worst first.
import { fill, h } from "./dom.js";
import { table } from "./table.js";
import { figure, many, placementAddress, share, sign, since, TONES } from "./words.js";

export const NAME = "placements";
export const asked = () => ({});

export function draw() {
  const summary = h("p", { class: "summary" });
  const notes = h("div");
  const rows = table("Placements, the worst first", [
    ["Placement", (row) => [sign(row.tone), h("a", { href: placementAddress(row.id) }, row.id)], "name"],
    ["Objects", (row) => figure(row.selected), "number"],
    ["Delivered", (row) => share(row.delivered)],
    ["Working", (row) => share(row.working)],
    ["Unreachable", (row) => (row.unreachable ? h("span", { class: "text away" }, figure(row.unreachable), " ", since(row.silentSinceMs)) : h("span", { class: "quiet" }, "–")), "number"],
    ["Worst", (row) => row.worst, "wide"],
    ["Conditions", (row) => conditions(row.conditions)],
  ], () => "No placements yet. Apply some: leafcast apply -f FILE");
  return {
    title: "Placements",
    element: h("div", {}, h("h1", {}, "Placements"), summary, notes, rows.element),
    update(view) {
      const counts = Object.keys(TONES).map((tone) => [tone, view.rows.filter((row) => row.tone === tone).length]).filter(([, count]) => count);
      fill(summary, counts.map(([tone, count]) => h("span", { class: "tally" }, sign(tone), `${figure(count)} ${TONES[tone][1]}`)));
      const said = [...(view.backupTrouble ? [`Backups fail: ${view.backupTrouble}`] : []), ...view.lostSpaces.map((it) => `Of a space that is lost: ${it}`)];
      fill(notes, said.map((text) => h("p", { class: "note held" }, text)));
      rows.update(view.rows);
      document.title = `${many(view.rows.length, "placement")} - Leafcast`;
    },
  };
}

const ABNORMAL = new Set(["Reconciling", "Stalled"]);
export const isAmiss = (condition) => (condition.status === "True") === ABNORMAL.has(condition.id);

function conditions(listed) {
  if (!listed.length) return h("span", { class: "quiet" }, "–");
  const amiss = listed.filter(isAmiss);
  if (!amiss.length) return h("span", { class: "text good" }, "all are met");
  const reasons = new Map();
  for (const it of amiss) reasons.set(it.reason, [...(reasons.get(it.reason) ?? []), it]);
  return h("span", { class: "chips" }, [...reasons].map(([reason, alike]) => h("span", { class: "chip", title: alike.map((it) => it.message).find(Boolean) ?? "" }, reason ? `${reason}: ` : "", alike.map((it) => `${it.status === "True" ? "" : "not "}${it.id}`).join(", "))));
}
