"""What keeps a Namespace or a definition from going that is being deleted."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing

from relay.objects.health import terminating
from relay.ports import Clock
from relay.space_errors import SpaceError
from relay.space_port import Object, Space
from relay.syncer.owned_objects import each_kind, instances
from schemas.objects.objects import DEFINITIONS, NAMESPACES, ObjectKey
from schemas.values.fields import conditions_of
from schemas.values.wording import some_of

NAMED_MAX = 3
KNOWN_SECONDS, LOOK_SECONDS_MAX = 15.0, 10.0
NAMESPACES_MAX = 256
_ENDING = re.compile(r"because it is being terminated$")
_TROUBLES = (
    "NamespaceDeletionDiscoveryFailure",
    "NamespaceDeletionGroupVersionParsingFailure",
    "NamespaceDeletionContentFailure",
    "NamespaceFinalizersRemaining",
    "NamespaceContentRemaining",
)
"""What a Namespace says of itself, the most telling first."""


class LingeringNamespaces:
    """What Namespaces wait for that go, as far as objects are refused for it."""

    def __init__(self, space: Space, clock: Clock) -> None:
        self._space = space
        self._clock = clock
        # What was found, and when.
        self._known: dict[str, tuple[float, str]] = {}
        self._looking = asyncio.Lock()

    async def explained(self, key: ObjectKey, said: str) -> str:
        """Why an object is refused, and what its Namespace waits for if it is refused for that."""
        if not _ENDING.search(said):
            return said
        async with self._looking:
            now = self._clock.now().seconds
            found = self._known.get(key.namespace)
            if found is None or now - found[0] >= KNOWN_SECONDS:
                if len(self._known) >= NAMESPACES_MAX:
                    self._known.clear()
                found = self._known[key.namespace] = (now, await self._look(key.namespace))
        return f"{said}; {found[1]}" if found[1] else said

    async def _look(self, name: str) -> str:
        key = ObjectKey(*NAMESPACES, "", name)
        try:
            async with asyncio.timeout(LOOK_SECONDS_MAX):
                live = await self._space.get(key)
                return await remaining_text(self._space, key, live) if live is not None else ""
        except (SpaceError, TimeoutError):
            return ""


async def ending_text(space: Space, key: ObjectKey, live: Object) -> str:
    """Since when an object is being deleted, and what that waits for; "" if it is not."""
    said, remaining = terminating(live), await remaining_text(space, key, live)
    return f"{said}; {remaining}" if remaining else said


async def remaining_text(space: Space, key: ObjectKey, live: Object) -> str:
    """What is left in a Namespace or of a kind, by finalizers; "" if nothing is seen."""
    hidden: list[tuple[str, str]] = []
    if not terminating(live):
        return ""
    if key.group_resource == NAMESPACES:
        inside = each_kind(space, hidden, namespace=key.name)
    elif key.group_resource == DEFINITIONS:
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
    conditions = conditions_of(live.get("status"))
    for condition in filter(None, map(conditions.get, _TROUBLES)):
        if condition.get("status") == "True":
            yield str(condition.get("message") or condition.get("reason"))
