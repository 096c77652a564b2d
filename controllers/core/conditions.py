"""Conditions of our API objects: what is said of an object, and since when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from relay.objects.stored_object import timestamp
from schemas.api import Condition

Truth = Literal["True", "False", "Unknown"]


def condition(type_: str, status: Truth, reason: str, message: str) -> Condition:
    return Condition(type=type_, status=status, reason=reason, message=message)


def merged(
    before: object, conditions: Iterable[Condition], now_ms: int, owned: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """These conditions as a status lists them, after others' ones that `before` lists.

    A condition whose status stays keeps its time of transition; a type in `owned` that is no longer
    said is left out.
    """
    said = {item.type: item for item in conditions}
    old = _by_type(before)
    gone = set(owned) | said.keys()
    listed = [item for type_, item in old.items() if type_ not in gone]
    for type_, item in said.items():
        known = old.get(type_, {})
        since = known.get("lastTransitionTime") if known.get("status") == item.status else None
        listed.append({**item.to_mapping(), "lastTransitionTime": since or timestamp(now_ms)})
    return listed


def _by_type(before: object) -> dict[str, dict[str, Any]]:
    if not isinstance(before, (list, tuple)):
        return {}
    return {
        str(item["type"]): dict(item)
        for item in before
        if isinstance(item, Mapping) and "type" in item
    }
