"""Each placement's delta says what its space wants now."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from controllers.core.access.keyring import PlacementKeys
from controllers.core.planning.holdings import steered_of
from controllers.core.rollout.rolled_places import RolledPlaces
from controllers.core.rollout.rollouts import rollout_key
from controllers.core.rollout.state import target_of
from controllers.core.status.rollout_holds import Steered
from controllers.core.translation.placements import Placements
from controllers.core.translation.reading import read_arm, read_issued
from controllers.core.translation.translate import IssuedDelta
from controllers.core.workloads.own_statuses import concerned, of_served_kinds
from controllers.core.workloads.selection import KindScope
from controllers.core.workloads.space import (
    CONTROL_KINDS,
    Placement,
    Workloads,
    reaches_among,
    slices_among,
)
from controllers.core.workloads.undenatured import undenatured, undenatured_text
from controllers.issuing.issuer import Issuer, read_all
from controllers.spaces.following import CONTROL, EVERYTHING, interests_of, kinds_of, listed_objects
from controllers.spaces.informer import SpaceInformer, SpaceReconciler, identity_of
from controllers.work_queue import ALL, PlacementQueues
from controllers.workloads.preparation import Preparation
from controllers.workloads.rollout_notes import RolloutNotes
from controllers.workloads.unread_kinds import KindReading
from controllers.workloads.vanishing import Definitions, Vanishing
from relay.ports import Clock
from relay.shell.publisher import CentrePublisher
from relay.space_errors import NOT_FOUND, SpaceError
from relay.space_port import FinalizingSpace, Interests, Kind, Object, ObjectChange, Space, Unserved
from relay.waiting import in_turns, some_at_once
from schemas.objects.objects import GroupResource, ObjectKey
from schemas.records.placements import KINDS, placement_of, title
from schemas.records.records import DeltaHead, LocationRecord, Profile, Record, Source
from schemas.values.groups import RELEASES, ROLLOUTS
from schemas.values.identity import MailKey

Note = Callable[[str, str, str], None]
"""Hears what no status can say: a reason, what it is about, and why."""

READS_AT_ONCE = 64
LISTED_MIN = 32
"""So many objects are read by one list rather than one by one."""
_SECRETS = ("", "secrets")


class PlacementTranslator(SpaceReconciler[str]):
    """The reconciler of one workload description space; what it decides is in `Placements`."""

    def __init__(
        self,
        issuer: Issuer,
        relay: CentrePublisher,
        space: Space,
        clock: Clock,
        queues: PlacementQueues,
        note: Note,
    ) -> None:
        super().__init__(space, clock, queues.translations)
        self.issuer = issuer
        self.relay = relay
        self._queues = queues
        # Hears of a removal that is held and that no status can tell.
        self.note = note
        issuer.listen(self._ledger_changed)
        self.places = RolledPlaces(issuer.records)
        issuer.listen(self.places.changed)
        # What is decided of its placements.
        self.placements = Placements("", {})
        self._notes = RolloutNotes(relay, self.placements)
        self._continuity = issuer.continuity("")
        self._interests = Interests()
        # What the space serves.
        self.kinds: tuple[Kind, ...] = ()
        self._reached: tuple[frozenset[KindScope], tuple[Kind, ...]] = (frozenset(), ())
        self._ever: dict[GroupResource, Kind] = {}
        self._deferred: set[str] = set()
        self._definitions = Definitions(space)
        self._vanishing = Vanishing(self._definitions)
        self._preparation = Preparation(clock)
        # What is in the queue again, as it takes long to prepare.
        self._unprepared: frozenset[str] = frozenset()
        self._reading = KindReading(
            space,
            clock,
            lambda: self.workloads,
            # All statuses are to say what is not seen now.
            lambda: queues.statuses.add(self.workloads.objects),
        )
        # By name, which metadata.generation of a placement the ledger says, or refuses.
        self.observed: dict[str, int] = {}

    @property
    def workloads(self) -> Workloads:
        """What the space holds."""
        return self.placements.workloads

    @property
    def _followed(self) -> set[GroupResource]:
        return {item.group_resource for item in self._interests.wanted or ()}

    @property
    def unready(self) -> str:
        """What keeps it from being told of placements now; "" if nothing does."""
        return self.unread((kind.group, kind.resource) for kind in KINDS)

    async def run(self) -> None:
        """Reconcile until cancelled; raises BusBroken, and SpaceError if the space is another."""
        self._preparation, self._unprepared = Preparation(self.clock), frozenset()
        identity = await identity_of(self.space, self.clock)
        known = await self._read_ledger(Placements(identity, {}))
        holds = self.issuer.ledger.contains
        self.placements = Placements(
            identity,
            known,
            self.issuer.records,
            holds,
            self.keys_of,
            self.issuer.brakes,
        )
        self._notes = RolloutNotes(self.relay, self.placements)
        self._notes.restore(self.name_of)
        self._continuity = self.issuer.continuity(identity)
        self.workloads.settings.by_tools = isinstance(self.space, FinalizingSpace)
        self._interests = Interests(CONTROL)
        self._ever = kinds_of(key for each in known.values() for key in each.entries or ())
        async with asyncio.TaskGroup() as group:
            self._informer = SpaceInformer(self.space, identity, self._interests, self, self.clock)
            group.create_task(self._informer.run(), name="workloads")
            group.create_task(self._reading.run(), name="kinds")
            group.create_task(self._queue.work(self.reconcile), name="translate")

    def keys_of(self, placement: MailKey) -> PlacementKeys:
        """Under which keys a placement's content is sealed now."""
        return self.issuer.keys.sealing.ring.keys(placement)

    def source(self, name: str) -> Source:
        """The clear key of a placement of this space."""
        return self.placements.source(name)

    def name_of(self, key: MailKey) -> str | None:
        """The placement of this space that a mail key means."""
        record = self.issuer.records.get(key)
        ours = record is not None and self.placements.is_ours(record)
        return placement_of(record.source) if record is not None and ours else None

    def placement_at(self, key: MailKey) -> Placement | None:
        """The placement of this space that a mail key means, as it was valid last."""
        return self.workloads.placements.get(self.name_of(key) or "")

    def removal_goes_at(self, name: str) -> int | None:
        """When a held removal goes by itself, in ms since 1970; None if it waits for a person."""
        key, said = self.source(name).key, self.placements.held.get(name, "")
        brakes = (self.placements.brake, self.issuer.brakes.brake)
        found = (brake.goes_at(key, name, said) for brake in brakes)
        return next((at for at in found if at is not None), None)

    def undenatured_text(self, name: str) -> str:
        """What a placement selects that acts on its own API server; "" if nothing does."""
        if not isinstance(self.space, FinalizingSpace):
            return ""
        return undenatured_text(undenatured(self.workloads, name))

    def keyless(self, name: str) -> tuple[str, ...]:
        """The destinations that can open none of the Secrets that a placement sends them."""
        record = self.issuer.records.get(self.source(name).key)
        if not self.issuer.keys.sealing.seals or not isinstance(record, DeltaHead):
            return ()
        selected = self.workloads.resolver.selection(name)
        if not any(key.group_resource == _SECRETS for key in selected):
            return ()
        return self.places.keyless(record.alternatives)

    def steered(self, name: str) -> Steered | None:
        """What its Rollout makes of a placement, or made before it was deleted."""
        steered = steered_of(self.placements, name)
        if steered is None:
            return None
        gates = steered.gates
        return replace(
            steered,
            places=self.places.of(self.source(name).key, gates),
            opens=self.places.opens(gates, self.clock.now().wall_ms),
        )

    def release(self, name: str) -> None:
        """Let a placement follow its space again whose Rollout was deleted.

        Of one that does, what was aborted or undone goes out.
        """
        if name in self.placements.gone:
            self.workloads.rollouts.let_go.add(name)
        else:
            self.placements.rejections.release(name)
        self._queue.add([name])

    def look_at(self, names: Iterable[str]) -> None:
        """Have the ledger say what is let out now."""
        self._queue.add(names)

    def tell_of(self, names: Iterable[str]) -> None:
        """Have the statuses of these say what holds them now."""
        self._queues.statuses.add(names)

    def rotate_key(self, name: str) -> MailKey:
        """Seal a placement of the space with another key from now on; its mail key."""
        key = self.source(name).key
        self.issuer.keys.sealing.renew(key)
        self._queue.add([name])
        return key

    def look_at_all(self) -> None:
        """Have the ledger say all with the keys that there are now."""
        self._queue.add(self.workloads.placements)

    def is_kept(self, name: str) -> bool:
        """Whether it is in force, or deleted and still listed by a snapshot."""
        return self.issuer.ledger.contains(self.source(name).key)

    def accept_removals(self, name: str) -> None:
        """Let a placement's held removals pass, those that are held now and no later ones."""
        self._queue.add(self.placements.accept(name))
        self.issuer.brakes.accept(self.source(name).key)

    async def listing(self, changed: Iterable[Object]) -> dict[ObjectKey, Object]:
        """All that the space shows of what placements may select, these written ones, too.

        Raises SpaceError.
        """
        reaches = self.workloads.resolver.reaches | reaches_among(changed)
        wanted = CONTROL | interests_of(reaches, self.kinds)
        served = {kind.group_resource for kind in self.kinds}
        objects: dict[ObjectKey, Object] = {}
        for kind in sorted(served & {item.group_resource for item in wanted}):
            if kind in self.workloads.unread:
                # It goes on with what was seen of it.
                objects |= self.workloads.shown(kind)
            else:
                objects |= await listed_objects(self.space, *kind)
        return objects

    def knows(self, written: Mapping[ObjectKey, str]) -> bool:
        """Whether what was written is known at these revisions, and all that it may select."""
        if self._informer is None or self._widen():
            return False
        return self.workloads.knows(self._followed, written)

    async def caught_up(self) -> None:
        """Wait until the ledger says what the space holds now."""
        await super().caught_up()
        left = self._unprepared
        while left := left & self._unprepared:
            await self._queue.wait_caught_up()

    def served(self, kinds: tuple[Kind, ...]) -> None:
        """Take the kinds that the space serves now."""
        self.kinds = kinds
        names = self.workloads.missing.serve(kind.group_resource for kind in kinds)
        self._look(names, frozenset())
        self._await_kinds()
        self._queues.own_statuses.add(of_served_kinds(self.workloads))

    def not_served(self, event: Unserved) -> None:
        """Remember why a kind cannot be read; its objects stay as they were.

        Those of one that is gone went with their definition.
        """
        self._reading.not_served(event)
        self.workloads.trusted -= {event.interest.group_resource}
        if event.reason == NOT_FOUND:
            self._vanishing.lacks(event.interest.group_resource)
        self._look(self.workloads.objects, frozenset())

    async def ready(self, first: Mapping[ObjectKey, Object], /) -> bool:
        """Whether all that placements among these may select was listed, too."""
        ours = [(key, obj) for key, obj in first.items() if key.group_resource in CONTROL_KINDS]
        # To read expressions and paths takes long, and all are read at a start.
        async for key, obj in in_turns(ours, self.clock):
            self.workloads.put(key, obj)
        before = self._interests.wanted
        self._widen()
        return before == self._interests.wanted

    def listed(self, objects: Mapping[ObjectKey, Object], kind: GroupResource | None) -> None:
        """Take all objects of the space, or all of one kind."""
        rollouts = self.workloads.rollouts
        before = set(rollouts.objects)
        if self._informer is not None:
            shown = self._informer.shown(self._followed)
            self._continuity.listed(self._informer.listed_at, kind, shown, self.workloads)
            self._reading.listed(shown if kind is None else [kind])
        for key, obj in objects.items():
            self._definitions.saw(key, obj)
        names = self.placements.listed(objects, kind)
        self.workloads.thin(objects)
        self._look(names, slices_among(objects))
        self._queues.own_statuses.add(concerned(self.workloads, objects))
        self._look_at_releases(objects)
        if kind in (None, RELEASES):
            # Some may be gone that a run before knew.
            self.workloads.releases.is_listed = True
            self._queues.releases.add([ALL])
        self._look_at_rollouts([*objects, *map(rollout_key, before - rollouts.objects.keys())])

    def changed(self, change: ObjectChange) -> None:
        """Take a change of the space."""
        self._continuity.saw(change, is_defined=self._definitions.may_vanish(change.key))
        if self._is_doubted(change):
            return
        if change.kind != "deleted":
            self._definitions.saw(change.key, change.object)
            self._vanishing.forget(change.key)
            name = self.workloads.put_status(change.key, change.object)
            if name is not None:
                # Mostly it was written here; if not, it is written again.
                self._queues.statuses.add([name])
                return
        if change.kind == "deleted":
            names = self.placements.deleted(change.key)
        else:
            if change.key.group_resource == ROLLOUTS:
                self.workloads.rollouts.note_created(change.key.name)
            names = self.placements.put(change.key, change.object)
            self.workloads.thin([change.key])
        self.relay.watch.seen((self.source(name).key for name in names), change.key)
        self._look(names, slices_among([change.key]))
        self._queues.own_statuses.add(concerned(self.workloads, [change.key]))
        self._look_at_releases([change.key])
        if change.key.group_resource == ROLLOUTS:
            # Its status, and what is asked of it, are nobody else's.
            others = self.workloads.rollouts.objects if names else ()
            self._queues.rollouts.add({change.key.name, *others})

    def _is_doubted(self, change: ObjectChange) -> bool:
        """Whether it is to be asked first if somebody deleted an object, or its definition."""
        holding = self._vanishing.doubted(change, self.placements)
        if holding:
            self._look(holding, slices_among([change.key]))
        return bool(holding)

    def synced(self) -> None:
        """Go on with what waited until all kinds that it may select were listed."""
        if not self._widen():
            # Not before: of a kind that is wanted again meanwhile nothing is listed anew.
            self.placements.keep_kinds(self._followed)
            self._reading.synced()
            deferred, self._deferred = self._deferred, set()
            self._queue.add(deferred)

    def _ledger_changed(self, records: Sequence[Record]) -> None:
        """Look again at what waits for placements that no snapshot lists any more."""
        sources = [record.source for record in records if self.placements.is_ours(record)]
        gone = [source for source in sources if not self.issuer.ledger.contains(source.key)]
        names = [name for name in map(placement_of, gone) if name is not None]
        self._queue.add(self.workloads.dependencies.waiting(names))
        if any(isinstance(record, Profile | LocationRecord) for record in records):
            # What is held may not be lost any more: it may be theirs in another way.
            self._queue.add(self.placements.braked)

    def _look(self, names: Collection[str], slices: frozenset[str]) -> None:
        self._preparation.changed(names)
        if self._widen():
            self._deferred.update(names)
        else:
            self._queue.add(names)
        self._queues.slices.add(slices)

    def _look_at_releases(self, changed: Iterable[ObjectKey]) -> None:
        names = {key.name for key in changed if key.group_resource == RELEASES}
        self._queues.releases.add(names)

    def _look_at_rollouts(self, changed: Iterable[ObjectKey]) -> None:
        """Have Rollouts looked at if one changed, or is gone: two may be of one placement."""
        names = {key.name for key in changed if key.group_resource == ROLLOUTS}
        if names:
            self._queues.rollouts.add({*names, *self.workloads.rollouts.objects})

    def _widen(self) -> bool:
        """Follow the kinds that placements may select now; whether some are still to be listed."""
        reaches = self.workloads.resolver.reaches
        if (reaches, self.kinds) != self._reached:
            self._reached = (reaches, self.kinds)
            # That a kind is served no more, perhaps for a moment, says nothing of its objects.
            self._ever |= {kind.group_resource: kind for kind in self.kinds}
            self._interests.set(CONTROL | interests_of(reaches, self._ever.values()))
            followed = self._followed
            selectable = interests_of([EVERYTHING], self._ever.values())
            self.workloads.sees_all = all(i.group_resource in followed for i in selectable)
            self._await_kinds()
        return self._informer is None or not self._informer.synced

    def _await_kinds(self) -> None:
        """Wait for the kinds that are to be followed now, and are served."""
        followed = self._followed
        self._reading.followed(kind for kind in self.kinds if kind.group_resource in followed)

    async def reconcile(self, names: frozenset[str]) -> frozenset[str]:
        """Bring what the ledger says of these up to date; those to be looked at again."""
        self.relay.watch.begun(self.source(name).key for name in names)
        names, undecided = await self._vanishing.judge(self.placements, names)
        again = undecided if await self._complete(names) else names | undecided
        waiting = await self._preparation.prepare(self.placements, names, self._is_sealed)
        self._unprepared = waiting
        self._queue.add(waiting)
        names, again = names - waiting, again - waiting
        generations = self.workloads.generations(names)
        await self._read_targets(names)
        try:
            self.workloads.lost = await self._continuity.lost(
                self.space, lambda: self.workloads.unseen_keys
            )
        except SpaceError:
            return names | again
        if self._continuity.fell():
            self.placements.doubt()
        todo, issued = names, False
        while todo:
            works = self.placements.next(todo, self.clock.now().wall_ms)
            todo, issued = self.placements.deferred, issued or bool(works)
            for work in works:
                if work.unsent:
                    await self._notes.keep(work)
            drafts = [work.draft for work in works if work.draft is not None]
            deleted = [work.key for work in works if work.translation is None]
            if works:
                self.placements.issued(works, await self.issuer.issue(drafts, deleted))
                # What is held may be given by one of these now.
                self._queue.add({*self.placements.braked} - names)
            for work in works:
                await self._notes.remember(work)
        await self._notes.settle(names)
        await self._continuity.keep(issued=issued, whole=self.workloads.is_whole)
        self.observed.update(generations)
        for name in names - generations.keys():
            self.observed.pop(name, None)
        for name in names & self.placements.held.keys() - self.workloads.objects.keys():
            self.note("RemovalHeld", title(name), self.placements.held[name])
        self._look_later(names)
        self._queues.translated(names)
        self._queues.rollouts.add(self.workloads.rollouts.steering(names))
        self.relay.watch.settled(self.source(name).key for name in names - again)
        return again

    def _look_later(self, names: frozenset[str]) -> None:
        """Look again at what is held when it is to go by itself."""
        due, now_ms = self.placements.brake.due, self.clock.now().wall_ms
        for name in names:
            if (at := due.get(self.source(name).key)) is not None:
                self._queue.add_later(name, max(at - now_ms, 0) / 1000)

    def _is_sealed(self, name: str) -> bool:
        return self.keys_of(self.source(name).key).newest is not None

    async def _read_targets(self, names: Iterable[str]) -> None:
        """Read what steered placements wanted last: the ledger may not lead there."""
        rollouts = self.workloads.rollouts
        for name in sorted(names):
            keys = self.keys_of(self.source(name).key)
            for root in self.placements.rejections.unread(name):
                read = await read_all(self.relay, read_arm(root, keys))
                self.placements.rejections.put_arm(name, root, read)
            if not self.placements.lacks_target(name):
                continue
            state = rollouts.stored_status(rollouts.of(name) or "")
            target = target_of(state) if state is not None else None
            if target is None:
                continue
            read = await read_all(self.relay, read_arm(target, keys))
            if read is not None:
                self.placements.put_target(name, read)

    async def _complete(self, names: Iterable[str]) -> bool:
        """Read what is selected and of which only metadata is known; whether all could be read."""
        self._preparation.changed(name for name in names if self.workloads.partial(name))
        await self._complete_by_lists(names)
        partial = sorted({key for name in names for key in self.workloads.partial(name)})
        await some_at_once(partial, self._complete_one, READS_AT_ONCE)
        return not any(self.workloads.partial(name) for name in names)

    async def _complete_by_lists(self, names: Iterable[str]) -> None:
        """Read at once what is most of a kind in a namespace."""
        grouped: dict[tuple[GroupResource, str], set[ObjectKey]] = defaultdict(set)
        for key in {key for name in names for key in self.workloads.partial(name)}:
            grouped[key.group_resource, key.namespace].add(key)
        for (kind, namespace), keys in grouped.items():
            if len(keys) < LISTED_MIN:
                continue
            known = self.workloads.resolver.of_kind(kind)
            if 2 * len(keys) < sum(key.namespace == namespace for key in known):
                continue
            with suppress(SpaceError):
                listing = await self.space.list(*kind, namespace=namespace)
                for obj in listing.objects:
                    key = ObjectKey(*kind, namespace, obj["metadata"]["name"])
                    if key in keys:
                        self.placements.put(key, obj)

    async def _complete_one(self, key: ObjectKey) -> None:
        try:
            obj = await self.space.get(key)
        except SpaceError:
            return
        known = {**self.workloads.resolver.objects.get(key, {})}
        change = (
            ObjectChange("deleted", key, known)
            if obj is None
            else ObjectChange("modified", key, obj)
        )
        if self._is_doubted(change):
            return
        if obj is None:
            self.placements.deleted(key)
        else:
            self.placements.put(key, obj)

    async def _read_ledger(self, placements: Placements) -> dict[str, IssuedDelta]:
        """Take in all that the ledger holds, many at once: each takes two round trips."""
        records = [record for record in self.issuer.records.values() if placements.is_ours(record)]
        heads = [record for record in records if isinstance(record, DeltaHead)]
        deltas = await some_at_once(heads, self._read, READS_AT_ONCE)
        named = ((placement_of(issued.head.source), issued) for issued in deltas)
        return {name: issued for name, issued in named if name is not None}

    async def _read(self, head: DeltaHead) -> IssuedDelta:
        body = self.issuer.ledger.bodies[head.source.key].value
        keys = self.keys_of(head.source.key)
        issued = await read_all(self.relay, read_issued(head, body, keys))
        entries = (issued.entries or {}).values()
        addresses = [it.address for entry in entries for it in entry.references]
        return replace(issued, lost=self.relay.lacks(addresses))
