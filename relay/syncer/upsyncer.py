"""Brings objects of an edge's space up: it keeps copies of what clauses name at the parent.

Level-triggered: a change only says that an object is to be looked at. It is read when it is its
turn, so what changes often is not kept in memory, and is sent as it is then. What to do next is
decided in `relay.syncer.mirror`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping

from relay.core.collectors.upsynced import Sources
from relay.core.events import CopyObserved, UnservedKind, UpsyncFault, UpsyncObserved
from relay.core.view import NodeView
from relay.objects.upsynced_form import upsynced_form, version_of
from relay.ports import Bus, Clock
from relay.space_errors import AnotherSpace, SpaceError
from relay.space_port import (
    Interest,
    Interests,
    Kind,
    KindsServed,
    Object,
    ObjectChange,
    ObjectsListed,
    Space,
    SpaceEvent,
    Synced,
    Unserved,
)
from relay.syncer.mirror import (
    RETRY_SECONDS,
    EraseCopiesBefore,
    EraseCopy,
    Mirror,
    MirrorAction,
    SendCopy,
)
from relay.syncer.watched_kinds import KindName, Scope, scope_of
from relay.waiting import until_due
from schemas.objects.objects import ObjectKey
from schemas.reports.missing_rights import FORBIDDEN, reported
from schemas.reports.upsync import ANY, UpsyncClause, copy_key, encode_copy
from schemas.values.refusals import CodecError

AT_ONCE = 8
SPACE_RETRY_SECONDS = 1.0
RETRY_SECONDS_MAX = 30.0
TELL_EVERY_SECONDS = 1.0
FAULTS_MAX = 20
NOT_SERVED = "NotServed: this cluster has no such kind; nothing of it comes up"
_VERBS_NEEDED = frozenset({"get", "list", "watch"})

UpsyncObserver = Callable[[UpsyncObserved | CopyObserved], Awaitable[None]]


class Upsyncer:
    """One space's upsyncer; `run` works until it is cancelled."""

    def __init__(self, space: Space, bus: Bus, clock: Clock, observe: UpsyncObserver) -> None:
        self._space = space
        self._bus = bus
        self._clock = clock
        self._observe = observe
        self._mirror = Mirror()
        self._clauses: frozenset[UpsyncClause] = frozenset()
        self._knows_all = False
        self._sources = Sources(0, frozenset())
        self._interests = Interests(())
        self._served: dict[KindName, Kind] = {}
        # The kinds that may not be followed as a whole.
        self._narrowed: set[KindName] = set()
        self._unserved: dict[Scope, str] = {}
        self._listed: set[Scope] = set()
        self._told_of: frozenset[Interest] | None = None
        # Since when the space, or a kind of it that is served, tells nothing.
        self._deaf_since: float | None = None
        self._heard_once = False
        self._session = ""
        self._opened = ""
        self._paused_until = 0.0
        self._failures = 0
        self._said = UpsyncObserved()
        self._say_at = 0.0
        self._named = asyncio.Event()
        self._wake = asyncio.Event()

    def set_wish(self, clauses: frozenset[UpsyncClause], *, knows_all: bool, session: str) -> None:
        """What is to come up from now on, and in which session with the parent; "" is in none.

        Without `knows_all` there may be more clauses: nothing is taken away for lack of one.
        """
        meant = clauses if knows_all else clauses | self._clauses
        if (meant, knows_all, session) == (self._clauses, self._knows_all, self._session):
            return
        self._knows_all, self._session = knows_all, session
        if not session or (clauses and not self._mirror.is_placed):
            self._opened, self._failures = "", 0
        if meant != self._clauses:
            self._clauses = meant
            if meant:
                self._named.set()
            self._mirror.keep_only(self._is_meant, self._now())
            self._follow_kinds()
        self._wake.set()

    def set_sources(self, sources: Sources) -> None:
        """What of that is told to the node, too, as it lies at the parent."""
        if sources == self._sources:
            return
        former, self._sources = self._sources, sources
        if former.epoch != sources.epoch:
            former = Sources(sources.epoch, frozenset())
        self._mirror.reread(lambda k: sources.names(k) and not former.names(k), self._now())
        self._wake.set()

    async def run(
        self, node: Callable[[], NodeView], progress: Callable[[], Awaitable[None]]
    ) -> None:
        """Work until cancelled on what the node wants; `progress` ends when it may be another."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow(), name="upsyncer:follow")
            group.create_task(self._work(group), name="upsyncer:work")
            while True:
                now = node()
                self.set_wish(now.upsync, knows_all=now.knows_upsync, session=now.session)
                self.set_sources(now.upsync_sources)
                await progress()

    # The space.

    async def _follow(self) -> None:
        # Without a clause nobody need know what the space has.
        await self._named.wait()
        while True:
            try:
                await self._space.follow(self._interests, self._told)
            except AnotherSpace:
                self._deaf_since = self._deaf_since or self._now()
                await self._clock.sleep(SPACE_RETRY_SECONDS)

    async def _told(self, event: SpaceEvent) -> None:
        now = self._now()
        match event:
            case KindsServed(kinds):
                self._served = {kind.group_resource: kind for kind in kinds}
                self._follow_kinds()
            case ObjectsListed(interest, objects) if interest is not None:
                self._take_in(scope_of(interest), objects)
            case Unserved(interest, reason, message):
                self._not_told(scope_of(interest), reason, message)
            case ObjectChange(how, key, obj) if self._is_meant(key):
                if how == "deleted":
                    self._mirror.remove(key, now)
                else:
                    self._mirror.put(key, version_of(obj), now)
            case Synced(wanted):
                self._told_of = wanted
            case _:
                return
        self._wake.set()

    def _take_in(self, scope: Scope, objects: Mapping[ObjectKey, Object]) -> None:
        self._unserved.pop(scope, None)
        self._listed.add(scope)
        versions = {k: version_of(obj) for k, obj in objects.items() if self._is_meant(k)}
        self._mirror.listed(*scope, versions, self._now())

    def _not_told(self, scope: Scope, reason: str, message: str) -> None:
        """Note why nothing is told of it; where all of a kind is forbidden, follow its parts."""
        *kind, part = scope
        self._listed.discard(scope)
        if reason == FORBIDDEN and not part and self._namespaces((kind[0], kind[1])):
            self._narrowed.add((kind[0], kind[1]))
            self._follow_kinds()
        else:
            self._unserved[scope] = reported(reason, message)

    def _follow_kinds(self) -> None:
        """Follow the kinds that the clauses name, `*` as far as they are served."""
        kinds: set[KindName] = set()
        for clause in self._clauses:
            kinds |= {(clause.group, name) for name in clause.resources if name != ANY}
            if ANY in clause.resources:
                kinds |= {
                    name
                    for name, kind in self._served.items()
                    if clause.admits_kind(*name) and (not kind.verbs or kind.verbs >= _VERBS_NEEDED)
                }
        scopes = {(*kind, part) for kind in kinds for part in self._parts(kind)}
        self._listed &= scopes
        self._unserved = {scope: why for scope, why in self._unserved.items() if scope in scopes}
        self._interests.set(
            Interest(group, resource, metadata_only=True, namespace=part)
            for group, resource, part in scopes
        )

    def _parts(self, kind: KindName) -> Iterable[str]:
        """The namespaces by which a kind is followed; "" is all of it."""
        return (self._namespaces(kind) if kind in self._narrowed else ()) or ("",)

    def _namespaces(self, kind: KindName) -> frozenset[str]:
        """All that the clauses mean of a kind is in these; none if they do not say so."""
        clauses = [clause for clause in self._clauses if clause.admits_kind(*kind)]
        named = frozenset(name for clause in clauses for name in clause.namespaces)
        served = self._served.get(kind)
        return frozenset() if ANY in named or served is None or not served.namespaced else named

    def _is_meant(self, key: ObjectKey) -> bool:
        return any(clause.matches(key) for clause in self._clauses)

    def _deaf_to(self) -> list[KindName]:
        """The kinds that are served here, and of which nothing is told."""
        scopes = set(map(scope_of, self._interests.wanted or ()))
        return sorted({scope[:2] for scope in scopes - self._listed if scope[:2] in self._served})

    @property
    def _hears_all(self) -> bool:
        if not self._clauses:
            return True
        return self._told_of == self._interests.wanted and not self._deaf_to()

    # The parent.

    async def _work(self, group: asyncio.TaskGroup) -> None:
        under_way = asyncio.Semaphore(AT_ONCE)
        while True:
            self._wake.clear()
            self._listen()
            if await self._is_open():
                await self._begin(under_way, group)
            await self._tell()
            await self._woken()

    def _listen(self) -> None:
        """Note since when the copies may be behind what nobody tells of."""
        if self._hears_all:
            self._deaf_since, self._heard_once = None, True
        elif self._deaf_since is None:
            self._deaf_since = self._now()

    async def _is_open(self) -> bool:
        """Whether copies can be written now: in this session their place was looked at."""
        if not self._session or self._now() < self._paused_until:
            return False
        if self._opened != self._session:
            session, place = self._session, await self._bus.copies_place()
            if place is None and (self._clauses or not self._mirror.is_empty):
                # The parent makes room when it hears that there is something to come.
                self._pause()
                return False
            if place is not None:
                # Also without a clause: what a former run brought up is to go.
                self._mirror.begin_session(place, self._now())
            self._failures = 0
            self._opened = session
        return self._opened == self._session

    async def _begin(self, under_way: asyncio.Semaphore, group: asyncio.TaskGroup) -> None:
        while not under_way.locked():
            may_sweep = self._knows_all and self._hears_all
            action = self._mirror.next(self._now(), may_sweep=may_sweep)
            if action is None:
                return
            await under_way.acquire()
            group.create_task(self._carry_out(action, under_way), name="upsyncer:copy")

    async def _carry_out(self, action: MirrorAction, under_way: asyncio.Semaphore) -> None:
        epoch = self._mirror.epoch
        report = await self._outcome(action)
        under_way.release()
        if report is not None and epoch == self._mirror.epoch:
            report()
        else:
            self._mirror.failed(action, self._now())
            self._pause()
        self._wake.set()

    async def _outcome(self, action: MirrorAction) -> Callable[[], None] | None:
        """Do it, and what the mirror is to be told then; None: nobody knows what came of it."""
        match action:
            case SendCopy(key):
                return await self._send(key)
            case EraseCopy(key):
                erased = await self._bus.erase_copies(key=copy_key(key))
                if erased:
                    await self._raise(key, None)
                return (lambda: self._mirror.erased(key, self._now())) if erased else None
            case EraseCopiesBefore(before):
                swept = await self._bus.erase_copies(before=before)
                return self._mirror.erased_before if swept else None

    async def _send(self, key: ObjectKey) -> Callable[[], None] | None:
        """Put a copy of the object before the parent; what came of it, None: nobody knows."""
        mirror, now = self._mirror, self._now
        try:
            obj = await self._space.get(key)
        except SpaceError as error:
            said = reported(error.reason, error.message)
            return lambda: mirror.refused(key, said, now())
        if obj is None:
            return lambda: mirror.not_found(key, now())
        version = version_of(obj)
        try:
            data = encode_copy(key, upsynced_form(obj))
        except CodecError as error:
            reason = f"TooLarge: {error.reason}"
            return lambda: mirror.put_unfit(key, version, reason, 0, now())
        digest, size = hashlib.sha256(data).digest()[:16], len(data)
        if mirror.is_held(key, digest):
            await self._raise(key, data)
            return lambda: mirror.confirm_unchanged(key, version, now())
        if full := mirror.reserve(key, size):
            return lambda: mirror.put_unfit(key, version, full, size, now())
        at = await self._bus.put_copy(copy_key(key), data)
        if not at:
            return None
        await self._raise(key, data)
        return lambda: mirror.sent(key, version, digest, size, at, now())

    async def _raise(self, key: ObjectKey, copy: bytes | None) -> None:
        """Tell the node what lies at the parent of an object that collectors are over."""
        if self._sources.names(key):
            await self._observe(CopyObserved(key, copy))

    def _pause(self) -> None:
        """Nobody answers, or not as hoped: wait a moment, and then look where the copies are."""
        self._opened = ""
        self._failures += 1
        wait = min(RETRY_SECONDS * 2 ** (self._failures - 1), RETRY_SECONDS_MAX)
        self._paused_until = self._now() + wait

    # What is said.

    async def _tell(self) -> None:
        """Say how it stands if that is news, but not each second of a backlog."""
        now = self._now()
        since = [at for at in (self._mirror.behind_since, self._deaf_since) if at is not None]
        seen = UpsyncObserved(
            stated=self._mirror.is_complete and self._knows_all and self._heard_once,
            behind_since=min(since, default=None),
            faults=tuple(UpsyncFault(*fault) for fault in self._mirror.faults(FAULTS_MAX)),
            unserved=tuple(self._unserved_kinds()),
        )
        if seen != self._said and now >= self._say_at:
            self._said, self._say_at = seen, now + TELL_EVERY_SECONDS
            await self._observe(seen)

    def _unserved_kinds(self) -> Iterable[UnservedKind]:
        wanted = self._interests.wanted or frozenset()
        told = {scope[:2]: why for scope, why in sorted(self._unserved.items(), reverse=True)}
        for kind in sorted({item.group_resource for item in wanted}):
            if self._served and kind not in self._served:
                yield UnservedKind(*kind, NOT_SERVED)
            elif kind in told:
                yield UnservedKind(*kind, told[kind])

    async def _woken(self) -> None:
        """Wait until something happens, or it is time for what was put off."""
        due = [self._mirror.deadline()] if self._opened else []
        if self._session and not self._opened:
            due.append(self._paused_until)
        if self._say_at > self._now():
            due.append(self._say_at)
        at = min((each for each in due if each is not None), default=None)
        soonest = self._now() + 0.01
        await until_due(self._wake, self._clock, None if at is None else max(at, soonest))

    def _now(self) -> float:
        return self._clock.now().seconds
