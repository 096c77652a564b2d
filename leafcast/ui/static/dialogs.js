// The search over placements, places and objects, with favourites; and the keys.
import { fill, h, keyed } from "./dom.js";
import { favourites } from "./favourites.js";
import { figure, many, placementAddress, sign, treeAddress } from "./words.js";

const WAIT_MS = 150;
const HINT = "Parts of a path or a name, or a label as env=prod. Favourites (f) are shown here.";
const kept = () => favourites().map((it) => ({ id: it.address, href: it.address, name: it.title, what: it.address === it.title ? "" : it.address }));

export function openHelp() {
  const dialog = document.getElementById("help");
  const keys = [["/", "search placements, places, objects; favourites"], ["j  k", "next and previous row"], ["Enter", "open it"], ["u", "one level up"], ["f", "make this a favourite, or no longer"], ["?", "these keys"], ["Esc", "close"]];
  fill(dialog, h("h2", {}, "Keys"), h("dl", { class: "keys" }, keys.map(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
    h("form", { method: "dialog" }, h("button", {}, "Close")));
  dialog.showModal();
}

export function openSearch(go) {
  const dialog = document.getElementById("search");
  const list = h("ul", { id: "found", class: "found" });
  const said = h("p", { class: "quiet", role: "status" }, HINT);
  const input = h("input", { type: "search", "aria-label": "Search placements, places and objects", placeholder: "site-3, shop, deploy web, env=prod", autocomplete: "off", spellcheck: "false" });
  let waiting = 0, asked = 0;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => find(input.value.trim()), WAIT_MS);
  });
  const link = (item) => h("li", { "data-row": true }, h("a", { href: item.href, onclick: () => dialog.close() }, item.tone ? sign(item.tone) : "", h("span", { class: "name" }, item.name), h("span", { class: "quiet" }, item.what)));
  async function find(words) {
    const number = ++asked;
    if (!words) { keyed(list, kept(), link); fill(said, list.children.length ? "Favourites. Type to search." : HINT); return; }
    try {
      const found = await ask(`search?${new URLSearchParams({ search: words })}`);
      if (number !== asked) return;
      const items = [
        ...found.placements.map((row) => ({ id: `p ${row.id}`, href: placementAddress(row.id), name: row.id, tone: row.tone, what: "placement" })),
        ...found.places.map((row) => ({ id: `n ${row.id}`, href: treeAddress(row.id), name: row.id, what: [row.syncTarget, row.children ? many(row.edges, "destination") : ""].filter(Boolean).join(", ") || "node" })),
        ...found.objects.map((row) => ({ id: `o ${row.id}`, href: placementAddress(row.placements[0]), name: row.id, what: `object of ${row.placements[0]}${row.placements.length > 1 ? ` and ${row.placements.length - 1} more` : ""}` })),
      ];
      keyed(list, items, link);
      const more = found.more ? `; ${figure(found.more)} more: say more of it` : "";
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
  find("");
}

async function ask(what) {
  const answer = await fetch(`/api/v1/${what}`);
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error.message);
  return said.view;
}
