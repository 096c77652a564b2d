// Which views there are, and which one an address names: a view is added here, and in view_table.py.
import * as copy from "./view_copy.js";
import * as doctor from "./view_doctor.js";
import * as events from "./view_events.js";
import * as here from "./view_here.js";
import * as placement from "./view_placement.js";
import * as placements from "./view_placements.js";
import * as plan from "./view_plan.js";
import * as proof from "./view_proof.js";
import * as requests from "./view_requests.js";
import * as rollout from "./view_rollout.js";
import * as rollouts from "./view_rollouts.js";
import * as trace from "./view_trace.js";
import * as tree from "./view_tree.js";

/** Whether this is the page of one node below the centre, which shows itself alone. */
export const OF_NODE = document.body.dataset.of === "node";
/** Those that the head of the page leads to; the first one is shown at the address without a path. */
export const NAV = OF_NODE ? [["/here", "This node"]] : [["/placements", "Placements"], ["/tree", "Tree"], ["/rollouts", "Rollouts"], ["/events", "Events"], ["/requests", "Requests"], ["/plan", "Plan"], ["/doctor", "Doctor"]];

// By the first part of an address: what it shows with nothing behind it, and with something.
const VIEWS = OF_NODE ? { here: [(words) => [here, words], null] } : {
  placements: [() => [placements, {}], (rest, words) => [placement, { ...words, name: rest }]],
  tree: [(words) => [tree, { ...words, path: "/" }], (rest, words) => [tree, { ...words, path: `/${rest}` }]],
  rollouts: [(words) => [rollouts, words], (rest, words) => [rollout, { ...words, name: rest }]],
  copy: [null, (rest, words) => [copy, { ...words, at: `/${rest}` }]],
  proof: [(words) => [proof, { ...words, at: "/" }], (rest, words) => [proof, { ...words, at: `/${rest}` }]],
  trace: [null, (rest, words) => [trace, { ...words, name: rest }]],
  events: [(words) => [events, words], null],
  requests: [(words) => [requests, words], null],
  plan: [(words) => [plan, words], null],
  doctor: [(words) => [doctor, words], null],
};

/** The view that an address names, with its words; null if there is none. */
export function route(url) {
  const words = Object.fromEntries(url.searchParams);
  let parts;
  try { parts = url.pathname.split("/").filter(Boolean).map(decodeURIComponent); } catch { return [null, {}]; }
  const [first = NAV[0][0].slice(1), ...rest] = parts;
  const [alone, within] = Object.hasOwn(VIEWS, first) ? VIEWS[first] : [null, null];
  if (!rest.length && alone) return alone(words);
  if (rest.length && within) return within(rest.join("/"), words);
  return [null, {}];
}
