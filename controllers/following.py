"""A space is read whole, then followed; what breaks is read whole again. Bursts are gathered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Generic, Protocol, TypeVar

from relay.ports import Change, Clock, Listing, Object, Space, SpaceError
from schemas.objects import BUILT_IN_KINDS, ObjectKey

RETRY_SECONDS = 1.0
QUIET_SECONDS = 0.02
"""How long it must be quiet within a burst."""
BURST_SECONDS = 0.2
GATHER_MAX_SECONDS = 0.2

T = TypeVar("T")


class AnotherSpace(SpaceError):
    """A space is not the one that was followed: what it lists says nothing of that one."""


class Follower(Protocol):
    """Who wants to know a space: first all of it, then each change, until it is listed again."""

    def believes(self, identity: str) -> bool:
        """Whether a space of this identity is the one to be followed."""
        ...

    def listed(self, objects: Mapping[ObjectKey, Object], revision: str) -> None: ...

    def changed(self, change: Change) -> None: ...


async def follow(space: Space, clock: Clock, follower: Follower) -> None:
    """Tell the follower of a space, until it is another one; then raises AnotherSpace."""
    while True:
        try:
            listing = await _believed(space, follower)
            follower.listed(_by_key(listing.objects), listing.revision)
            async for change in space.watch(listing.revision):
                follower.changed(change)
        except AnotherSpace:
            raise
        except SpaceError:
            # A watch that cannot go on, or a space that is away: in both cases it is listed again.
            await clock.sleep(RETRY_SECONDS)


async def _believed(space: Space, follower: Follower) -> Listing:
    """All of the space; raises AnotherSpace."""
    listing = await space.list()
    if not follower.believes(await space.identity()):
        raise AnotherSpace("AnotherSpace", "another space stands in its place")
    return listing


async def revision_of(space: Space) -> str:
    """What the space is at now."""
    # No kind is called so: the list is empty, and costs as little.
    return (await space.list("-", "-")).revision


def _by_key(objects: Iterable[Object]) -> dict[ObjectKey, Object]:
    listed = list(objects)
    kinds = BUILT_IN_KINDS.extended_by(listed)
    return {kinds.key_of(obj): obj for obj in listed}


class Gathering(Generic[T]):
    """Keys that wait for work: each once, however often it was added.

    One worker takes them; that it takes again says that it is done with what it took before. What
    comes alone waits `first` seconds for company.
    """

    def __init__(self, clock: Clock, first: float = 0.0) -> None:
        self._clock = clock
        self._first = first
        self._items: set[T] = set()
        self._added = asyncio.Event()
        self._taken_at = float("-inf")
        self._revision = 0
        self._taken = self._done = 0
        self._moved = asyncio.Event()

    def add(self, items: Iterable[T]) -> None:
        before = len(self._items)
        self._items.update(items)
        if len(self._items) > before:
            self._added.set()

    async def take(self) -> frozenset[T]:
        """Wait for the first, then until it is quiet for a moment, or has gone on for long.

        With more right behind it, or soon after, it is a burst.
        """
        self._done = self._taken
        self._moved.set()
        await self._added.wait()
        alone = self._clock.now().seconds - self._taken_at > BURST_SECONDS
        quiet, waited = self._first if alone else QUIET_SECONDS, 0.0
        while self._added.is_set() and waited < GATHER_MAX_SECONDS:
            self._added.clear()
            await self._clock.sleep(quiet)
            waited, quiet = waited + quiet, QUIET_SECONDS
        self._added.clear()
        self._taken_at = self._clock.now().seconds
        taken = frozenset(self._items)
        self._items.clear()
        self._taken += 1
        return taken

    def read_to(self, revision: str) -> None:
        """Note that all that a space held at this revision was added."""
        self._revision = _number(revision)
        self._moved.set()

    async def worked_off(self, revision: str = "") -> None:
        """Wait until a space was read to the revision, and what was added by then is done."""
        while self._revision < _number(revision):
            await self._move()
        last = self._taken + bool(self._items)
        while self._done < last:
            await self._move()

    async def _move(self) -> None:
        await self._moved.wait()
        self._moved.clear()


def _number(revision: str) -> int:
    """Revisions of one space grow in what stands before the first dot."""
    return int(revision.partition(".")[0] or 0)
