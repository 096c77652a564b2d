// Addresses of this page that a person keeps, in this browser alone.
const PLACE = "leafcast-favourites";
const KEPT_MAX = 50;

/** `[{address, title}]`, the newest first. */
export function favourites() {
  let kept;
  try { kept = JSON.parse(localStorage.getItem(PLACE) ?? "[]"); } catch { return []; }
  // Another version of this page may have written it.
  return (Array.isArray(kept) ? kept : []).filter((it) => typeof it?.title === "string" && /^\/(?!\/)/.test(it?.address)).slice(0, KEPT_MAX);
}

export const isKept = (address) => favourites().some((it) => it.address === address);

/** Keep an address, or no longer; whether it is kept now. */
export function toggle(address, title) {
  const others = favourites().filter((it) => it.address !== address), kept = !isKept(address);
  localStorage.setItem(PLACE, JSON.stringify((kept ? [{ address, title }, ...others] : others).slice(0, KEPT_MAX)));
  return kept;
}
