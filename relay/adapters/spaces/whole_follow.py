"""Follows a space that has one revision and one watch over all that it holds, kind by kind."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing
from typing import Protocol

from relay.ports import Clock
from relay.space_errors import AnotherSpace, ResumeTooOld, SpaceError
from relay.space_port import (
    Bookmark,
    Interest,
    Interests,
    Kind,
    KindsServed,
    Listing,
    Object,
    ObjectChange,
    ObjectsListed,
    Synced,
    Tell,
)
from relay.waiting import work_group
from schemas.objects.objects import (
    BUILT_IN_KINDS,
    DEFINITIONS,
    ObjectKey,
    definition_of,
    served_versions,
)
from schemas.objects.source_objects import number_of

RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 0.5, 15.0
logger = logging.getLogger(__name__)
_Wanted = frozenset[Interest] | None


class WholeSpace(Protocol):
    """What is followed here: one list and one watch of everything."""

    async def identity(self) -> str: ...

    async def list(self, group: str = "", resource: str = "") -> Listing: ...

    def watch(self, since: str) -> AsyncGenerator[ObjectChange, None]: ...


async def follow_whole(space: WholeSpace, interests: Interests, clock: Clock, tell: Tell) -> None:
    """As Space.follow; raises AnotherSpace."""
    pause, follower = RETRY_SECONDS_MIN, _Follower(space, interests, tell)
    while True:
        try:
            await follower.run()
        except AnotherSpace:
            raise
        except SpaceError as broken:
            if follower.synced:
                pause = RETRY_SECONDS_MIN
            if broken.reason == "InternalError":
                # A person has to do something.
                logger.warning("%s", broken)
            if not isinstance(broken, ResumeTooOld):
                await clock.sleep(pause)
                pause = min(2 * pause, RETRY_SECONDS_MAX)


class _Follower:
    """One run: what was listed, and up to which revision by interest."""

    def __init__(self, space: WholeSpace, interests: Interests, tell: Tell) -> None:
        self.synced = False
        self._space = space
        self._interests = interests
        self._tell = tell
        self._identity = ""
        self._since: dict[Interest, int] = {}
        self._defined: dict[ObjectKey, Object] = {}
        # Else a list could be told after a change that is newer.
        self._telling = asyncio.Lock()

    async def run(self) -> None:
        """List, then tell changes until the watch breaks; raises SpaceError."""
        self.synced = False
        async with work_group() as group:
            wanted = self._interests.wanted
            listing = await self._list()
            found = by_key(listing.objects)
            self._defined = {
                key: obj for key, obj in found.items() if key.group_resource == DEFINITIONS
            }
            await self._tell(KindsServed(kinds_served(self._defined.values())))
            self._since.clear()
            if wanted is None:
                await self._tell(ObjectsListed(None, found, listing.revision))
            for interest in wanted or ():
                await self._begin(interest, found, listing.revision)
            await self._tell(Bookmark(listing.revision))
            await self._tell(Synced(wanted))
            self.synced = True
            group.create_task(self._watch(listing.revision), name="space:watch")
            group.create_task(self._widen(wanted), name="space:interests")

    async def _list(self) -> Listing:
        listing, identity = await self._space.list(), await self._space.identity()
        if self._identity not in ("", identity):
            raise AnotherSpace("AnotherSpace", "another space stands in its place")
        self._identity = identity
        return listing

    async def _begin(
        self, interest: Interest, objects: Mapping[ObjectKey, Object], revision: str
    ) -> None:
        taken = {key: obj for key, obj in objects.items() if interest.takes(key, obj)}
        self._since[interest] = number_of(revision)
        await self._tell(ObjectsListed(interest, taken, revision))

    async def _widen(self, wanted: _Wanted) -> None:
        """List what is wanted newly, beside the watch that goes on."""
        while True:
            wanted = await self._interests.changed(wanted)
            async with self._telling:
                for gone in self._since.keys() - (wanted or ()):
                    del self._since[gone]
                fresh = (wanted or frozenset()) - self._since.keys()
                if len(fresh) == 1:
                    (interest,) = fresh
                    listing = await self._space.list(interest.group, interest.resource)
                    found = {_key_in(interest, obj): obj for obj in listing.objects}
                    await self._begin(interest, found, listing.revision)
                elif fresh:
                    listing = await self._list()
                    found = by_key(listing.objects)
                    for interest in fresh:
                        await self._begin(interest, found, listing.revision)
                await self._tell(Synced(wanted))

    async def _watch(self, since: str) -> None:
        async with aclosing(self._space.watch(since)) as changes:
            async for change in changes:
                async with self._telling:
                    await self._pass_on(change)
        raise ResumeTooOld("Expired", "the watch ended: list again")

    async def _pass_on(self, change: ObjectChange) -> None:
        if change.key.group_resource == DEFINITIONS:
            self._defined.pop(change.key, None)
            if change.kind != "deleted":
                self._defined[change.key] = change.object
            await self._tell(KindsServed(kinds_served(self._defined.values())))
        said = change if self._interests.wanted is None else self._of_interest(change)
        await self._tell(said or Bookmark(change.revision))

    def _of_interest(self, change: ObjectChange) -> ObjectChange | None:
        """The change as its interests see it; None if it is of no interest.

        What a selector does not take is told as deleted, whether it was told of or not: of an
        object that came and went, or lost its labels, between two looks this is the only word.
        """
        said: ObjectChange | None = None
        position = number_of(change.revision)
        for interest, since in self._since.items():
            if position <= since or not interest.is_of(change.key):
                continue
            if change.kind == "deleted" or interest.takes(change.key, change.object):
                return change
            said = ObjectChange("deleted", change.key, change.object, change.revision)
        return said


def kinds_served(definitions: Iterable[Object]) -> tuple[Kind, ...]:
    """The kinds that are built into Kubernetes, and those that these definitions bring."""
    found = {
        (group, entry.resource): Kind(
            group, versions[0], entry.resource, kind, entry.namespaced, versions
        )
        for (group, kind), entry in BUILT_IN_KINDS.items()
        if (versions := served_versions(group, kind))
    }
    for said in filter(None, map(definition_of, definitions)):
        resource, namespaced = said.entry.resource, said.entry.namespaced
        versions = tuple(said.versions)
        version = versions[0] if versions else ""
        found[said.group, resource] = Kind(
            said.group, version, resource, said.kind, namespaced, versions
        )
    return tuple(found.values())


def by_key(objects: Iterable[Object]) -> dict[ObjectKey, Object]:
    """The objects of one space under their keys; definitions among them tell of kinds."""
    listed = list(objects)
    kinds = BUILT_IN_KINDS.extended_by(listed)
    return {kinds.key_of(obj): obj for obj in listed}


def _key_in(interest: Interest, obj: Object) -> ObjectKey:
    metadata = obj["metadata"]
    namespace = metadata.get("namespace", "")
    return ObjectKey(interest.group, interest.resource, namespace, metadata["name"])
