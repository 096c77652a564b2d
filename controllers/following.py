"""A space is read whole, then followed; bursts of what there is to do are gathered."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Generic, Protocol, TypeVar

from relay.ports import (
    AnotherSpace,
    Change,
    Clock,
    Interest,
    Interests,
    Kind,
    Listed,
    Object,
    Progress,
    Served,
    Space,
    SpaceError,
    SpaceEvent,
    Synced,
    Unserved,
    number_of,
)
from schemas.objects import ObjectKey

log = logging.getLogger("leafcast.controllers")

RETRY_SECONDS = 1.0
AWAY_SECONDS = 2.0
QUIET_SECONDS = 0.02
"""How long it must be quiet within a burst."""
BURST_SECONDS = 0.2
GATHER_MAX_SECONDS = 0.2

T = TypeVar("T")
KindName = tuple[str, str]
"""Group and resource."""


class Reconciler(Protocol):
    """Who wants to know a space: first all of it, then each change."""

    def believes(self, identity: str) -> bool:
        """Whether a space of this identity is the one to be followed."""
        ...

    def served(self, kinds: tuple[Kind, ...]) -> None:
        """Take the kinds that the space serves now."""
        ...

    def not_served(self, told: Unserved) -> None:
        """Take it that nothing can be told of a kind now."""
        ...

    def ready(self, first: Mapping[ObjectKey, Object], /) -> bool:
        """Whether these are all that is of interest: they may tell of more, to be listed first."""
        ...

    def listed(self, objects: Mapping[ObjectKey, Object], kind: KindName | None) -> None:
        """Take all objects of a kind, or, if none is named, all that the interests cover."""
        ...

    def changed(self, change: Change) -> None: ...

    def synced(self) -> None:
        """All that is of interest now was told."""
        ...

    def read_to(self, revision: str) -> None:
        """All that had happened at this revision was told."""
        ...


async def identity_of(space: Space, clock: Clock) -> str:
    """Who a space is, once it can be asked; raises AnotherSpace."""
    while True:
        try:
            return await space.identity()
        except AnotherSpace:
            raise
        except SpaceError as error:
            # One that is away keeps nothing else from its work.
            log.warning("a space cannot be reached: %s", error)
            await clock.sleep(AWAY_SECONDS)


class Informer:
    """Follows a space for a reconciler; what comes before the first sync is told as one list.

    That something is not there any more is believed only of the space itself: a server whose store
    was emptied tells deletions, too, and has lost its identity with the rest.
    """

    def __init__(
        self, space: Space, interests: Interests, reconciler: Reconciler, clock: Clock
    ) -> None:
        self._space = space
        self._interests = interests
        self._reconciler = reconciler
        self._clock = clock
        self._first: dict[ObjectKey, Object] | None = {}
        self._synced: frozenset[Interest] | None = frozenset()
        self._read = ""

    async def run(self) -> None:
        """Follow until cancelled; raises AnotherSpace."""
        await self._space.follow(self._interests, self._tell)

    @property
    def synced(self) -> bool:
        """Whether all that is of interest now was told."""
        return self._synced == self._interests.wanted

    async def _tell(self, event: SpaceEvent) -> None:
        match event:
            case Served(kinds):
                self._reconciler.served(kinds)
            case Unserved():
                self._reconciler.not_served(event)
            case Listed(interest, objects):
                await self._list(interest, objects)
            case Change():
                await self._change(event)
            case Synced(wanted):
                # Of what became of interest meanwhile this is said again, once it was listed.
                if wanted == self._interests.wanted:
                    await self._sync()
            case Progress():
                pass
        if isinstance(event, Change | Listed | Progress):
            self._read = max(self._read, event.revision, key=number_of)
        if self._first is None and self.synced:
            self._reconciler.read_to(self._read)

    async def _list(self, interest: Interest | None, objects: Mapping[ObjectKey, Object]) -> None:
        if self._first is not None:
            self._first |= objects
        else:
            await self._believe()
            kind = (interest.group, interest.resource) if interest else None
            self._reconciler.listed(objects, kind)

    async def _change(self, change: Change) -> None:
        if self._first is None and change.kind == "deleted":
            await self._believe()
        if self._first is None:
            self._reconciler.changed(change)
        elif change.kind == "deleted":
            self._first.pop(change.key, None)
        else:
            self._first[change.key] = change.object

    async def _sync(self) -> None:
        if self._first is not None:
            if not self._reconciler.ready(self._first):
                return
            # Of all that was listed so far one answer tells, as it is given after that.
            await self._believe_at_last()
            first, self._first = self._first, None
            self._reconciler.listed(first, None)
        self._synced = self._interests.wanted
        self._reconciler.synced()

    async def _believe_at_last(self) -> None:
        """As `_believe`; a space that cannot be asked is waited for."""
        while True:
            try:
                return await self._believe()
            except AnotherSpace:
                raise
            except SpaceError:
                await self._clock.sleep(RETRY_SECONDS)

    async def _believe(self) -> None:
        """Raises AnotherSpace, and SpaceError if it cannot be asked."""
        if not self._reconciler.believes(await self._space.identity()):
            raise AnotherSpace("AnotherSpace", "another space stands in its place")


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
        self._revision = number_of(revision)
        self._moved.set()

    async def read(self, revision: str) -> None:
        """Wait until a space was read to the revision."""
        while self._revision < number_of(revision):
            await self._move()

    async def worked_off(self, revision: str = "") -> None:
        """Wait until a space was read to the revision, and what was added by then is done."""
        await self.read(revision)
        last = self._taken + bool(self._items)
        while self._done < last:
            await self._move()

    async def _move(self) -> None:
        await self._moved.wait()
        self._moved.clear()
