// What applying pasted or dropped YAML would do at every destination, grouped by what changes.
import { fill, h } from "./dom.js";
import { table } from "./table.js";
import { figure, many, sign, treeAddress } from "./words.js";

export const asked = () => ({});

const ACTIONS = { create: "is created", update: "is changed", delete: "is deleted", none: "stays as it is" };

export function draw() {
  const text = h("textarea", { id: "yaml", rows: "14", spellcheck: "false", placeholder: "apiVersion: apps/v1\nkind: Deployment\n…" });
  const button = h("button", { type: "submit" }, "Plan");
  const out = h("section", { "aria-live": "polite" });
  const rows = table("What becomes of which object", [
    ["Object", (row) => [sign(row.tone), row.object], "name"],
    ["What becomes of it", (row) => ACTIONS[row.action] ?? row.action],
    ["At", (row) => [h("a", { href: treeAddress(row.destination) }, row.destination), row.more ? ` and ${figure(row.more)} more` : ""]],
    ["Why", (row) => row.why, "wide"],
  ], () => "Nothing changes at destinations.");
  async function plan(event) {
    event.preventDefault();
    button.disabled = true;
    fill(out, h("p", { class: "quiet" }, "The centre plans …"));
    try {
      const answer = await fetch("/api/v1/plan", { method: "POST", headers: { "content-type": "application/yaml" }, body: text.value });
      const said = await answer.json();
      if (!answer.ok) { fill(out, h("div", { class: "note bad" }, said.error.message.split("\n").map((line) => h("p", {}, line)), said.error.remedy ? h("p", {}, "Do: ", said.error.remedy) : "")); return; }
      const view = said.view;
      rows.update(view.rows);
      fill(out, h("h2", {}, view.reach), view.centre ? h("p", {}, view.centre, ": ", view.objects.filter((it) => it.verb !== "unchanged").map((it) => `${it.id} ${it.verb}`).join(", ")) : "", view.waves.map((line) => h("p", {}, line)), rows.element,
        view.rest ? h("p", { class: "quiet" }, `${many(view.rest, "more row")}: leafcast plan -f FILE --all`) : "", view.notes.map((line) => h("p", { class: "note held" }, line)));
    } catch (error) {
      fill(out, h("p", { class: "note bad" }, `The server of this page does not answer: ${error.message}`));
    } finally { button.disabled = false; }
  }
  const form = h("form", { onsubmit: plan, ondragover: (event) => event.preventDefault(), ondrop: async (event) => {
    const files = [...(event.dataTransfer?.files ?? [])];
    if (!files.length) return;
    event.preventDefault();
    text.value = (await Promise.all(files.map((file) => file.text()))).join("\n---\n");
  } }, h("p", {}, h("label", { for: "yaml" }, "Paste manifests, or drop files on this field. Nothing is written.")), text, h("p", {}, button));
  return { title: "Plan", element: h("div", {}, h("h1", {}, "Plan"), form, out), update() {} };
}
