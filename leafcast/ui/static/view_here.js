// A node below the centre at its own page: what it holds, what that waits for, and since when.
import { fill, h } from "./dom.js";
import { table } from "./table.js";
import { figure, moment, sign, since, todo } from "./words.js";

export const NAME = "here";
export const asked = () => ({});

export function draw() {
  const head = h("h1", {}, "This node"), link = h("div", { class: "note" }), about = h("p", { class: "quiet" }), notes = h("div");
  const holds = h("p", { class: "quiet" }), rest = h("p", { class: "quiet" }), below = h("section"), others = h("p", { class: "quiet" });
  const rows = table("Placements that it holds", [
    ["Placement", (row) => [sign(row.tone), row.id], "name"],
    ["Generation", (row) => row.generation, "number"],
    ["How it is", (row) => row.said, "wide"],
    ["Worst", (row) => [row.worst, row.worst && row.remedy ? h("p", { class: "quiet" }, todo(row.remedy)) : ""], "wide"],
    ["Waits for", (row) => (row.waits.length ? [row.waits.map((text) => h("p", {}, text)), since(row.waitsSinceMs)] : h("span", { class: "quiet" }, "nothing")), "wide"],
  ], () => "It holds no placement.");
  const children = table("Children of this node", [
    ["Child", (row) => [sign(row.tone), row.id], "name"],
    ["Role", (row) => row.role],
    ["How it is", (row) => [row.said, " ", since(row.silentSinceMs)], "wide"],
    ["Mail not read", (row) => figure(row.lag), "number"],
  ], () => "Nothing hangs below it.");
  const changes = table("How the link to its parent was", [
    ["Since", (row) => [sign(row.tone), moment(row.atMs)], "name"],
    ["How it was", (row) => row.said, "wide"],
  ], () => "");
  return {
    title: "This node",
    element: h("div", {}, head, link, notes, about, h("h2", {}, "What it holds"), holds, rows.element, rest, below,
      h("h2", {}, "How the link to its parent was"), changes.element),
    update(view) {
      fill(head, sign(view.tone), `${view.role} ${view.path}`);
      document.title = `${view.path} - Leafcast`;
      link.className = `note ${view.tone}`;
      fill(link, h("p", {}, h("b", {}, view.headline), " ", view.neverSince ? [since(view.sinceMs), ", since it was started"] : since(view.sinceMs)),
        view.flaps ? h("p", {}, `The link comes and goes: it was lost ${figure(view.flaps)} times in the last 10 minutes.`) : "",
        view.remedy ? h("p", {}, todo(view.remedy)) : "");
      fill(notes, view.notes.map((text) => h("p", { class: "note held" }, text)));
      fill(about, view.snapshotMs === null ? "It was told nothing of the centre yet" : ["What it knows of the centre is of ", moment(view.snapshotMs)], ". Leafcast ", view.version, ", started ", since(view.startedMs, ""), " ago.");
      fill(holds, `${view.holds}. It keeps this, and puts right what is changed, while its parent is away.`);
      rows.update(view.rows);
      fill(rest, view.more ? `${figure(view.more)} more, which are better.` : "");
      if (view.role !== "edge" && !below.hasChildNodes()) fill(below, h("h2", {}, "Its children"), children.element, others);
      children.update(view.children);
      fill(others, view.childrenMore ? `${figure(view.childrenMore)} more.` : "");
      changes.update(view.changes);
    },
  };
}
