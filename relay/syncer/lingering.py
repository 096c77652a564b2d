"""What keeps a Namespace or a definition from going that is being deleted."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from relay.objects.health import terminating
from relay.ports import Object, Space, SpaceError
from relay.syncer.owned_objects import each_kind, instances
from relay.syncer.plan import NAMESPACES
from schemas.objects import CRD_GROUP, ObjectKey
from schemas.wording import some_of

NAMED_MAX = 3
_DEFINITIONS = (CRD_GROUP, "customresourcedefinitions")
_TROUBLES = (
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceFinalizersRemaining",
    "NamespaceContentRemaining",
)
"""What a Namespace says of itself, the most telling first."""


async def ending_text(space: Space, key: ObjectKey, live: Object) -> str:
    """Since when an object is being deleted, and what that waits for; "" if it is not."""
    said, remaining = terminating(live), await remaining_text(space, key, live)
    return f"{said}; {remaining}" if remaining else said


async def remaining_text(space: Space, key: ObjectKey, live: Object) -> str:
    """What is left in a Namespace that goes, or of a kind, and by which finalizers; "" if nothing.

    Also if nobody may see it.
    """
    hidden: list[tuple[str, str]] = []
    if not terminating(live):
        return ""
    if key.group_resource == NAMESPACES:
        inside = each_kind(space, hidden, namespace=key.name)
    elif key.group_resource == _DEFINITIONS:
        inside = instances(space, hidden, key.name)
    else:
        return ""
    try:
        held = await _held(inside)
    except SpaceError:
        held = []
    if held:
        return f"it waits for {some_of(held, NAMED_MAX)}"
    return next(_said_of_itself(live), "")


async def _held(inside: AsyncGenerator[Mapping[ObjectKey, Object], None]) -> list[str]:
    """Those that finalizers hold, some of them by name; else those that are there at all."""
    held: list[str] = []
    others: list[str] = []
    async with aclosing(inside) as some:
        async for objects in some:
            for key, obj in objects.items():
                finalizers = obj["metadata"].get("finalizers")
                if finalizers:
                    held.append(f"{key} ({', '.join(map(str, finalizers))})")
                elif obj["metadata"].get("deletionTimestamp"):
                    others.append(str(key))
            if len(held) > NAMED_MAX:
                break
    return held or others


def _said_of_itself(live: Object) -> Iterator[str]:
    status: Any = live.get("status")
    listed = status.get("conditions") if isinstance(status, Mapping) else None
    conditions = {
        str(each.get("type")): each
        for each in (listed if isinstance(listed, (list, tuple)) else ())
        if isinstance(each, Mapping) and each.get("status") == "True"
    }
    for name in _TROUBLES:
        if name in conditions:
            yield str(conditions[name].get("message") or conditions[name].get("reason"))
