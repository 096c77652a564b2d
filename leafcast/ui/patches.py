"""What changed from one view to the next, so that a browser is sent no more than that. Pure.

A view is a mapping of JSON. Of a list whose items have an `id` each, items are sent that are new or
other, and the order if it is another one; else a value is sent whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leafcast.show.sanitize import sanitize_lines

TEXT_MAX_CHARACTERS = 4_000
LONG_TEXT_MAX_CHARACTERS = 256 * 1024
DEPTH_MAX = 24


class LongText(str):
    """One that is longer than others may be; whoever makes it says where it is cut."""

    __slots__ = ()


PageView = Mapping[str, Any]
Json = dict[str, Any]


def patch(before: PageView, after: PageView) -> Json:
    """`{set, rows, drop}`; empty if nothing changed.

    `rows` is by name `{order, items}`: the ids in their order, and the items to be put in place.
    """
    said: Json = {}
    for name, value in after.items():
        former = before.get(name)
        if value == former:
            continue
        if _has_rows(value) and _has_rows(former):
            said.setdefault("rows", {})[name] = _rows(former or (), value)
        else:
            said.setdefault("set", {})[name] = value
    if gone := [name for name in before if name not in after]:
        said["drop"] = gone
    return said


def _has_rows(value: Any) -> bool:
    """Whether all have an id, and each its own."""
    if not isinstance(value, list):
        return False
    ids = [item.get("id") if isinstance(item, dict) else None for item in value]
    return None not in ids and len(set(ids)) == len(ids)


def _rows(before: Sequence[Json], after: Sequence[Json]) -> Json:
    former = {item["id"]: item for item in before}
    order = [item["id"] for item in after]
    said: Json = {"items": [item for item in after if former.get(item["id"]) != item]}
    if order != list(former):
        said["order"] = order
    return said


def harmless(value: Any, depth: int = 0) -> Any:
    """The same value: texts bounded, and without what steers or turns around; numbers exact.

    What edges send may be anything.
    """
    if depth > DEPTH_MAX:
        return None
    match value:
        case str():
            long = isinstance(value, LongText)
            most = LONG_TEXT_MAX_CHARACTERS if long else TEXT_MAX_CHARACTERS
            return sanitize_lines(value if len(value) <= most else f"{value[:most]}…")
        case Mapping():
            return {
                sanitize_lines(str(name)): harmless(it, depth + 1) for name, it in value.items()
            }
        case list() | tuple():
            return [harmless(item, depth + 1) for item in value]
        case _:
            return value
