"""A space is read whole, then followed; what breaks is read whole again. Bursts are gathered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Generic, Protocol, TypeVar

from relay.ports import Change, Clock, Object, Space, SpaceError
from schemas.objects import BUILT_IN_KINDS, ObjectKey

RETRY_SECONDS = 1.0
FIRST_SECONDS, QUIET_SECONDS = 0.002, 0.02
"""How long it must be quiet: for what comes alone, and within a burst."""
BURST_SECONDS = 0.2
GATHER_MAX_SECONDS = 0.2

T = TypeVar("T")


class Follower(Protocol):
    """Who wants to know a space: first all of it, then each change, until it is listed again."""

    def listed(self, objects: Mapping[ObjectKey, Object]) -> None: ...

    def changed(self, change: Change) -> None: ...


async def follow(space: Space, clock: Clock, follower: Follower) -> None:
    """Tell the follower of a space, for ever."""
    while True:
        try:
            listing = await space.list()
            follower.listed(_by_key(listing.objects))
            async for change in space.watch(listing.revision):
                follower.changed(change)
        except SpaceError:
            # A watch that cannot go on, or a space that is away: in both cases it is listed again.
            await clock.sleep(RETRY_SECONDS)


def _by_key(objects: Iterable[Object]) -> dict[ObjectKey, Object]:
    listed = list(objects)
    kinds = BUILT_IN_KINDS.extended_by(listed)
    return {kinds.key_of(obj): obj for obj in listed}


class Gathering(Generic[T]):
    """Keys that wait for work: each once, however often it was added."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._items: set[T] = set()
        self._added = asyncio.Event()
        self._taken_at = float("-inf")

    def add(self, items: Iterable[T]) -> None:
        before = len(self._items)
        self._items.update(items)
        if len(self._items) > before:
            self._added.set()

    async def take(self) -> frozenset[T]:
        """Wait for the first, then until it is quiet for a moment, or has gone on for long.

        What comes alone waits but briefly; with more right behind it, or soon after, it is a burst.
        """
        await self._added.wait()
        alone = self._clock.now().seconds - self._taken_at > BURST_SECONDS
        quiet, waited = FIRST_SECONDS if alone else QUIET_SECONDS, 0.0
        while self._added.is_set() and waited < GATHER_MAX_SECONDS:
            self._added.clear()
            await self._clock.sleep(quiet)
            waited, quiet = waited + quiet, QUIET_SECONDS
        self._added.clear()
        self._taken_at = self._clock.now().seconds
        taken = frozenset(self._items)
        self._items.clear()
        return taken
