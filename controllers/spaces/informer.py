"""A space is read whole, then followed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from controllers.work_queue import RETRY_SECONDS, WorkQueue
from relay.ports import Clock
from relay.space_errors import NOT_FOUND, AnotherSpace, SpaceError
from relay.space_port import (
    Bookmark,
    Interest,
    Interests,
    Kind,
    KindsServed,
    Object,
    ObjectChange,
    ObjectsListed,
    ServerUnanswered,
    Space,
    SpaceEvent,
    Synced,
    Unserved,
)
from schemas.objects.objects import GroupResource, ObjectKey
from schemas.objects.source_objects import number_of

log = logging.getLogger("leafcast.controllers")

AWAY_SECONDS = 2.0
NOT_LISTED = "the space is not read yet"

T = TypeVar("T")


class SpaceReconciler(Generic[T]):
    """Who reconciles what a space says: it is told first all of it, then each change."""

    def __init__(self, space: Space, clock: Clock, queue: WorkQueue[T]) -> None:
        self.space = space
        self.clock = clock
        self._queue = queue
        # Of the present run.
        self._informer: SpaceInformer | None = None

    def served(self, kinds: tuple[Kind, ...]) -> None:
        """Take the kinds that the space serves now."""

    def not_served(self, event: Unserved) -> None:
        """Take it that nothing can be told of a kind now."""

    async def ready(self, _first: Mapping[ObjectKey, Object], /) -> bool:
        """Whether these are all that is of interest: they may tell of more, to be listed first."""
        return True

    def listed(self, objects: Mapping[ObjectKey, Object], kind: GroupResource | None) -> None:
        """Take all objects of a kind, or, if none is named, all that the interests cover."""
        raise NotImplementedError

    def changed(self, change: ObjectChange) -> None:
        """Take a change of the space."""
        raise NotImplementedError

    def synced(self) -> None:
        """All that is of interest now was told."""

    def read_to(self, revision: str) -> None:
        """Note that all that the space held at this revision was told."""
        self._queue.read_to(revision)

    async def seen(self) -> None:
        """Wait until what the space holds now is known; the ledger may not say it yet."""
        await self._queue.read(await self.space.revision())

    async def caught_up(self) -> None:
        """Wait until the ledger says what the space holds now."""
        await self._queue.wait_caught_up(await self.space.revision())

    def unread(self, kinds: Iterable[GroupResource]) -> str:
        """What keeps it from being told of these kinds now; "" if nothing does."""
        return self._informer.unready(kinds) if self._informer else NOT_LISTED


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


@dataclass(eq=False)
class SpaceInformer:
    """Follows the space of an identity; what comes before the first sync is told as one list.

    That something is not there any more is believed only of the space itself: a server whose store
    was emptied tells deletions, too, and has lost its identity with the rest.
    """

    _space: Space
    _identity: str
    _interests: Interests
    _handler: SpaceReconciler[Any]
    _clock: Clock
    _first: dict[ObjectKey, Object] | None = field(init=False, default_factory=dict)
    _synced: frozenset[Interest] | None = field(init=False, default=frozenset())
    _read: str = field(init=False, default="")
    _unserved: dict[GroupResource, str] = field(init=False, default_factory=dict)
    # Kinds that are shown now; of a space that is told whole all are.
    _shown: set[GroupResource] = field(init=False, default_factory=set)
    _is_whole: bool = field(init=False, default=False)
    listed_at: str = field(init=False, default="")
    """A revision of the space at which it was asked who it is because of a list."""

    async def run(self) -> None:
        """Follow until cancelled; raises AnotherSpace."""
        await self._space.follow(self._interests, self._tell)

    @property
    def synced(self) -> bool:
        """Whether all that is of interest now was told."""
        return self._synced == self._interests.wanted

    def shown(self, kinds: AbstractSet[GroupResource]) -> AbstractSet[GroupResource]:
        """Which of these kinds were listed whole, and are told of since."""
        return kinds if self._is_whole else kinds & self._shown

    def unready(self, kinds: Iterable[GroupResource]) -> str:
        """What keeps the space, or one of these kinds, from being told of; "" if nothing does."""
        if self._first is not None:
            return NOT_LISTED
        return next((why for kind in kinds if (why := self._unserved.get(kind))), "")

    async def _tell(self, event: SpaceEvent) -> None:
        match event:
            case KindsServed(kinds):
                self._handler.served(kinds)
            case Unserved():
                self._not_served(event)
            case ObjectsListed(interest, objects):
                await self._list(interest, objects)
            case ObjectChange():
                await self._change(event)
            case Synced(wanted):
                # Of what became of interest meanwhile this is said again, once it was listed.
                if wanted == self._interests.wanted:
                    await self._sync()
            case Bookmark() | ServerUnanswered():
                pass
        if isinstance(event, ObjectChange | ObjectsListed | Bookmark):
            self._read = max(self._read, event.revision, key=number_of)
        if self._first is None and self.synced:
            self._handler.read_to(self._read)

    def _not_served(self, event: Unserved) -> None:
        self._shown.discard(event.interest.group_resource)
        if event.reason != NOT_FOUND:
            why = f"{event.reason}: {event.message}"
            self._unserved[event.interest.group_resource] = why
        self._handler.not_served(event)

    async def _list(self, interest: Interest | None, objects: Mapping[ObjectKey, Object]) -> None:
        kind = interest.group_resource if interest else None
        if kind is None:
            self._is_whole = True
        else:
            self._shown.add(kind)
        if self._first is not None:
            self._first |= objects
        else:
            await self._believe_list()
            self._handler.listed(objects, kind)
        if kind is not None:
            self._unserved.pop(kind, None)

    async def _change(self, change: ObjectChange) -> None:
        if self._first is None and change.kind == "deleted":
            await self._believe()
        if self._first is None:
            self._handler.changed(change)
        elif change.kind == "deleted":
            self._first.pop(change.key, None)
        else:
            self._first[change.key] = change.object

    async def _sync(self) -> None:
        if self._first is not None:
            if not await self._handler.ready(self._first):
                return
            # Of all that was listed so far one answer tells, as it is given after that.
            await self._believe_at_last()
            first, self._first = self._first, None
            self._handler.listed(first, None)
        self._synced = self._interests.wanted
        self._handler.synced()

    async def _believe_at_last(self) -> None:
        """As `_believe`; a space that cannot be asked is waited for."""
        while True:
            try:
                return await self._believe_list()
            except AnotherSpace:
                raise
            except SpaceError:
                await self._clock.sleep(RETRY_SECONDS)

    async def _believe_list(self) -> None:
        """As `_believe`, and note how far the space is."""
        await self._believe()
        self.listed_at = await self._space.revision()

    async def _believe(self) -> None:
        """Raises AnotherSpace, and SpaceError if it cannot be asked."""
        if await self._space.identity() != self._identity:
            raise AnotherSpace("AnotherSpace", "another space stands in its place")
