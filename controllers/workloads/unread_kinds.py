"""Keeps what is known of the kinds that a space does not show: yet, now, or in some Namespaces."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import compress

from controllers.core.workloads.space import Workloads
from controllers.core.workloads.unread_kinds import UNAVAILABLE, UnreadKind, narrowed_to
from relay.ports import Clock
from relay.space_errors import NOT_FOUND, SpaceError
from relay.space_port import Kind, Space, Unserved
from relay.waiting import some_at_once
from schemas.objects.objects import GroupResource

NOT_LISTED_SECONDS = 1.0
"""So long a kind may take to be listed until placements say that it is not."""
LOOK_SECONDS = 20.0
"""How often to look in which Namespaces there is nothing of a kind that cannot be listed."""
NAMESPACES_MAX = 64
"""In so many at most, in the order of their names: in others there may be something."""
LOOKS_AT_ONCE = 8


@dataclass(eq=False)
class KindReading:
    """Of one space; `_tell` hears that placements are concerned in another way."""

    _space: Space
    _clock: Clock
    _workloads: Callable[[], Workloads]
    _tell: Callable[[], None]
    _namespaced: dict[GroupResource, bool] = field(init=False, default_factory=dict)
    _listed: set[GroupResource] = field(init=False, default_factory=set)
    # Since when kinds are waited for.
    _waited: dict[GroupResource, float] = field(init=False, default_factory=dict)
    _some: asyncio.Event = field(init=False, default_factory=asyncio.Event)
    _looked_at: float = field(init=False, default=float("-inf"))

    def followed(self, kinds: Iterable[Kind]) -> None:
        """Wait for these kinds, which are served, if they were not listed yet."""
        now, unread = self._clock.now().seconds, self._workloads().unread
        for kind in kinds:
            name = kind.group_resource
            self._namespaced[name] = kind.namespaced
            if name not in self._listed and name not in unread:
                self._waited.setdefault(name, now)
                self._some.set()

    def listed(self, kinds: Iterable[GroupResource]) -> None:
        """Take it that these kinds were listed, and are told of."""
        unread = self._workloads().unread
        for kind in kinds:
            self._listed.add(kind)
            self._waited.pop(kind, None)
            unread.pop(kind, None)

    def synced(self) -> None:
        """Take it that nothing is waited for."""
        self._waited.clear()

    def not_served(self, event: Unserved) -> None:
        """Take it that a kind cannot be read; of one that is not there nothing is to be read."""
        kind, unread = event.interest.group_resource, self._workloads().unread
        self._waited.pop(kind, None)
        if event.reason == NOT_FOUND:
            unread.pop(kind, None)
            self._listed.discard(kind)
            return
        unread[kind] = UnreadKind(
            self._namespaced.get(kind, True), event.reason, event.message, kind in self._listed
        )
        self._looked_at = float("-inf")
        self._some.set()

    async def run(self) -> None:
        """Look until cancelled, as long as some kind is not shown."""
        while True:
            await self._some.wait()
            await self._clock.sleep(NOT_LISTED_SECONDS)
            changed = self._say_waited()
            now = self._clock.now().seconds
            if now - self._looked_at >= LOOK_SECONDS:
                self._looked_at = now
                changed |= await self._look()
            if changed:
                self._tell()
            if not self._waited and not self._workloads().unread:
                self._some.clear()

    def _say_waited(self) -> bool:
        """Have placements say which kinds are not listed yet; whether these are others now."""
        now, kinds = self._clock.now().seconds, self._workloads().unread
        late = {kind for kind, since in self._waited.items() if now - since >= NOT_LISTED_SECONDS}
        over = {kind for kind, unread in kinds.items() if not unread.reason} - late
        for kind in over:
            del kinds[kind]
        fresh = late - kinds.keys()
        for kind in fresh:
            kinds[kind] = UnreadKind(self._namespaced.get(kind, True))
        return bool(over or fresh)

    async def _look(self) -> bool:
        """See in which Namespaces there is nothing of a kind; whether that is otherwise now."""
        changed = False
        for kind, unread in [*self._workloads().unread.items()]:
            if not unread.namespaced or unread.reason in ("", UNAVAILABLE):
                continue
            empty = await self._empty(kind, unread)
            if self._workloads().unread.get(kind) == unread and empty != unread.empty:
                self._workloads().unread[kind] = replace(unread, empty=empty)
                changed = True
        return changed

    async def _empty(self, kind: GroupResource, unread: UnreadKind) -> frozenset[str]:
        workloads = self._workloads()
        resolver = workloads.resolver
        rules = [resolver.rules(name) for name in workloads.placements]
        occupied = {key.namespace for key in resolver.of_kind(kind)}
        asked = narrowed_to(rules, kind, unread, resolver.namespaces) - occupied
        names = sorted(asked)[:NAMESPACES_MAX]

        async def is_empty(namespace: str) -> bool:
            try:
                return not (await self._space.list(*kind, namespace=namespace)).objects
            except SpaceError:
                return False

        return frozenset(compress(names, await some_at_once(names, is_empty, LOOKS_AT_ONCE)))
