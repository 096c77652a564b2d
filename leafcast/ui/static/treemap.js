// Squarified treemap (Bruls, Huizing, van Wijk): rectangles whose areas are as the weights, near squares.

/** `[{x, y, w, h}]` in 0..1 of a room that is `ratio` times as wide as high; weights fall. */
export function squarify(weights, ratio) {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const places = [];
  if (!total) return places;
  let x = 0, y = 0, w = ratio, h = 1;
  const areas = weights.map((weight) => (weight / total) * ratio);
  for (let at = 0; at < areas.length;) {
    const side = Math.min(w, h);
    let end = at + 1, sum = areas[at];
    while (end < areas.length && worst(areas[at], areas[end], sum + areas[end], side) <= worst(areas[at], areas[end - 1], sum, side)) {
      sum += areas[end];
      end += 1;
    }
    const depth = sum / side;
    let along = 0;
    for (; at < end; at += 1) {
      const length = areas[at] / depth;
      places.push(w >= h ? { x, y: y + along, w: depth, h: length } : { x: x + along, y, w: length, h: depth });
      along += length;
    }
    if (w >= h) { x += depth; w -= depth; } else { y += depth; h -= depth; }
  }
  return places.map((it) => ({ x: it.x / ratio, y: it.y, w: it.w / ratio, h: it.h }));
}

function worst(largest, smallest, sum, side) {
  const square = sum * sum, across = side * side;
  return Math.max((across * largest) / square, square / (across * smallest));
}
