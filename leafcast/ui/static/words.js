// Figures, ages and tones in words, the same everywhere.
import { h } from "./dom.js";

export const TONES = {
  bad: ["✕", "failing"],
  away: ["!", "unreachable"],
  held: ["‖", "held"],
  busy: ["…", "under way"],
  good: ["✓", "well"],
  none: ["–", "empty"],
};

/** A sign with its word: a colour alone says nothing. */
export function sign(tone) {
  const [mark, word] = TONES[tone] ?? TONES.none;
  return h("span", { class: `sign ${tone}`, title: word }, h("span", { "aria-hidden": "true" }, mark), h("span", { class: "hidden" }, word));
}

const number = new Intl.NumberFormat("en");
export const figure = (count) => number.format(count);
export const many = (count, what, several) => `${figure(count)} ${count === 1 ? what : (several ?? `${what}s`)}`;

/** "3 of 5", "at least 3 of 5", with a bar. */
export function share({ n, of, exact }) {
  if (!of) return h("span", { class: "quiet" }, exact ? "–" : "not known yet");
  const title = exact ? "exact" : "not all nodes have answered: there may be more";
  const full = exact && n === of;
  return h("span", { class: full ? "share full" : "share", title },
    h("span", { class: "figures" }, exact ? "" : "at least ", h("b", {}, figure(n)), ` of ${figure(of)}`),
    h("span", { class: "bar", "aria-hidden": "true" }, h("span", { style: { width: `${(100 * n) / of}%` } })));
}

// How far the server's clock is ahead of this one, so that ages do not depend on it.
let ahead = 0;
export const clockSays = (serverMs) => { ahead = serverMs - Date.now(); };
export const nowMs = () => Date.now() + ahead;

export function span(ms) {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m${s % 60 ? `${s % 60}s` : ""}`;
  if (s < 86400) return `${Math.floor(s / 3600)}h${Math.floor((s % 3600) / 60) ? `${Math.floor((s % 3600) / 60)}m` : ""}`;
  return `${Math.floor(s / 86400)}d${Math.floor((s % 86400) / 3600) ? `${Math.floor((s % 86400) / 3600)}h` : ""}`;
}

const time = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { year: "numeric", month: "short", day: "numeric" });
/** "14:03:07", with the day if it is not today. */
export function moment(ms) {
  const at = new Date(ms), today = day.format(new Date()) === day.format(at);
  return today ? time.format(at) : `${day.format(at)} ${time.format(at)}`;
}

/** An age that goes on; `tick` keeps it right. */
export function since(ms, before = "for ") {
  if (ms === null || ms === undefined) return "";
  // Whoever runs a node says since when: a figure may be no date, and toISOString throws then.
  if (Number.isNaN(new Date(ms).getTime())) return `${before}a time that is not known`;
  return h("time", { datetime: new Date(ms).toISOString(), title: `since ${moment(ms)}`, "data-since": ms, "data-before": before },
    before + span(nowMs() - ms));
}

export function tick() {
  for (const element of document.querySelectorAll("time[data-since]")) {
    const said = element.dataset.before + span(nowMs() - Number(element.dataset.since));
    if (element.textContent !== said) element.textContent = said;
  }
}

/** A command to be copied. */
export function command(text) {
  // A shell runs each line as it is pasted: who wants such a text copies it knowingly.
  if (/[\r\n]/.test(text)) return h("code", {}, text);
  const button = h("button", { type: "button", class: "copy", onclick: async () => {
    await navigator.clipboard.writeText(text);
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  } }, "copy");
  return h("span", { class: "command" }, h("code", {}, text), button);
}

// Of no word that a shell takes for more than a word: an edge may have said it.
/** What to do: a command to be copied if it is nothing else, or the words as they are. */
export const todo = (remedy) => ["Do: ", /^leafcast( [A-Za-z0-9_.:/=@-]+)+$/.test(remedy) ? command(remedy) : remedy];

/** How people call a node. */
export const nodeName = (path) => (path === "/" ? "centre" : path);

export const placementAddress = (id, words = {}) => address(`/placements/${id.split("/").map(encodeURIComponent).join("/")}`, words);
export const copyAddress = (at, object) => address(`/copy${at}`, { object });
export const proofAddress = (path, words = {}) => address(path === "/" ? "/proof" : `/proof${path}`, words);
export const traceAddress = (id, words = {}) => address(`/trace/${id.split("/").map(encodeURIComponent).join("/")}`, words);
export const treeAddress = (path, words = {}) => address(path === "/" ? "/tree" : `/tree${path}`, words);
export function address(path, words) {
  const said = Object.entries(words).filter(([, value]) => value);
  return said.length ? `${path}?${new URLSearchParams(said)}` : path;
}
