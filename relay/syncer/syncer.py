"""Makes a space equal to what is wanted, keeps it so, and tells what became of each object.

Level-triggered: wants, the record of what was applied (DONE) and the space are compared per object;
each difference is one action, tried again with backoff until there is none. DONE is kept before an
object is created, so that a restart finds what it may prune. What came of it is written after: a
restart applies the object again. An object that is missed is gone once a look of its own says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from relay.core.destination.claims import DesiredObject
from relay.core.events import LEFT_IN_PLACE, ObjectObserved
from relay.objects.stored_object import timestamp
from relay.ports import Bus, Clock, Dice
from relay.space_errors import AnotherSpace, SpaceError
from relay.space_port import (
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
from relay.syncer.applier import Applier, ApplyRequest, Loader
from relay.syncer.customized_content import Customizing, customized
from relay.syncer.drift import Drift
from relay.syncer.ended import as_it_ended, completed, ended_unseen, in_namespace, is_over, with_end
from relay.syncer.failures import ACTION_SECONDS_MAX, FAILURES, ObjectErrors, failure_text
from relay.syncer.lingering import LingeringNamespaces
from relay.syncer.object_marks import tree_of
from relay.syncer.observed import Observations, ObservedState
from relay.syncer.owned_objects import find_ours, scaled_with
from relay.syncer.pending import REQUESTS_MAX, Pending
from relay.syncer.plan import (
    ApplyObject,
    InspectObject,
    ObjectAction,
    PruneObject,
    action_for,
    is_applied,
    to_decide,
    with_namespaces,
)
from relay.syncer.prune import NotEmpty, holders, is_let_go, kept_reason, take_back
from relay.syncer.record import GATHER_SECONDS, AppliedObjects
from relay.syncer.ruled import RuledObjects, RuleOf, no_rule
from relay.syncer.stalled import StalledObjects
from relay.syncer.surroundings import Surroundings
from relay.syncer.under_way import ActionsUnderWay
from relay.syncer.watched_kinds import Scope, WatchedKinds, scope_of
from relay.syncer.wave_barrier import WaveBarrier
from relay.waiting import in_turns, until_due
from schemas.objects.objects import NAMESPACES, ObjectKey
from schemas.reports.reports import Done
from schemas.values.wire import replace

SPACE_RETRY_SECONDS, LEFT_LOOK_SECONDS = 1.0, 300.0

Observer = Callable[[ObjectObserved], Awaitable[None] | None]


class Syncer:
    """One space's syncer; `run` works until it is cancelled, or the bus breaks."""

    def __init__(  # noqa: PLR0913 - what it works on, and how objects become what they are
        self,
        space: Space,
        bus: Bus,
        blobs: Loader,
        clock: Clock,
        dice: Dice,
        observe: Observer,
        *,
        tree: str,
        customize: Customizing = customized,
    ) -> None:
        self._space = space
        self._tree = tree
        self._record = AppliedObjects(bus, clock)
        self._ruled = RuledObjects()
        self._applier = Applier(space, tree, self._record, blobs, self._ruled, customize)
        self._watched = WatchedKinds()
        self._clock = clock
        self._dice = dice
        self._observe = observe
        self._wanted: dict[ObjectKey, DesiredObject] = {}
        self._paused = False
        self._may_prune: Callable[[ObjectKey], bool] = lambda _key: False
        self._done = self._record.held
        self._drift = Drift(self._applier, clock)
        self._errors = ObjectErrors()
        self._lingering = LingeringNamespaces(space, clock)
        self._observed = Observations()
        self._stalled = StalledObjects(space, clock, self._publish)
        self._surroundings = Surroundings(space, clock, self._watched.has_status, self._on_judged)
        self._pending = Pending()
        self._requests = asyncio.Semaphore(REQUESTS_MAX)
        self._barrier = WaveBarrier(clock, self._publish)
        self._under_way = ActionsUnderWay()
        # Namespaces and definitions that nothing wants, and that stay for what is in them.
        self._left_in_place: set[ObjectKey] = set()
        self._seen_meanwhile: dict[ObjectKey, Object | None] = {}
        self._unwanted: dict[ObjectKey, None] = {}
        self._others: set[ObjectKey] = set()
        # What was done and not told of yet.
        self._unpublished: dict[ObjectKey, None] = {}
        self._has_unpublished = asyncio.Event()
        self._has_wants = asyncio.Event()
        self._wake = asyncio.Event()

    def set_wants(
        self,
        wanted: Mapping[ObjectKey, DesiredObject],
        *,
        may_prune: Callable[[ObjectKey], bool],
        paused: bool = False,
        rule_of: RuleOf = no_rule,
    ) -> None:
        """What the space shall hold from now on, instead of what was said before.

        While it is `paused` nothing is changed there. `may_prune` says of an object that is not
        wanted whether it is to go now; this is called again when its answers change.
        """
        former, turned = self._wanted, paused != self._paused
        self._paused = paused
        self._wanted = with_namespaces(wanted)
        self._may_prune = may_prune
        # What is being done now may yet come to be, and is to be taken back then.
        self._watched.want(self._wanted.keys() | self._done.keys() | self._under_way.keys)
        concerned = to_decide(former, self._wanted, self._done, turned=turned)
        for key in self._ruled.set(self._wanted.values(), rule_of):
            self._observed.mark_stale(key)
            self._drift.doubted |= {key} & self._done.keys()
            concerned[key] = None
        for key in list(concerned):
            done, want, before = self._done.get(key), self._wanted.get(key), former.get(key)
            as_wanted = before is not None and is_applied(want, done)
            if before != want and (self._errors.pop(key, "") or as_wanted):
                # Nothing else tells of what is there already as it is wanted now.
                self._unpublished[key] = None
                self._has_unpublished.set()
            if self._watched.begun and done and (before is None or done.ended is not None):
                # No one looked after it meanwhile, or it may be gone and is to run anew.
                self._drift.doubt(key)
            concerned.update(dict.fromkeys(self._update_barrier(key)))
        for key in concerned:
            self._decide(key)
        self._unwanted |= dict.fromkeys(key for key in former if key not in self._wanted)
        self._wake.set()
        self._has_wants.set()

    @property
    def applied(self) -> int:
        """How many objects it applied and has not taken back, but for those that stay."""
        return len(self._done) - self.kept - len(self._left_in_place)

    @property
    def kept(self) -> int:
        """How many objects are kept that nothing wants any more."""
        return sum(done.kept for done in self._done.values())

    @property
    def results(self) -> Mapping[str, int]:
        return self._under_way.results

    @property
    def loaded(self) -> bool:
        """Whether that is known: the record of an earlier run was read."""
        return self._record.loaded

    @property
    def idle(self) -> bool:
        """Whether the space was read, nothing is left to do or to try again, and all is kept."""
        at_work = self._pending or self._barrier or self._unpublished
        return self._watched.synced and not at_work and self._record.kept

    @property
    def unready(self) -> str:
        """What keeps it from telling of the space, or of a kind of it; "" if nothing does."""
        return self._watched.unready()

    async def run(self) -> None:
        """Work until cancelled, from the first wants on; BusBroken (in a group) ends it."""
        await self._record.load()
        await self._has_wants.wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._record.keep(), name="syncer:record")
            await self._recover()
            self._watched.want(self._wanted.keys() | self._done.keys())
            group.create_task(self._follow(), name="syncer:follow")
            group.create_task(self._work(group), name="syncer:work")
            group.create_task(self._publish_done(), name="syncer:tell")
            group.create_task(self._inspect_leftovers(), name="syncer:left")
            group.create_task(self._stalled.run(), name="syncer:stalled")
            group.create_task(self._surroundings.run(), name="syncer:surroundings")
            group.create_task(self._barrier.run(), name="syncer:waves")

    def _reconsider(self, key: ObjectKey) -> None:
        self._reconsider_others(key)
        self._decide(key)

    def _reconsider_others(self, key: ObjectKey) -> None:
        """How the object stands may be another: decide on those whose turn came or went by it."""
        for other in self._update_barrier(key):
            self._decide(other)

    def _update_barrier(self, key: ObjectKey) -> list[ObjectKey]:
        """Say how the object stands; the others whose turn may have come or gone by it."""
        sight = None if self._drift.doubts(key) else self._observed.sight(key)
        return self._barrier.put(key, self._wanted.get(key), self._done.get(key), sight)

    def _decide(self, key: ObjectKey) -> None:
        wanted, done = self._wanted.get(key), self._done.get(key)
        if self._barrier.waits(key, wanted, done) or not self._watched.may_act(key):
            self._pending.put(key, None)
            return
        drifted = self._drift.is_to_apply(key)
        may_prune = wanted is None and done is not None and self._may_prune(key)
        action: ObjectAction | None = action_for(wanted, done, may_prune=may_prune, drifted=drifted)
        if self._paused:
            action = None
        if action is None and (key in self._drift.doubted or self._may_change(key)):
            action = InspectObject(key)
        # What is newly wanted waits for no one.
        same = wanted and done and wanted.address == done.address
        self._pending.put(key, action, self._drift.due(key, done) if same else 0.0)
        self._wake.set()

    async def _work(self, group: asyncio.TaskGroup) -> None:
        while True:
            self._wake.clear()
            for action in self._pending.begin(self._clock.now().seconds):
                key = self._under_way.begin(action)
                group.create_task(self._carry_out(key, action), name=f"syncer:{key}")
            await self._finish_unwanted()
            due = self._pending.next_due(self._clock.now().seconds)
            await until_due(self._wake, self._clock, due)

    async def _finish_unwanted(self) -> None:
        """Say the last word on what is wanted no more and never came to be: nothing ends it."""
        unwanted, self._unwanted = self._unwanted, {}
        for key in unwanted:
            self._surroundings.forget(key)
            if key not in self._under_way and not self._is_managed(key):
                self._under_way.forget(key)
                self._errors.pop(key, None)
                await self._emit(self._observed.forget_object(key, ""))

    async def _carry_out(self, key: ObjectKey, action: ObjectAction) -> None:
        try:
            ready = (
                await self._prepare(action.wanted) if isinstance(action, ApplyObject) else action
            )
            async with self._requests, asyncio.timeout(ACTION_SECONDS_MAX):
                match ready:
                    case ApplyRequest():
                        await self._apply(ready)
                    case PruneObject(done):
                        await self._prune(done)
                    case InspectObject():
                        await self._inspect(key)
        except FAILURES as error:
            why = await self._lingering.explained(key, failure_text(error))
            if not isinstance(action, ApplyObject) or action.wanted == self._wanted.get(key):
                self._errors[key] = why
            self._drift.failed(key, error)
            self._pending.failed(key, action, self._clock.now().seconds, self._dice.fraction())
            self._under_way.end(key, confirmed=False)
        else:
            self._errors.pop(key, None)
            self._pending.succeeded(key, action)
            self._under_way.end(key, confirmed=True)
        self._reconsider(key)
        if key in self._seen_meanwhile:
            meanwhile = self._seen_meanwhile.pop(key)
            if not self._observed.is_older(key, meanwhile):
                await self._take_observation(key, meanwhile)
        self._unpublished[key] = None
        self._has_unpublished.set()

    async def _publish_done(self) -> None:
        """Tell of one alone at once; while others are at work, of many together."""
        while True:
            await self._has_unpublished.wait()
            self._has_unpublished.clear()
            if self._under_way:
                await self._clock.sleep(GATHER_SECONDS)
            untold, self._unpublished = self._unpublished, {}
            for key in untold:
                await self._publish(key)

    async def _prepare(self, wanted: DesiredObject) -> ApplyRequest:
        key = wanted.key
        unseen = self._observed.sight(key) is None and key not in self._others
        async with asyncio.timeout(ACTION_SECONDS_MAX):
            return await self._applier.prepare(wanted, unseen=unseen)

    async def _apply(self, request: ApplyRequest) -> None:
        key, seen = request.key, self._observed.sight(request.key)
        look = self._drift.begins(key) or (seen is not None and seen.ending)
        sight = await self._applier.apply(request, look_first=look)
        if sight is None:
            return
        self._left_in_place.discard(key)
        amiss = self._drift.applied(key, sight)
        if amiss is not None and (done := self._done.get(key)) is not None:
            self._record.put(self._drift.put_right(done, amiss))
        self._note_sight(key, self._surroundings.judge(key, sight))
        if key.group_resource == NAMESPACES:
            for ended in in_namespace(key.name, self._done) if amiss is not None else ():
                # It went with all that was in there, and is to run anew.
                self._record.put(replace(ended, ended=None))
                self._mark_doubted(ended.key)
            self._pending.hurry(*(it for it in self._wanted if it.namespace == key.name))

    async def _prune(self, done: Done) -> None:
        scaled = await scaled_with(self._space, done.key, self._wanted.keys() & self._done.keys())
        sight = self._observed.sight(done.key)
        said = sight.on_removal if sight is not None and sight.uid == done.uid else ""
        left = await take_back(self._space, done, self._done, self._tree, said)
        if left.kept is not None:
            self._keep(left.kept, said)
            return
        if left.is_temporary and not done.placements:
            await self._leave_in_place(done.key, left.why)
            raise NotEmpty(left.why)
        (self._left_in_place.add if left.is_temporary else self._left_in_place.discard)(done.key)
        if left.is_temporary:
            # It is tried again, as one that no placement asks for: nobody waits for it to go.
            self._record.put(replace(done, placements=(), repaired=None))
        else:
            self._record.erase(done.key)
            self._drift.forget(done.key)
            self._stalled.see(done.key, None)
            self._pending.hurry(*holders(done.key))
            for key in scaled:
                # Its replicas were left to the autoscaler.
                self._drift.drifted.add(key)
                self._decide(key)
        if done.key not in self._wanted and done.placements:
            reason = f"{LEFT_IN_PLACE}{left.why}" if left.why else ""
            await self._emit(self._observed.forget_object(done.key, reason))

    async def _leave_in_place(self, key: ObjectKey, why: str) -> None:
        """A Namespace that no placement brought stays for what is in it: that is said once."""
        if key not in self._left_in_place:
            self._left_in_place.add(key)
            await self._emit(self._observed.forget_object(key, f"{LEFT_IN_PLACE}{why}"))

    def _keep(self, done: Done, said: str) -> None:
        """Only see from now on whether it is still there."""
        self._record.put(replace(done, on_removal=said or done.on_removal, repaired=None))
        self._drift.forget(done.key)
        self._stalled.see(done.key, None)
        self._pending.hurry(*holders(done.key))

    async def _disown(self, key: ObjectKey) -> None:
        """What was kept went, or bears our marks no more: it is nobody's."""
        self._record.erase(key)
        self._drift.forget(key)
        self._pending.hurry(*holders(key))
        self._reconsider(key)
        await self._emit(self._observed.forget_object(key, ""))

    async def _inspect(self, key: ObjectKey) -> None:
        """Ask for the one object; what was told meanwhile is newer."""
        self._drift.doubted.discard(key)
        answered = False
        try:
            live = await self._space.get(key)
            answered = True
        finally:
            if not answered:
                self._drift.doubted.add(key)
        done = self._done.get(key)
        if live is None and key in self._wanted and await ended_unseen(self._space, done):
            self._record.put(completed(self._done[key]))
        self._seen_meanwhile.setdefault(key, live)

    async def _inspect_leftovers(self) -> None:
        """Nobody tells of what is not ours, nor that a space knows more by now."""
        while True:
            await self._clock.sleep(LEFT_LOOK_SECONDS)
            for key in self._drift.look_again(self._done):
                self._decide(key)
            for key in [key for key, done in self._done.items() if done.left]:
                self._mark_doubted(key)

    # The space.

    async def _recover(self) -> None:
        """Without any record, or some of it, take what bears our marks for what we applied."""
        while self._record.is_partial:
            try:
                spaces = {key.namespace for key in self._wanted} - {""}
                found = await find_ours(self._space, self._tree, sorted(spaces))
            except SpaceError as error:
                for key in self._wanted:
                    self._errors[key] = failure_text(error)
                    await self._publish(key)
                await self._clock.sleep(SPACE_RETRY_SECONDS)
            else:
                await self._record.complete(found)

    async def _follow(self) -> None:
        while True:
            try:
                await self._space.follow(self._watched.interests, self._on_event)
            except AnotherSpace as error:
                self._watched.lose(failure_text(error))
                await self._publish_all()
                await self._clock.sleep(SPACE_RETRY_SECONDS)

    async def _on_event(self, event: SpaceEvent) -> None:
        match event:
            case ObjectChange(how, key, obj):
                await self._on_change(how, key, obj)
            case ObjectsListed(interest, objects) if interest is not None:
                await self._take_in(scope_of(interest), objects)
            case Unserved():
                now = timestamp(self._clock.now().wall_ms)
                for key in self._within({self._watched.unserved(event, now)}):
                    self._reconsider(key)
                    await self._publish(key)
            case ServerUnanswered(why) if self._watched.silence(why):
                await self._publish_all()
            case KindsServed():
                kinds = self._watched.serves(event)
                for key in [key for key in self._managed() if key.group_resource in kinds]:
                    self._retry(key)
            case Synced():
                for key in self._within(self._watched.told_all(event)):
                    self._reconsider(key)
                self._wake.set()
            case _:
                pass

    async def _publish_all(self) -> None:
        """Whether anything can be done there is otherwise now."""
        for key in self._managed():
            self._retry(key)
            await self._publish(key)

    async def _on_change(self, how: str, key: ObjectKey, obj: Object) -> None:
        if how == "deleted":
            self._note_last_state(key, obj)
            self._mark_doubted(key)
        elif not self._observed.is_older(key, obj):
            await self._take_observation(key, obj)

    def _note_last_state(self, key: ObjectKey, last: Object) -> None:
        """Take in what an object was at last: it may have come to its end."""
        done = self._done.get(key)
        if done is not None and key in self._wanted:
            self._record.put(with_end(done, self._ruled.look_at(key, last)))
            self._drift.went(key, last)

    async def _take_in(self, scope: Scope, objects: Mapping[ObjectKey, Object]) -> None:
        back = self._watched.listed(scope)
        self._others -= {key for key in self._others if self._watched.scope(key) == scope}
        for key in [key for key in objects if not self._is_managed(key)]:
            await self._take_observation(key, objects[key])
        before = {key: self._observed.sight(key) for key in self._within({scope})}
        async for key, sight in in_turns(before.items(), self._clock):
            if key in objects and self._observed.sight(key) is sight:
                await self._take_observation(key, objects[key])
            elif key in objects or self._is_there(key):
                self._mark_doubted(key)  # What was seen otherwise meanwhile is newer than the list.
            else:
                await self._publish(key)
            if back:
                self._retry(key)
                await self._publish(key)

    def _managed(self) -> dict[ObjectKey, object]:
        return {**self._wanted, **self._done}

    def _is_managed(self, key: ObjectKey) -> bool:
        return key in self._wanted or key in self._done

    def _within(self, scopes: set[Scope]) -> list[ObjectKey]:
        """The objects that are looked after, and told of by one of these."""
        looked_after = self._managed() if scopes else ()
        return [key for key in looked_after if self._watched.scope(key) in scopes]

    def _is_there(self, key: ObjectKey) -> bool:
        """Whether it is, as far as known."""
        done = self._done.get(key)
        return self._observed.sight(key) is not None or (done is not None and bool(done.uid))

    def _mark_doubted(self, key: ObjectKey) -> None:
        self._others.discard(key)
        if self._is_managed(key):
            self._drift.doubt(key)
            self._reconsider(key)

    def _retry(self, key: ObjectKey) -> None:
        self._reconsider(key)
        self._pending.hurry(key)

    async def _take_observation(self, key: ObjectKey, obj: Object | None) -> None:
        if key in self._under_way:
            self._seen_meanwhile[key] = obj
            return
        if not self._is_managed(key):
            if obj is not None and tree_of(obj, key) not in ("", self._tree):
                self._others.add(key)
            return
        if key not in self._wanted and is_let_go(self._done[key], obj, self._tree):
            await self._disown(key)
            return
        if obj is not None and self._drift.is_echo(key, obj, self._observed.sight(key)):
            return
        sight = self._sight_of(key, obj)
        self._note_sight(key, sight)
        done, wanted = self._done.get(key), self._wanted.get(key)
        others_alone = True
        if done and wanted:
            doubted = self._drift.doubts(key)
            later = await self._drift.judge(obj, sight, done, wanted)
            if later:
                self._errors[key] = later
            # One that is as it was applied, and was so before, needs no other decision.
            others_alone = not (doubted or self._drift.doubts(key))
        if others_alone:
            self._reconsider_others(key)
        else:
            self._reconsider(key)
        if obj is None:
            # Whatever it was in the way of can be done now.
            self._retry(key)
        await self._publish(key)

    def _note_sight(self, key: ObjectKey, sight: ObservedState | None) -> None:
        self._observed.see(key, sight)
        self._stalled.see(key, sight)

    def _may_change(self, key: ObjectKey) -> bool:
        return self._under_way.may_change(key, self._wanted.get(key))

    async def _on_judged(self, key: ObjectKey, sight: ObservedState) -> None:
        """Its cluster lets an object be well, or no more, though nothing of it changed."""
        if key in self._wanted and self._observed.sight(key) and key not in self._under_way:
            self._note_sight(key, sight)
            self._reconsider_others(key)
            await self._publish(key)

    def _sight_of(self, key: ObjectKey, obj: Object | None) -> ObservedState | None:
        """How an object does, or did when it ended; what is new of that goes into the record."""
        done = self._done.get(key)
        if obj is not None:
            sight = self._ruled.look_at(key, obj)
            if done is not None:
                self._record.put(with_end(done, sight))
            return self._surroundings.judge(key, sight)
        if done is None:
            return None
        return as_it_ended(done) if is_over(self._wanted.get(key), done) else None

    async def _publish(self, key: ObjectKey) -> None:
        wanted, done = self._wanted.get(key), self._done.get(key)
        if key.group_resource == NAMESPACES:
            for other in [other for other in self._errors if other.namespace == key.name]:
                await self._publish(other)
        if wanted is None and done is not None and done.kept:
            await self._emit(self._observed.keep(key, kept_reason(done)))
            return
        if wanted is None and done is None:
            self._errors.pop(key, None)
            self._under_way.forget(key)
            self._stalled.see(key, None)
            await self._emit(self._observed.forget(key))
        elif any(item.placements for item in (wanted, done) if item):
            unsure = key in self._drift.drifted or self._may_change(key)
            address = done.address if done and done.uid and not (unsure or done.kept) else ""
            error = self._errors.told(key, self._wanted) or self._watched.trouble(key)
            sight = self._observed.sight(key)
            reason = self._stalled.reason(key, sight) if sight else ""
            said = (address, error, reason, self._waits(key), done, wanted.wish if wanted else 0)
            await self._emit(self._observed.news(key, *said))

    def _waits(self, key: ObjectKey) -> str:
        """What the object waits for, and what is the matter there; "" if for nothing for long."""
        found = self._barrier.waits_for(key)
        if found is None:
            return ""
        other, named = found
        sight = self._observed.sight(other)
        why = self._errors.get(other) or (sight.reason if sight is not None else "")
        return f"{named}: {why}" if why else named

    async def _emit(self, news: ObjectObserved | None) -> None:
        if news is not None and (answer := self._observe(news)) is not None:
            await answer
