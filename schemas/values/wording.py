"""Counts and lists as people say them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence


def value_text(value: object) -> str:
    """A value of JSON in a message, short: `null`, `true`, `3`, `"text"`, or by its type."""
    if isinstance(value, (Mapping, list, tuple)):
        return "a mapping" if isinstance(value, Mapping) else "a list"
    return json.dumps(value, ensure_ascii=False, default=str)


def many(count: int, what: str, several: str = "") -> str:
    """`1 node`, `2 nodes`; with a word of its own for several, `2 copies`."""
    return f"{count} {what if count == 1 else several or f'{what}s'}"


def some_of(names: Sequence[str], named_max: int, separator: str = ", ") -> str:
    """`a, b and 3 more`: so many of them by name."""
    more = len(names) - named_max
    return separator.join(names[:named_max]) + (f" and {more} more" if more > 0 else "")


_BREAKS = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\f": "\\f"})


def visible(name: str) -> str:
    """The name with line breaks, which names of roles may have, shown with a backslash."""
    return name.translate(_BREAKS)


def namespace_first(object_key: str) -> str:
    """An object's key as people read it: `shop/deployments.apps/web`."""
    match visible(object_key).split("/"):
        case [kind, namespace, name]:
            return f"{namespace}/{kind}/{name}"
        case _:
            return visible(object_key)


def repair_text(what: str, field: str, manager: str) -> str:
    """That a copy was put right: what was amiss, and by whom, as far as known."""
    if not field:
        return f"{what} was deleted there, and made again; by whom is not known"
    who = manager or "someone who is not known"
    return f"{what}: {field} was changed there by {who}, and put right"


def all_but(counts: Mapping[str, int], well: str) -> str:
    """` (1 failing, 2 pending)`: what those are that are not `well`; "" if there are none."""
    said = [f"{count} {word}" for word, count in sorted(counts.items()) if count and word != well]
    return f" ({', '.join(said)})" if said else ""
