"""Conditions of our API objects: what is said of an object, and since when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from relay.objects.stored_object import timestamp
from schemas.api.placement_details import Hold
from schemas.api.shared import Condition

Truth = Literal["True", "False", "Unknown"]
READY, RECONCILING, STALLED = "Ready", "Reconciling", "Stalled"
STANDING = (READY, RECONCILING, STALLED)
"""What tools read that wait for objects of any kind (kstatus: Flux, Helm, Argo CD). The last two
are there only while they are true, never both, and never beside a Ready that is."""


def condition(type_: str, status: Truth, reason: str, message: str) -> Condition:
    return Condition(type=type_, status=status, reason=reason, message=message)


def held(
    reason: str,
    message: str,
    remedy: str,
    destinations: int | None = None,
    until: str | None = None,
) -> Hold:
    """What keeps the newest content from destinations: how many these are, if that is known."""
    return Hold(
        reason=reason, destinations=destinations, message=message, until=until, remedy=remedy
    )


def ready(reason: str, message: str) -> tuple[Condition, ...]:
    """It is as its spec asks."""
    return (condition(READY, "True", reason, message),)


def reconciling(reason: str, message: str, *, known: bool = True) -> tuple[Condition, ...]:
    """It is not as its spec asks yet, and goes on by itself; or that is not `known`."""
    truth: Truth = "False" if known else "Unknown"
    return (
        condition(READY, truth, reason, message),
        condition(RECONCILING, "True", reason, message),
    )


def stalled(reason: str, message: str) -> tuple[Condition, ...]:
    """It is not as its spec asks, and no waiting helps."""
    return (
        condition(READY, "False", reason, message),
        condition(STALLED, "True", reason, message),
    )


def merged(
    before: object, conditions: Iterable[Condition], now_ms: int, owned: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """These conditions as a status lists them, after others' ones that `before` lists.

    A condition whose status stays keeps its time of transition; a type in `owned` that is no longer
    said is left out.
    """
    said = {item.type: item for item in conditions}
    old = by_type(before)
    gone = set(owned) | said.keys()
    listed = [item for type_, item in old.items() if type_ not in gone]
    for type_, item in said.items():
        known = old.get(type_, {})
        since = known.get("lastTransitionTime") if known.get("status") == item.status else None
        listed.append({**item.to_mapping(), "lastTransitionTime": since or timestamp(now_ms)})
    return listed


def by_type(listed: object) -> dict[str, dict[str, Any]]:
    """The conditions that a status lists, by type; whoever wrote it, what is none is left out."""
    return {
        str(item["type"]): dict(item)
        for item in (listed if isinstance(listed, (list, tuple)) else ())
        if isinstance(item, Mapping) and "type" in item
    }
