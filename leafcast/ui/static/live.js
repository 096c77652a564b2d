// A view of the server's that is kept as it is there: whole at first, then what changed.

export const SILENT_MS = 5000;

export class Live {
  /** `onview(view, asOfMs)` is called at each change, `onstate(state)` when it is heard of or not. */
  constructor(name, words, onview, onstate) {
    Object.assign(this, { name, words, onview, onstate, view: null, asOfMs: null, heard: performance.now(), failed: null });
    this.open();
  }

  open() {
    if (this.source) return;
    this.heard = performance.now();
    const source = new EventSource(`/api/v1/live/${this.name}?${new URLSearchParams(this.words)}`);
    this.source = source;
    source.addEventListener("whole", (event) => {
      const said = JSON.parse(event.data);
      this.view = said.view;
      this.seen(said.asOfMs);
    });
    source.addEventListener("patch", (event) => {
      if (!this.view) return;
      const said = JSON.parse(event.data);
      const changed = said.set || said.rows || said.drop;
      if (changed) this.view = patched(this.view, said);
      this.seen(said.asOfMs, changed);
    });
    source.addEventListener("failed", (event) => {
      this.heard = performance.now();
      const said = JSON.parse(event.data);
      this.failed ??= { since: said.asOfMs ?? said.nowMs };
      this.failed = { ...said.error, since: this.failed.since };
      this.onstate(this);
    });
    source.addEventListener("still", (event) => {
      this.heard = performance.now();
      // The server is there, and the tree has not answered it for too long.
      const { lateSinceMs } = JSON.parse(event.data);
      if (lateSinceMs) this.failed ??= { message: "a question has no answer yet", remedy: "see that it runs: leafcast status", away: true, since: lateSinceMs };
      this.onstate(this);
    });
    // Whoever is not let in gets no stream; the browser does not try again then.
    source.addEventListener("error", () => { if (source.readyState === EventSource.CLOSED) this.refused(); });
  }

  /** Open it anew; nothing was heard by that. */
  again() {
    const { heard } = this;
    this.close();
    this.open();
    this.heard = heard;
  }

  async refused() {
    try {
      const answer = await fetch(`/api/v1/${this.name}?${new URLSearchParams(this.words)}`);
      if (answer.ok) { this.again(); return; }
      const said = (await answer.json()).error;
      this.failed = { ...said, since: Date.now() };
    } catch {
      this.failed = null;
      setTimeout(() => { if (this.source) this.again(); }, 1000);
    }
    this.onstate(this);
  }

  seen(asOfMs, changed = true) {
    this.heard = performance.now();
    this.asOfMs = asOfMs;
    const recovered = this.failed;
    this.failed = null;
    if (changed || recovered) {
      try { this.onview(this.view, asOfMs); } catch (error) {
        console.error(error);
        const message = `This page cannot show all of what it was told (${error.message}), so what is below may be wrong`;
        this.failed = { message, remedy: "reload it; if that does not help, ask by leafcast status", away: false, since: recovered?.since ?? asOfMs };
      }
    }
    this.onstate(this);
  }

  /** Whether nothing came for so long that nobody may be there. */
  get silent() { return this.source && performance.now() - this.heard > SILENT_MS; }

  close() { this.source?.close(); this.source = null; }
}

/** The view after a patch; items that did not change are the same objects as before. */
export function patched(view, { set = {}, rows = {}, drop = [] }) {
  const after = { ...view, ...set };
  for (const name of drop) delete after[name];
  for (const [name, { items, order }] of Object.entries(rows)) {
    const known = new Map(view[name].map((item) => [item.id, item]));
    for (const item of items) known.set(item.id, item);
    after[name] = (order ?? [...known.keys()]).map((id) => known.get(id));
  }
  return after;
}
