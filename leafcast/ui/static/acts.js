// What this page may have the tree do: it shows the command, and asks once.
import { fill, h } from "./dom.js";
import { command } from "./words.js";

const PLACE = "leafcast-act";
const LABELS = { "node-approve": "Let it in", "rollout-approve": "Approve", "rollout-pause": "Pause", "rollout-abort": "Abort" };
const label = (act) => LABELS[act.name] ?? "Let it go";

/** Keep what the address says behind #, and show it no longer. Only pages of this very port can read it. */
export function takeSecret() {
  const said = /^#act=([0-9a-f]+)$/.exec(location.hash);
  if (!said) return;
  localStorage.setItem(PLACE, said[1]);
  history.replaceState(null, "", location.pathname + location.search);
}

/** A button for an act; nothing if there is none. */
export function actButton(act) {
  return act ? h("button", { type: "button", class: act.name === "rollout-abort" ? "act hard" : "act", onclick: () => confirm(act) }, `${label(act)} …`) : "";
}

function confirm(act) {
  const dialog = document.getElementById("act");
  const out = h("div", { "aria-live": "polite" });
  const run = h("button", { type: "button", class: "act", onclick: () => ask() }, `Yes: ${label(act).toLowerCase()}`);
  const close = h("button", { type: "button", onclick: () => dialog.close() }, "No");
  async function ask() {
    run.disabled = true;
    fill(out, h("p", { class: "quiet" }, "The tree is asked …"));
    try {
      const headers = { "content-type": "application/json", "x-leafcast-act": localStorage.getItem(PLACE) ?? "" };
      const answer = await fetch("/api/v1/act", { method: "POST", headers, body: JSON.stringify(act) });
      const said = await answer.json();
      if (answer.ok) fill(out, h("p", { class: "note good" }, said.done));
      else fill(out, h("div", { class: "note bad" }, h("p", {}, said.error.message), said.error.remedy ? h("p", {}, "Do: ", said.error.remedy) : ""));
    } catch (error) {
      fill(out, h("p", { class: "note bad" }, `The server of this page does not answer (${error.message}), so whether it was done is not known.`));
    }
    // It is asked once: whoever wants it again sees first how things are now.
    run.remove();
    fill(close, "Close");
    close.focus();
  }
  fill(dialog, h("h2", {}, `${label(act)}?`), h("p", {}, "The tree is asked for just what this command asks for:"), h("p", {}, command(act.command)), out, h("p", { class: "toolbar" }, run, close));
  dialog.showModal();
  close.focus();
}
