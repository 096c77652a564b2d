// What waits for a person, each with the command that lets it go on.
import { actButton } from "./acts.js";
import { h } from "./dom.js";
import { table } from "./table.js";
import { command, since, sign } from "./words.js";

export const NAME = "requests";
export const asked = () => ({});

export function draw() {
  const rows = table("What waits for a person", [
    ["What", (row) => [sign(row.tone), row.what], "wide"],
    ["More", (row) => row.said, "wide"],
    ["Waits", (row) => since(row.sinceMs) || h("span", { class: "quiet" }, "–"), "when"],
    ["Do", (row) => [row.command ? command(row.command) : "", " ", actButton(row.act)]],
  ], () => "Nothing waits for a person.");
  return {
    title: "Requests",
    element: h("div", {}, h("h1", {}, "Requests"), h("p", { class: "quiet" }, "Each goes on by the command beside it, if it is meant so."), rows.element),
    update(view) { rows.update(view.rows); },
  };
}
