// Which view the address names; what all views share: banner, keys, theme, search.
import { fill, h } from "./dom.js";
import { openHelp, openSearch } from "./dialogs.js";
import { Live } from "./live.js";
import { clockSays, moment, nowMs, since, tick } from "./words.js";
import * as placements from "./view_placements.js";
import * as placement from "./view_placement.js";
import * as tree from "./view_tree.js";
import * as rollouts from "./view_rollouts.js";
import * as rollout from "./view_rollout.js";
import * as events from "./view_events.js";
import * as requests from "./view_requests.js";
import * as copy from "./view_copy.js";
import * as plan from "./view_plan.js";
import * as doctor from "./view_doctor.js";

const NAV = [["/placements", "Placements"], ["/tree", "Tree"], ["/rollouts", "Rollouts"], ["/events", "Events"], ["/requests", "Requests"], ["/plan", "Plan"], ["/doctor", "Doctor"]];
const BADGE_MS = 10_000;
const main = document.getElementById("main");
const banner = document.getElementById("banner");
const asOf = document.getElementById("as-of");
let live = null;
let shown = null;

/** The view that an address names, with its words. */
function route(url) {
  const words = Object.fromEntries(url.searchParams);
  let parts;
  try { parts = url.pathname.split("/").filter(Boolean).map(decodeURIComponent); } catch { return [null, {}]; }
  const [first = "", ...rest] = parts;
  if (first === "" || (first === "placements" && !rest.length)) return [placements, {}];
  if (first === "placements") return [placement, { ...words, name: rest.join("/") }];
  if (first === "rollouts") return rest.length ? [rollout, { ...words, name: rest.join("/") }] : [rollouts, words];
  const plain = { events, requests, plan, doctor }[first];
  if (plain && !rest.length) return [plain, words];
  if (first === "copy") return [copy, { ...words, at: `/${rest.join("/")}` }];
  if (first === "tree") return [tree, { ...words, path: `/${rest.join("/")}` }];
  return [null, {}];
}

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
  for (const link of document.querySelectorAll("#nav a")) {
    const path = link.getAttribute("href");
    const here = url.pathname.startsWith(path) || (path === "/placements" && url.pathname === "/");
    if (here) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!view) {
    document.title = "Not found - Leafcast";
    fill(main, h("h1", {}, "There is no such page"), h("p", {}, "See ", h("a", { href: "/placements" }, "the placements"), " or ", h("a", { href: "/tree" }, "the tree"), "."));
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
    const what = failed.away ? [h("b", {}, "The tree does not answer "), since(failed.since), `: ${failed.message}. `] : [h("b", {}, failed.message), ". "];
    fill(banner, what, of, failed.remedy ? `Do: ${failed.remedy}` : "");
  }
  if (!view) main.setAttribute("aria-busy", "false");
  if (!view) fill(main, h("h1", {}, shown?.title ?? "Leafcast"), h("p", { class: "quiet" }, "Nothing was heard of it yet."));
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

/** How many requests wait, beside the link to them. */
async function count() {
  const link = nav.querySelector("a[href='/requests']");
  let waiting = 0;
  try {
    const answer = await fetch("/api/v1/requests");
    if (answer.ok) waiting = (await answer.json()).view.rows.length;
  } catch { /* The banner says that nobody answers. */ }
  fill(link, "Requests", waiting ? [h("span", { class: "badge", "aria-hidden": "true" }, String(waiting)), h("span", { class: "hidden" }, `, ${waiting} waiting`)] : "");
}
count();
setInterval(() => { if (!document.hidden) count(); }, BADGE_MS);

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
  else if (event.key === "/") openSearch(go);
  else if (event.key === "?") openHelp();
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

show();
