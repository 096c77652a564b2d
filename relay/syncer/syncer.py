"""Makes a space equal to what is wanted, keeps it so, and tells what became of each object.

Level-triggered: wants, the record of what was applied (DONE) and the space are compared per object;
each difference is one action, tried again with backoff until there is none. DONE is kept before an
object is created, so that a restart finds what it may prune; what came of it is written after, and
nothing waits for that: a restart that does not find it there applies the object again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace

from relay.core.claims import Wanted
from relay.core.events import ObjectObserved
from relay.core.merge import copied, subsumes
from relay.ports import (
    Clock,
    Dice,
    Listing,
    Object,
    ResumeTooOld,
    Space,
    SpaceError,
)
from relay.syncer.observed import Observations, Sight, look_at
from relay.syncer.pending import Pending, key_of
from relay.syncer.plan import (
    SYNCER,
    Action,
    Apply,
    Prune,
    action_for,
    namespace_object,
    with_namespaces,
)
from relay.syncer.prune import StillHolds, take_back
from relay.syncer.record import DoneStore, Record
from schemas import codec
from schemas.blobs import OBJECT_MAX_BYTES, BlobRefused, Reference
from schemas.objects import BUILT_IN_KINDS, KindTable, ObjectKey
from schemas.reports import Done

ACTION_SECONDS_MAX = 30.0
SPACE_RETRY_SECONDS = 1.0


class ContentMissing(Exception):
    """A loader of blobs cannot give the bytes now; the object is tried again later."""


Loader = Callable[[Reference], Awaitable[bytes]]
"""The plain bytes of an object's blob, checked; raises ContentMissing."""

Observer = Callable[[ObjectObserved], Awaitable[None] | None]


