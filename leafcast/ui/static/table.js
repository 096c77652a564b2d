// A table whose rows become cards where it is narrow.
import { h, keyed } from "./dom.js";

const cellOf = (first, title, cell, kind) => h(first ? "th" : "td", { scope: first ? "row" : null, class: [kind, cell.hasChildNodes() ? "" : "blank"].filter(Boolean).join(" "), "data-label": title }, cell);

/** `columns` are `[title, cell(item), class]`; returns the element and how to fill it. */
export function table(caption, columns, empty) {
  const body = h("tbody");
  const none = h("p", { class: "empty", hidden: true });
  const whole = h("table", {}, h("caption", { class: "hidden" }, caption),
    h("thead", {}, h("tr", {}, columns.map(([title, , kind]) => h("th", { scope: "col", class: kind }, title)))), body);
  const make = (item) => h("tr", { "data-row": true, class: item.tone ? `row ${item.tone}` : "row" },
    columns.map(([title, cell, kind], at) => cellOf(at === 0, title, h("span", { class: "cell" }, cell(item)), kind)));
  return {
    element: h("div", { class: "table" }, whole, none),
    update(items) {
      keyed(body, items, make);
      whole.hidden = !items.length;
      none.hidden = Boolean(items.length);
      none.textContent = items.length ? "" : empty();
    },
  };
}
