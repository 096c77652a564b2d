// Elements made of values. Text is only ever set as text: what edges send may be anything.

/** An element with attributes and children; a child is an element, a text, or nothing. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, it] of Object.entries(value)) element.style.setProperty(key, it);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  put(element, children);
  return element;
}

function put(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/** The same element with other children. */
export function fill(element, ...children) {
  element.replaceChildren();
  put(element, children);
  return element;
}

const drawn = new WeakMap();

/** Children for items by their ids: what did not change is not touched, and keeps its focus. */
export function keyed(parent, items, make) {
  const before = drawn.get(parent) ?? new Map();
  const after = new Map();
  let place = parent.firstElementChild;
  for (const item of items) {
    let entry = before.get(item.id);
    if (!entry || entry.item !== item || !parent.contains(entry.element)) {
      const element = make(item);
      if (entry && parent.contains(entry.element)) {
        const focused = entry.element.contains(document.activeElement);
        if (entry.element === place) place = element;
        entry.element.replaceWith(element);
        if (focused) (element.matches("a,button") ? element : element.querySelector("a,button"))?.focus();
      }
      entry = { item, element };
    }
    if (entry.element === place) place = place.nextElementSibling;
    else parent.insertBefore(entry.element, place);
    after.set(item.id, entry);
  }
  const kept = new Set([...after.values()].map((entry) => entry.element));
  for (const element of [...parent.children]) if (!kept.has(element)) element.remove();
  drawn.set(parent, after);
}