class Syncer:
    """One space's syncer; `run` works until it is cancelled, or the bus breaks."""

    def __init__(
        self,
        space: Space,
        bus: DoneStore,
        blobs: Loader,
        clock: Clock,
        dice: Dice,
        observe: Observer,
    ) -> None:
        self._space = space
        self._record = Record(bus)
        self._blobs = blobs
        self._clock = clock
        self._dice = dice
        self._observe = observe
        self._wanted: dict[ObjectKey, Wanted] = {}
        self._may_prune = False
        self._done = self._record.held
        self._drifted: set[ObjectKey] = set()
        self._errors: dict[ObjectKey, str] = {}
        self._holding: dict[ObjectKey, bytes] = {}
        self._observed = Observations()
        self._pending = Pending()
        self._busy: set[ObjectKey] = set()
        self._seen_meanwhile: dict[ObjectKey, Object | None] = {}
        self._unwanted: dict[ObjectKey, None] = {}
        self._told_wants = asyncio.Event()
        self._listed = False
        self._wake = asyncio.Event()

    def set_wants(self, wanted: Mapping[ObjectKey, Wanted], *, may_prune: bool) -> None:
        """What the space shall hold from now on, instead of what was said before."""
        former = self._wanted
        self._wanted = with_namespaces(wanted)
        self._may_prune = may_prune
        for key in former.keys() | self._wanted.keys() | self._done.keys():
            if former.get(key) != self._wanted.get(key):
                self._errors.pop(key, None)
            if self._listed and key in self._done and key not in former:
                # No one looked after it meanwhile; applying what is there already writes nothing.
                self._drifted.add(key)
            self._reconsider(key)
        self._unwanted |= dict.fromkeys(former.keys() - self._wanted.keys())
        self._wake.set()
        self._told_wants.set()

    @property
    def applied(self) -> int:
        """How many objects it applied and has not taken back."""
        return len(self._done)

    @property
    def idle(self) -> bool:
        """Whether the space was read, nothing is left to do or to try again, and all is kept."""
        return self._listed and not self._pending and self._record.kept

    async def run(self) -> None:
        """Work until cancelled, from the first wants on; BusBroken (in a group) ends it."""
        await self._record.load()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._record.keep(), name="syncer:record")
            group.create_task(self._follow(), name="syncer:watch")
            group.create_task(self._work(group), name="syncer:work")

    # What is to be done.

    def _reconsider(self, key: ObjectKey) -> None:
        if not self._listed:
            return
        action = action_for(
            self._wanted.get(key),
            self._done.get(key),
            may_prune=self._may_prune,
            drifted=key in self._drifted,
        )
        self._pending.put(key, action)
        self._wake.set()

    async def _work(self, group: asyncio.TaskGroup) -> None:
        while True:
            self._wake.clear()
            while action := self._pending.begin(self._clock.now().seconds):
                group.create_task(self._carry_out(action), name=f"syncer:{key_of(action)}")
            await self._part()
            await self._woken()

    async def _part(self) -> None:
        """Say the last word on what is wanted no more and never came to be: nothing ends it."""
        unwanted, self._unwanted = self._unwanted, {}
        for key in unwanted:
            if key not in self._busy and key not in self._done and key not in self._wanted:
                self._errors.pop(key, None)
                await self._say(self._observed.farewell(key, ""))

    async def _woken(self) -> None:
        """Until something happens, or it is time to try again what failed."""
        now = self._clock.now().seconds
        due = self._pending.next_due(now)
        if due is None:
            await self._wake.wait()
            return
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(self._wake.wait())
            timer = group.create_task(self._clock.sleep(max(due - now, 0)))
            await asyncio.wait((waiting, timer), return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            timer.cancel()

    async def _carry_out(self, action: Action) -> None:
        key = key_of(action)
        self._busy.add(key)
        try:
            async with asyncio.timeout(ACTION_SECONDS_MAX):
                match action:
                    case Apply(wanted):
                        await self._apply(wanted)
                    case Prune(done):
                        await self._prune(done)
        except _FAILURES as error:
            self._errors[key] = _said(error)
            self._pending.failed(key, action, self._clock.now().seconds, self._dice.fraction())
        else:
            self._errors.pop(key, None)
            self._pending.succeeded(key, action)
        self._busy.discard(key)
        self._reconsider(key)
        if key in self._seen_meanwhile:
            await self._saw(key, self._seen_meanwhile.pop(key))
        await self._tell(key)

    # One object.

    async def _apply(self, wanted: Wanted) -> None:
        key, done = wanted.key, self._done.get(wanted.key)
        wish = await self._content(wanted)
        if done is None or not done.uid or key in self._drifted:
            done = await self._intend(wanted, done, wish)
        live = await self._space.apply(wish, SYNCER, create_only=wanted.create_only)
        sight = look_at(live)
        kept = done.address if wanted.create_only and done.uid else wanted.reference.address
        made = done.made and done.uid in ("", sight.uid)
        self._record.put(
            replace(
                done,
                uid=sight.uid,
                address=kept,
                made=made,
                placements=wanted.placements,
                order=wanted.order,
            )
        )
        self._drifted.discard(key)
        self._holding[key] = sight.fingerprint
        self._observed.see(key, sight)

    async def _intend(self, wanted: Wanted, done: Done | None, wish: Object) -> Done:
        """Put into DONE, before anything is created, whether the object is ours to delete."""
        live = await self._space.get(wanted.key)
        if live is None:
            made, uid = True, ""
        elif done is None:
            made, uid = False, ""
        elif done.uid:
            uid = live["metadata"].get("uid", "")
            made = done.made and uid == done.uid
        else:
            # Intended, then stopped: if it holds just what was to be created, it is that.
            made, uid = done.made and subsumes(live, wish), ""
        address = done.address if done and live is not None else wanted.reference.address
        intent = Done(wanted.key, uid, address, wanted.placements, made, wanted.order)
        self._record.put(intent)
        await self._record.stored(wanted.key)
        return intent

    async def _prune(self, done: Done) -> None:
        left = await take_back(self._space, done, self._done.keys() - {done.key})
        self._record.erase(done.key)
        self._drifted.discard(done.key)
        self._holding.pop(done.key, None)
        if done.key not in self._wanted and done.placements:
            reason = f"left in place: {left.why}" if left.why else ""
            await self._say(self._observed.farewell(done.key, reason))

    async def _content(self, wanted: Wanted) -> Object:
        if not wanted.placements:
            return namespace_object(wanted.key.name)
        plain = await self._blobs(wanted.reference)
        obj: Object = copied(codec.unpack(plain, OBJECT_MAX_BYTES))
        return obj

    # The space.

    async def _follow(self) -> None:
        """Read the space, then hear of its changes; again from the start if that breaks off."""
        await self._told_wants.wait()
        while True:
            try:
                listing = await self._space.list()
                await self._take_in(listing)
                async with aclosing(self._space.watch(listing.revision)) as changes:
                    async for change in changes:
                        gone = change.kind == "deleted"
                        await self._saw(change.key, None if gone else change.object)
            except ResumeTooOld:
                continue
            except SpaceError:
                await self._clock.sleep(SPACE_RETRY_SECONDS)

    async def _take_in(self, listing: Listing) -> None:
        kinds: KindTable = BUILT_IN_KINDS.extended_by(listing.objects)
        found = {kinds.key_of(obj): obj for obj in listing.objects}
        for key in self._observed.keys() | self._done.keys() | self._wanted.keys():
            await self._saw(key, found.get(key))
        if not self._listed:
            self._listed = True
            for key in self._done.keys() | self._wanted.keys():
                self._reconsider(key)

    async def _saw(self, key: ObjectKey, obj: Object | None) -> None:
        if key in self._busy:
            self._seen_meanwhile[key] = obj
            return
        if key not in self._wanted and key not in self._done:
            return
        if obj is not None and self._is_echo(key, obj):
            return
        sight = look_at(obj) if obj else None
        self._observed.see(key, sight)
        if await self._differs(key, obj, sight):
            self._drifted.add(key)
            self._reconsider(key)
        await self._tell(key)

    def _is_echo(self, key: ObjectKey, obj: Object) -> bool:
        """Whether this is what was seen already, and holds what was applied."""
        sight = self._observed.sight(key)
        if sight is None or self._holding.get(key) != sight.fingerprint:
            return False
        return bool(sight.revision) and sight.revision == obj["metadata"].get("resourceVersion")

    async def _differs(self, key: ObjectKey, obj: Object | None, sight: Sight | None) -> bool:
        """Whether the object is not what was applied: gone, another's, or without our fields."""
        done, wanted = self._done.get(key), self._wanted.get(key)
        if done is None or wanted is None or not done.uid:
            return False
        if obj is None or sight is None or sight.uid != done.uid:
            return True
        if wanted.create_only or self._holding.get(key) == sight.fingerprint:
            return False
        if done.address != wanted.reference.address:
            return False
        try:
            holds = subsumes(obj, await self._content(wanted))
        except ContentMissing:
            return False
        if holds:
            self._holding[key] = sight.fingerprint
        return not holds

    async def _tell(self, key: ObjectKey) -> None:
        wanted, done = self._wanted.get(key), self._done.get(key)
        if wanted is None and done is None:
            self._errors.pop(key, None)
            await self._say(self._observed.forget(key))
        elif any(item.placements for item in (wanted, done) if item):
            address = done.address if done and done.uid and key not in self._drifted else ""
            await self._say(self._observed.news(key, address, self._errors.get(key, "")))

    async def _say(self, news: ObjectObserved | None) -> None:
        if news is not None:
            answer = self._observe(news)
            if answer is not None:
                await answer


_FAILURES = (
    SpaceError,
    ContentMissing,
    StillHolds,
    BlobRefused,
    codec.CodecError,
    TimeoutError,
)


def _said(error: Exception) -> str:
    match error:
        case SpaceError():
            return f"{error.reason}: {error.message}"
        case ContentMissing():
            return f"ContentMissing: {error}"
        case TimeoutError():
            return f"Timeout: no answer within {ACTION_SECONDS_MAX:.0f} s"
        case _:
            return str(error)
