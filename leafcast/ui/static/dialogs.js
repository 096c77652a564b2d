// The search over places and placements, and the keys.
import { fill, h, keyed } from "./dom.js";
import { many, placementAddress, sign, treeAddress } from "./words.js";

const WAIT_MS = 150;
const FOUND_MAX = 20;

export function openHelp() {
  const dialog = document.getElementById("help");
  const keys = [["/", "search places and placements"], ["j  k", "next and previous row"], ["Enter", "open it"], ["u", "one level up"], ["?", "these keys"], ["Esc", "close"]];
  fill(dialog, h("h2", {}, "Keys"), h("dl", { class: "keys" }, keys.map(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
    h("form", { method: "dialog" }, h("button", {}, "Close")));
  dialog.showModal();
}

export function openSearch(go) {
  const dialog = document.getElementById("search");
  const list = h("ul", { id: "found", class: "found" });
  const said = h("p", { class: "quiet", role: "status" }, "Parts of a path or a name, or a label as env=prod.");
  const input = h("input", { type: "search", "aria-label": "Search places and placements", placeholder: "site-3, shop, env=prod", autocomplete: "off", spellcheck: "false" });
  let waiting = 0, asked = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => find(input.value.trim()), WAIT_MS);
  });
  async function find(words) {
    const number = ++asked;
    if (!words) { keyed(list, [], () => null); return; }
    try {
      const [places, placements] = await Promise.all([ask(`places?${new URLSearchParams({ search: words })}`), ask("placements")]);
      if (number !== asked) return;
      const lower = words.toLowerCase().split(/\s+/);
      const named = placements.rows.filter((row) => lower.every((word) => row.id.toLowerCase().includes(word))).slice(0, FOUND_MAX);
      const items = [
        ...named.map((row) => ({ id: `p ${row.id}`, href: placementAddress(row.id), name: row.id, tone: row.tone, what: "placement" })),
        ...places.rows.map((row) => ({ id: `n ${row.id}`, href: treeAddress(row.id), name: row.id, what: [row.syncTarget, row.children ? many(row.edges, "destination") : ""].filter(Boolean).join(", ") || "node" })),
      ];
      keyed(list, items, (item) => h("li", { "data-row": true }, h("a", { href: item.href, onclick: () => dialog.close() }, item.tone ? sign(item.tone) : "", h("span", { class: "name" }, item.name), h("span", { class: "quiet" }, item.what))));
      const more = places.more ? `; ${many(places.more, "more place")}: say more of it` : "";
      fill(said, items.length ? `${many(items.length, "match", "matches")}${more}` : `Nothing is called "${words}".`);
    } catch (error) {
      if (number === asked) fill(said, `It cannot be searched now: ${error.message}`);
    }
  }
  dialog.onkeydown = (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const links = [...list.querySelectorAll("a")];
    if (event.key === "Enter" && event.target === input && links.length) { event.preventDefault(); links[0].click(); }
    if (!step || !links.length) return;
    event.preventDefault();
    const at = links.indexOf(document.activeElement) + step;
    (at < 0 ? input : links[Math.min(at, links.length - 1)]).focus();
  };
  dialog.onclick = (event) => { if (event.target === dialog) dialog.close(); };
  fill(dialog, h("div", { class: "search" }, input, said, list));
  dialog.showModal();
  input.focus();
}

async function ask(what) {
  const answer = await fetch(`/api/v1/${what}`);
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error.message);
  return said.view;
}
