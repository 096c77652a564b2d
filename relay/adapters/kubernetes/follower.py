"""A follower of an API server: an informer for each interest, and what all of them told together.

An API server has no watch over all kinds, so whether everything up to a mark was told is a rule:
each informer's revision reached it, or its watch was open and silent for QUIET_SECONDS after the
server had answered with the mark, and then the server answered once more. A watch cache brings what
is written within milliseconds; the second answer tells a quiet server from one that stands still.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from relay.adapters.kubernetes.informer import InformerContext, KindInformer
from relay.adapters.kubernetes.silence import Silence
from relay.space_errors import SpaceError
from relay.space_port import (
    Bookmark,
    Interest,
    Interests,
    Kind,
    KindsServed,
    ObjectChange,
    SpaceEvent,
    Synced,
    Tell,
)
from relay.waiting import happens, work_group
from schemas.objects.objects import DEFINITIONS
from schemas.objects.source_objects import number_of

QUIET_SECONDS = 1.0
LOOK_SECONDS = 0.1
REFRESH_SECONDS = 600.0
BLIND_SECONDS = 60.0
"""The same where definitions may not be watched."""
AFTERWARDS_SECONDS = (0.1, 1.0, 4.0)
"""When kinds are asked for after a sign: a definition is served somewhat later than established."""
RETRY_SECONDS = 2.0
KINDS_ARE_MADE_BY = (
    Interest(*DEFINITIONS, metadata_only=True),
    Interest("apiregistration.k8s.io", "apiservices", metadata_only=True),
)


class Follower:
    """One call of Space.follow."""

    def __init__(self, context: InformerContext, interests: Interests, tell: Tell) -> None:
        self._context = context
        self._discovery = context.discovery
        self._clock = context.clock
        self._interests = interests
        self._tell_one = tell
        # Informers tell of their own accord, and what they tell is taken one by one.
        self._telling = asyncio.Lock()
        self._told_kinds: tuple[Kind, ...] | None = None
        self._some = asyncio.Event()
        self._wanted: frozenset[Interest] | None = frozenset()
        self._informers: dict[Interest, tuple[KindInformer, asyncio.Task[None]]] = {}
        self._marks: list[tuple[int, float]] = []
        self._marked = asyncio.Event()
        self._progress = 0
        self._signs = [
            KindInformer(interest, context, self._note_sign, lambda: None)
            for interest in KINDS_ARE_MADE_BY
        ]

    async def run(self) -> None:
        """Follow until cancelled."""
        async with work_group() as group:
            group.create_task(self._keep_kinds(), name="space:kinds")
            for sign in self._signs:
                name = f"space:{sign.interest.resource}"
                group.create_task(sign.run(), name=name)
            group.create_task(self._say_synced(), name="space:synced")
            group.create_task(self._say_progress(), name="space:progress")
            silence = Silence(self._clock, self._context.mark, self._heard_at, self._tell)
            group.create_task(silence.run(), name="space:silence")
            await self._learn()
            group.create_task(self._on_discovery(group), name="space:served")
            known = self._interests.wanted
            while True:
                self._adjust(group, known)
                known = await self._interests.changed(known)

    def await_mark(self, revision: str) -> None:
        """Tell as soon as everything up to the mark, which the server gave just now, was told."""
        self._marks.append((number_of(revision), self._clock.now().seconds))
        self._marked.set()

    def followed(self) -> Iterator[tuple[Kind, Interest]]:
        """The kinds of which something is told now, and what of them."""
        for informer, _ in self._informers.values():
            interest = informer.interest
            kind = self._discovery.resource(interest.group, interest.resource)
            if kind is not None and informer.served and informer.settled:
                yield kind, interest

    def _heard_at(self) -> float | None:
        """When any watch brought something last."""
        return max((informer.heard_at for informer, _ in self._informers.values()), default=None)

    async def _tell(self, event: SpaceEvent) -> None:
        async with self._telling:
            await self._tell_one(event)

    async def _tell_of(self, interest: Interest, event: SpaceEvent) -> None:
        """Tell it; what one selector takes no more and another one still does is not deleted."""
        if isinstance(event, ObjectChange) and event.kind == "deleted":
            others = [
                other
                for other in self._informers
                if other != interest and other.group_resource == interest.group_resource
            ]
            held = await self._context.get(event.key) if others else None
            if held and any(other.takes(event.key, held) for other in others):
                event = ObjectChange("modified", event.key, held)
        await self._tell(event)

    async def _learn(self) -> None:
        with suppress(SpaceError):
            await self._discovery.refresh()
        await self._tell_kinds()

    async def _tell_kinds(self) -> None:
        if self._discovery.known and self._told_kinds != self._discovery.kinds:
            self._told_kinds = self._discovery.kinds
            await self._tell(KindsServed(self._told_kinds))

    async def _on_discovery(self, group: asyncio.TaskGroup) -> None:
        while True:
            moved = self._discovery.moved
            await self._tell_kinds()
            if self._wanted is None:
                self._adjust(group, None)
            await moved.wait()

    def _adjust(self, group: asyncio.TaskGroup, wanted: frozenset[Interest] | None) -> None:
        """Have an informer for each interest, and no others."""
        self._wanted = wanted
        fresh = self._everything() if wanted is None else wanted
        for interest in self._informers.keys() - fresh:
            _, task = self._informers.pop(interest)
            task.cancel()
        for interest in fresh - self._informers.keys():
            tell = partial(self._tell_of, interest)
            informer = KindInformer(interest, self._context, tell, self._some.set)
            task = group.create_task(informer.run(), name=f"space:{interest.resource}")
            self._informers[interest] = (informer, task)
        self._some.set()

    def _everything(self) -> frozenset[Interest]:
        """All kinds that can be followed; what was followed and is no longer served stays one."""
        found = {
            Interest(kind.group, kind.resource)
            for kind in self._discovery.kinds
            if "watch" in kind.verbs
        }
        return frozenset(found | self._informers.keys())

    async def _say_synced(self) -> None:
        said: frozenset[Interest] | str | None = "nothing yet"
        bookmarks = 0
        while True:
            self._some.clear()
            wanted = self._wanted
            known = self._discovery.known or (wanted is not None and self._discovery.failure)
            settled = all(informer.settled for informer, _ in self._informers.values())
            if known and settled and wanted != said and wanted == self._interests.wanted:
                said = wanted
                await self._tell(Synced(wanted))
                continue
            brought = sum(informer.bookmarks for informer, _ in self._informers.values())
            if brought != bookmarks:
                bookmarks = brought
                await self._tell_least()
                continue
            await self._some.wait()

    async def _tell_least(self) -> None:
        """Tell how far all informers are, which those on quiet kinds know by bookmarks."""
        informers = [informer for informer, _ in self._informers.values()]
        least = min((informer.position for informer in informers if informer.served), default=0)
        if least > self._progress and all(informer.settled for informer in informers):
            self._progress = least
            await self._tell(Bookmark(str(least)))

    async def _say_progress(self) -> None:
        while True:
            self._marked.clear()
            while self._marks:
                mark, since = self._marks[0]
                if await self._reached(mark, since):
                    self._marks = [other for other in self._marks if other[0] > mark]
                    self._progress = max(mark, self._progress)
                    await self._tell(Bookmark(str(mark)))
                else:
                    await self._clock.sleep(LOOK_SECONDS)
            await self._marked.wait()

    async def _reached(self, mark: int, since: float) -> bool:
        """Whether everything up to the mark was told (see this module)."""
        behind = [
            informer
            for informer, _ in self._informers.values()
            if informer.served and informer.position < mark
        ]
        if not behind:
            return all(informer.settled for informer, _ in self._informers.values())
        heard = [informer.heard_at for informer in behind]
        if not self._quiet(behind, since):
            return False
        try:
            await self._context.mark()
        except SpaceError:
            return False
        return all(informer.watching for informer in behind) and heard == [
            informer.heard_at for informer in behind
        ]

    def _quiet(self, behind: list[KindInformer], since: float) -> bool:
        now = self._clock.now().seconds
        return all(
            informer.watching and now - max(since, informer.heard_at) >= QUIET_SECONDS
            for informer in behind
        )

    async def _note_sign(self, _event: SpaceEvent) -> None:
        self._discovery.due.set()

    async def _keep_kinds(self) -> None:
        """Ask for the kinds after each sign, after failures, and now and then anyway."""
        while True:
            wait = REFRESH_SECONDS if all(sign.served for sign in self._signs) else BLIND_SECONDS
            if self._discovery.failure is not None:
                wait = RETRY_SECONDS
            await happens(self._discovery.due, wait)
            self._discovery.due.clear()
            for seconds in AFTERWARDS_SECONDS:
                await self._clock.sleep(seconds)
                with suppress(SpaceError):
                    await self._discovery.refresh()
                if self._discovery.due.is_set():
                    break
