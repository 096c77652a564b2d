// Which view the address names; what all views share: banner, keys, theme, search.
import { takeSecret } from "./acts.js";
import { fill, h } from "./dom.js";
import { openHelp, openSearch } from "./dialogs.js";
import { Live } from "./live.js";
import { isKept, toggle } from "./favourites.js";
import { NAV, OF_NODE, route } from "./views.js";
import { clockSays, moment, nowMs, since, tick, todo } from "./words.js";
const BADGE_MS = 10_000;
const main = document.getElementById("main");
const banner = document.getElementById("banner");
const keepButton = document.getElementById("keep-button");
const asOf = document.getElementById("as-of");
let live = null;
let shown = null;

export function go(address, { replace = false } = {}) {
  history[replace ? "replaceState" : "pushState"](null, "", address);
  show();
}

function show() {
  const url = new URL(location.href);
  const [view, words] = route(url);
  live?.close();
  live = null;
  banner.hidden = true;
  document.body.classList.remove("stale");
  keepButton.hidden = !view || OF_NODE;
  sayKept();
  for (const link of document.querySelectorAll("#nav a")) {
    const path = link.getAttribute("href");
    const here = url.pathname.startsWith(path) || (path === NAV[0][0] && url.pathname === "/");
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!view) {
    document.title = "Not found - Leafcast";
    main.setAttribute("aria-busy", "false");
    fill(main, h("h1", {}, "There is no such page"), h("p", {}, "See ", h("a", { href: NAV[0][0] }, NAV[0][1]), OF_NODE ? "" : [" or ", h("a", { href: "/tree" }, "the tree")], "."));
    return;
  }
  const asked = view.asked(words);
  const drawn = view.draw(words, go);
  document.title = `${drawn.title} - Leafcast`;
  fill(main, drawn.element);
  shown = drawn;
  fill(asOf, "");
  main.setAttribute("aria-busy", view.NAME ? "true" : "false");
  window.scrollTo(0, 0);
  if (!view.NAME) return;
  live = new Live(view.NAME, asked, (seen, asOfMs) => {
    clockSays(asOfMs);
    drawn.update(seen);
    main.setAttribute("aria-busy", "false");
  }, tell);
}

const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Says of when the figures are, and if nobody answers since when. */
function tell() {
  if (!live) return;
  const { failed, silent, asOfMs, view } = live;
  fill(asOf, asOfMs ? `As of ${moment(asOfMs)}.` : "");
  const stale = Boolean(failed || silent);
  document.body.classList.toggle("stale", stale && Boolean(view));
  const key = silent ? `silent ${asOfMs}` : failed ? `${failed.message} ${failed.since}` : "";
  if (banner.dataset.key === key && banner.hidden === !stale) return;
  banner.dataset.key = key;
  banner.hidden = !stale;
  if (!stale) return;
  const of = asOfMs ? `What is below is of ${moment(asOfMs)}, and may have changed. ` : "";
  if (silent) {
    const last = nowMs() - (performance.now() - live.heard);
    fill(banner, h("b", {}, "The server of this page does not answer "), since(last), `. ${of}See that `, h("code", {}, "leafcast ui"), " runs, and open the address that it printed last.");
  } else {
    const what = failed.away ? [h("b", {}, OF_NODE ? "The node does not answer " : "The tree does not answer "), since(failed.since), `: ${failed.message}. `] : [h("b", {}, sentence(failed.message)), ". "];
    fill(banner, what, of, !failed.remedy ? "" : failed.remedy.startsWith("there ") ? `${sentence(failed.remedy)}.` : todo(failed.remedy));
  }
  if (!view) main.setAttribute("aria-busy", "false");
  if (!view) fill(main, h("h1", {}, shown?.title ?? "Leafcast"), h("p", { class: "quiet" }, failed && !failed.away ? "There is nothing to show: see above." : "Nothing was heard of it yet."));
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='/']");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey || link.target) return;
  event.preventDefault();
  go(link.getAttribute("href"));
});
window.addEventListener("popstate", show);
// A browser has six connections to a server: a page that nobody sees gives its own back.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) live?.close();
  else live?.open();
});
setInterval(() => { tick(); tell(); }, 1000);

const nav = document.getElementById("nav");
fill(nav, NAV.map(([path, name]) => h("a", { href: path }, name)));
document.querySelector(".brand").setAttribute("href", NAV[0][0]);
document.getElementById("search-button").hidden = OF_NODE;

/** How many requests wait, beside the link to them. */
async function count() {
  const link = nav.querySelector("a[href='/requests']");
  if (!link) return;
  let waiting = 0;
  try {
    const answer = await fetch("/api/v1/requests");
    if (answer.ok) waiting = (await answer.json()).view.rows.length;
  } catch { /* The banner says that nobody answers. */ }
  fill(link, "Requests", waiting ? [h("span", { class: "badge", "aria-hidden": "true" }, String(waiting)), h("span", { class: "hidden" }, `, ${waiting} waiting`)] : "");
}
count();
setInterval(() => { if (!document.hidden) count(); }, BADGE_MS);

const here = () => location.pathname + location.search;
function sayKept() {
  const kept = isKept(here());
  fill(keepButton, h("span", { "aria-hidden": "true" }, kept ? "★" : "☆"));
  keepButton.setAttribute("aria-pressed", String(kept));
  keepButton.title = kept ? "A favourite: the search shows it. f takes it away." : "Make this a favourite, which the search shows: f";
}
function keep() {
  toggle(here(), shown?.title ?? here());
  sayKept();
}
keepButton.addEventListener("click", keep);

const themes = ["system", "light", "dark"];
const themeButton = document.getElementById("theme-button");
function theme() { return document.documentElement.dataset.theme ?? "system"; }
function sayTheme() { fill(themeButton, h("span", { class: "long" }, "Theme: "), theme()); themeButton.setAttribute("aria-label", `Theme: ${theme()}`); }
themeButton.addEventListener("click", () => {
  const next = themes[(themes.indexOf(theme()) + 1) % themes.length];
  if (next === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  localStorage.setItem("leafcast-theme", next);
  sayTheme();
});
sayTheme();

document.getElementById("search-button").addEventListener("click", () => openSearch(go));
document.getElementById("help-button").addEventListener("click", openHelp);
document.addEventListener("keydown", (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.matches("input,textarea,select")) return;
  const step = { j: 1, k: -1 }[event.key];
  if (step) move(step);
  else if (event.key === "/" && !OF_NODE) openSearch(go);
  else if (event.key === "?") openHelp();
  else if (event.key === "f" && !keepButton.hidden) keep();
  else if (event.key === "u") document.querySelector("[data-up]")?.click();
  else return;
  event.preventDefault();
});

/** To the next row's link, or to the one before. */
function move(step) {
  const links = [...main.querySelectorAll("[data-row] a, a[data-row]")].filter((link, at, all) => all.findIndex((it) => it.closest("[data-row]") === link.closest("[data-row]")) === at);
  if (!links.length) return;
  const at = links.findIndex((link) => link.closest("[data-row]") === document.activeElement?.closest("[data-row]"));
  const next = links[Math.min(links.length - 1, Math.max(0, at + step))];
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}

takeSecret();
show();
