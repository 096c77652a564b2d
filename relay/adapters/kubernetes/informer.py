"""One interest followed: listed in pages, watched with bookmarks, resumed, listed again.

Nothing of the objects is kept here, only up to where they were told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from relay.adapters.kubernetes import answers, paths, refusals
from relay.adapters.kubernetes.api_client import ApiClient
from relay.adapters.kubernetes.discovery import Discovery
from relay.adapters.kubernetes.stored_versions import StandsStill, WatchGuard, other_versions
from relay.ports import Clock, Dice
from relay.space_errors import AnotherSpace, SpaceError
from relay.space_port import Interest, Kind, Object, ObjectChange, ObjectsListed, Tell, Unserved
from relay.waiting import until_due, work_group
from schemas.objects.objects import ObjectKey, kind_name
from schemas.objects.source_objects import number_of

PAGE_OBJECTS_MAX = 500
LISTS_AT_ONCE = 4
"""Lists that are read, and held whole until they are told, at once."""
WATCH_SECONDS_MIN = 240.0
SHORT_WATCH_SECONDS = 1.0
OUTAGE_SECONDS_MAX = 10.0
"""How long a watch may be broken until its interest counts as unserved."""
REFUSED_SECONDS_MAX = 2.0
"""The same where the server does answer, and refuses it."""
PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX, LASTING_PAUSE_SECONDS = 0.25, 10.0, 20.0

_NOT_SERVED = (refusals.NOT_FOUND, refusals.NOT_ALLOWED)
_REFUSED = (refusals.FORBIDDEN, refusals.UNAUTHORIZED)
_AWAY = (refusals.UNAVAILABLE, refusals.TOO_MANY)
# What no other version of a kind changes. A server says that there are too many requests also while
# it cannot convert what it has.
_OF_ALL_VERSIONS = (*_NOT_SERVED, *_REFUSED, refusals.UNAVAILABLE, refusals.EXPIRED)


@dataclass(frozen=True, slots=True)
class InformerContext:
    """What all informers of one follower share."""

    api: ApiClient
    discovery: Discovery
    clock: Clock
    dice: Dice
    # Raises AnotherSpace if it is another one.
    same_space: Callable[[], Awaitable[None]]
    # A revision of now.
    mark: Callable[[], Awaitable[str]]
    get: Callable[[ObjectKey], Awaitable[Object | None]]
    # Bounds what is held.
    lists: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LISTS_AT_ONCE))


class KindInformer:
    """Tells of one interest until cancelled, and notes when it came further or is settled."""

    def __init__(
        self, interest: Interest, context: InformerContext, tell: Tell, note: Callable[[], None]
    ) -> None:
        self.interest = interest
        self.settled = False
        """Whether it was Listed or is Unserved."""
        self.watching = False
        self.position = 0
        """The number of the revision up to which everything was told."""
        self.bookmarks = 0
        """How many came: each says that the server has told everything up to it."""
        self.heard_at = 0.0
        """When it last was told anything, or its watch began."""
        self._context = context
        self._tell = tell
        self._note = note
        self._revision = ""
        self._unserved: Unserved | None = None
        self._broken_since: float | None = None
        self._pause = PAUSE_SECONDS_MIN
        # Sees whether what a webhook converts is told; it is not asked again if that stood still.
        self._guard: WatchGuard | None = None
        self._stood_still = False

    async def run(self) -> None:
        """Follow; every failure but AnotherSpace is waited out."""
        discovery = self._context.discovery
        while True:
            moved = discovery.moved
            kind = discovery.resource(self.interest.group, self.interest.resource)
            if kind is None or "watch" not in kind.verbs:
                await self._tell_unserved(*self._why_not(kind))
                self._revision = ""
                await moved.wait()
                continue
            try:
                await self._context.same_space()
                if not self._revision:
                    kind = await self._list(discovery.preferred(kind))
                await self._watch(kind)
            except AnotherSpace:
                raise
            except StandsStill:
                self._revision, self._stood_still = "", True
            except SpaceError as error:
                await self._failed(error, moved)

    def _why_not(self, kind: Kind | None) -> tuple[str, str]:
        discovery, group, resource = self._context.discovery, *self.interest.group_resource
        if kind is not None:
            return refusals.NOT_ALLOWED, f"{kind_name(group, resource)} cannot be watched"
        if not discovery.known and discovery.failure:
            return discovery.failure.reason, discovery.failure.message
        try:
            discovery.check_groups(group)
        except SpaceError as error:
            return error.reason, error.message
        return refusals.NOT_FOUND, refusals.no_type(group, resource)

    async def _list(self, kind: Kind) -> Kind:
        """Tell all there is; the kind in the version in which it could be listed."""
        context = self._context
        async with context.lists:
            others, is_converted = await other_versions(context.api, kind)
            read, objects, revision = await self._list_in(kind, others)
            context.discovery.read_as(read)
            self._stood_still = False
            self._guard = None
            if is_converted and others:
                other = others[0] if read == kind else kind
                self._guard = WatchGuard(context.api, context.clock, other)
            self._revision = revision
            found = {self._key(obj): obj for obj in objects}
            await self._tell(ObjectsListed(self.interest, found))
        self._unserved = None
        self.settled = True
        self._reached(self._revision)
        return read

    async def _list_in(
        self, kind: Kind, others: tuple[Kind, ...]
    ) -> tuple[Kind, list[Object], str]:
        """All there is, in the first version that can be read; raises what is said of the first."""
        accept = paths.METADATA_LIST if self.interest.metadata_only else paths.JSON
        place = self.interest.namespace, self.interest.name
        versions = (*others, kind) if self._stood_still else (kind, *others)
        failure: SpaceError | None = None
        for version in versions:
            try:
                selector = self._selector()
                return version, *await list_pages(
                    self._context.api, version, selector, accept, *place
                )
            except SpaceError as error:
                failure = failure or error
                if error.reason in _OF_ALL_VERSIONS:
                    break
        assert failure is not None
        raise failure

    async def _watch(self, kind: Kind) -> None:
        """Tell what changes until the watch ends, or does not tell what there is."""
        guard, query = self._guard, self._query()
        if guard is None:
            await self._watch_in(kind, query)
            return
        guard.told = self.position
        async with work_group() as group:
            guarding = group.create_task(guard.watch(self.interest.namespace, query))
            await self._watch_in(kind, query)
            guarding.cancel()

    def _query(self) -> list[tuple[str, str]]:
        seconds = WATCH_SECONDS_MIN * (1 + self._context.dice.fraction())
        return [
            ("watch", "1"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", self._revision),
            ("timeoutSeconds", str(int(seconds))),
            ("labelSelector", self._selector()),
            ("fieldSelector", named(self.interest.name)),
        ]

    async def _watch_in(self, kind: Kind, query: list[tuple[str, str]]) -> None:
        context = self._context
        begun = context.clock.now().seconds
        accept = paths.METADATA if self.interest.metadata_only else paths.JSON
        path = paths.collection_path(kind, self.interest.namespace)
        try:
            async with context.api.stream(path, query, accept=accept) as events:
                self.watching, self.heard_at = True, context.clock.now().seconds
                self._broken_since = None
                async for event in events:
                    await self._take(event)
        finally:
            self.watching = False
            context.api.doubt()
        if context.clock.now().seconds - begun < SHORT_WATCH_SECONDS:
            await self._wait(PAUSE_SECONDS_MAX)
        else:
            self._pause = PAUSE_SECONDS_MIN

    async def _take(self, answer: Mapping[str, Any]) -> None:
        event = answers.event_of(answer)
        if event.change is None:
            self.bookmarks += 1
        else:
            if event.change == "deleted":
                # So does a server tell it whose store was emptied.
                self._context.api.doubt()
            await self._tell(ObjectChange(event.change, self._key(event.object), event.object))
        self._reached(event.revision)
        self._pause = PAUSE_SECONDS_MIN

    def _key(self, obj: Object) -> ObjectKey:
        return answers.key_of(self.interest.group, self.interest.resource, obj)

    def _reached(self, revision: str) -> None:
        self._revision = revision or self._revision
        self.position = number_of(self._revision)
        if self._guard is not None:
            self._guard.told = self.position
        self.heard_at = self._context.clock.now().seconds
        self._note()

    async def _failed(self, error: SpaceError, moved: asyncio.Event) -> None:
        now = self._context.clock.now().seconds
        if self._broken_since is None:
            self._broken_since = now
        longest = PAUSE_SECONDS_MAX
        lasting = error.reason in (*_NOT_SERVED, *_REFUSED)
        if error.reason in (refusals.EXPIRED, "Timeout"):
            # What happened since is no longer known, or the server's own revision went back.
            self._revision = ""
        elif lasting or not self.settled:
            self._revision = ""
            if error.reason in _NOT_SERVED:
                self._context.discovery.due.set()
                await self._tell_unserved(*self._why_not(None))
            else:
                await self._tell_unserved(error.reason, error.message)
            longest = LASTING_PAUSE_SECONDS if lasting else PAUSE_SECONDS_MAX
        elif now - self._broken_since >= self._patience(error):
            self._revision = ""
            await self._tell_unserved(error.reason, error.message)
        await self._wait(longest, moved)

    @staticmethod
    def _patience(error: SpaceError) -> float:
        if error.reason in _AWAY:
            return OUTAGE_SECONDS_MAX
        return min(OUTAGE_SECONDS_MAX, REFUSED_SECONDS_MAX)

    async def _wait(self, longest: float, moved: asyncio.Event | None = None) -> None:
        """Pause, each time longer, by chance between half of it and all; less if kinds change."""
        seconds = self._pause * (0.5 + self._context.dice.fraction() / 2)
        self._pause = min(2 * self._pause, longest)
        if moved is None:
            await self._context.clock.sleep(seconds)
            return
        clock = self._context.clock
        await until_due(moved, clock, clock.now().seconds + seconds)

    async def _tell_unserved(self, reason: str, message: str) -> None:
        said = Unserved(self.interest, reason, message)
        if self._unserved != said:
            self._unserved = said
            await self._tell(said)
        self.settled = True
        self._note()

    def _selector(self) -> str:
        return self.interest.selector.to_query() if self.interest.selector else ""

    @property
    def served(self) -> bool:
        """Whether it is told of; else nothing can be said of how far it is."""
        return self._unserved is None


async def list_pages(
    api: ApiClient,
    kind: Kind,
    selector: str = "",
    accept: str = paths.JSON,
    namespace: str = "",
    name: str = "",
) -> tuple[list[Object], str]:
    """All objects of a kind at one revision, or the one of this name, and that revision."""
    limit = PAGE_OBJECTS_MAX
    while True:
        objects: list[Object] = []
        revision, more = "", ""
        try:
            while True:
                query = (
                    ("limit", str(limit) if limit else ""),
                    ("continue", more),
                    ("labelSelector", selector),
                    ("fieldSelector", named(name)),
                )
                path = paths.collection_path(kind, namespace)
                answer = await api.request("GET", path, query, accept=accept)
                page = answers.page_of(kind, answer)
                objects.extend(page.objects)
                revision, more = revision or page.revision, page.more
                if not more:
                    return objects, revision
        except SpaceError as error:
            if error.reason != refusals.EXPIRED or not more:
                raise
            # The pages took so long that their revision is forgotten: all at once, then.
            limit = 0


def named(name: str) -> str:
    """The query for one object by its name: who may list no others may list that."""
    return f"metadata.name={name}" if name else ""
