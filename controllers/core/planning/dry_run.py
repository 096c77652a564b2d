"""A change tried on the centre's own decisions: what would be delivered after it.

Placements and inventory go through the very parts that issue records; nothing is issued.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial

from controllers.core.inventory.records import REGISTERED
from controllers.core.inventory.registry import Registry
from controllers.core.planning.holdings import (
    never_open,
    of_deleted,
    of_rollout,
    of_spec,
    of_standing,
    steered_of,
    why_refused,
    why_rejected,
)
from controllers.core.planning.states import (
    NOTHING,
    NOTHING_HELD,
    Arms,
    Closed,
    Delivery,
    HoldReasons,
    KeptBack,
    PlannedState,
    records_of,
)
from controllers.core.rollout.empty_waves import empty_waves
from controllers.core.rollout.estimates import label_values, takes_any, wave_members
from controllers.core.rollout.waves import EVERYONE, expanded
from controllers.core.status.empty_selectors import empty_selectors
from controllers.core.translation.placements import Placements
from controllers.core.translation.stored_arms import differing
from controllers.core.translation.translate import IssuedDelta, alternatives_of
from controllers.core.translation.work import Work
from schemas.content.blobs import Reference
from schemas.content.manifest import ManifestEntry
from schemas.objects.objects import Object, ObjectKey
from schemas.records.placements import placement_at, placement_of, title
from schemas.records.records import DeltaHead, LocationRecord, Profile, Record
from schemas.values.faults import Fault
from schemas.values.groups import ROLLOUTS
from schemas.values.identity import ContentHash, MailKey

LATER_REVISION = 2**62
"""The resourceVersion of what is written: above all that a space said."""
LATER_TIME = "9999-12-31T23:59:59Z"

ObjectsByKey = Mapping[ObjectKey, Object]
Written = Mapping[ObjectKey, Object | None]
"""What is written, by key; None is what is deleted."""


@dataclass(frozen=True, slots=True)
class CentreState:
    """What the centre knows now: of the first workload space and inventory, and of all others."""

    placements: Placements
    registry: Registry
    ledger: Mapping[MailKey, Record]
    # All that the workload space shows.
    objects: ObjectsByKey
    # All that the inventory space shows; nothing if the change has nothing for it.
    inventory: ObjectsByKey = field(default_factory=dict)
    # What placements of other spaces have delivered.
    others: Mapping[MailKey, IssuedDelta] = field(default_factory=dict)
    # Windows of Rollouts are open, or not, by it.
    now_ms: int = 0


@dataclass(frozen=True, slots=True)
class DryRun:
    """A change, tried."""

    before: PlannedState
    after: PlannedState
    # What is to be known of content, first what matters most.
    wanted: tuple[Reference, ...]
    # Values of blobs that are not kept yet.
    stored: Mapping[ContentHash, bytes]
    # By title, what becomes of each that is touched.
    placements: Mapping[str, str]
    # What else to say.
    notes: tuple[str, ...]
    # By title: the waves by which it goes out, each with about how many destinations.
    waves: Mapping[str, tuple[tuple[str, int], ...]]


def dry_run(
    stage: CentreState,
    workloads: Written,
    inventory: Written,
    named: AbstractSet[ObjectKey] = frozenset(),
) -> DryRun:
    """Try what is written and deleted, in this order, on a centre's copy of its own.

    Of `named` objects the content is wanted also if they stay as they are.
    """
    before = _state(stage)
    trial = stage.placements.trial(stage.objects, stage.ledger)
    touched: set[str] = set()
    for key, obj in workloads.items():
        touched |= trial.deleted(key) if obj is None else trial.put(key, later(key, obj))
    works = {work.name: work for work in _works(trial, touched)}
    changes = [
        _Change(trial, name, works.get(name), before, workloads, stage) for name in sorted(touched)
    ]
    placements = {**before.placements}
    for change in changes:
        change.put_into(placements)
    _put_standing(stage, _standing(stage, named) - touched, placements)
    stored = {
        address: value
        for work in works.values()
        if work.draft is not None
        for address, value in work.draft.blobs.items()
    }
    there = stage.objects.keys()
    after = replace(
        before,
        placements=placements,
        gone=frozenset(key for key, obj in workloads.items() if obj is None),
        new=frozenset(workloads.keys() - there),
    )
    after, notes = _with_inventory(stage, inventory, after)
    return DryRun(
        before,
        after,
        tuple(dict.fromkeys(_references(before, after, named))),
        stored,
        {title(change.name): change.action for change in changes if change.action},
        (
            *(note for change in changes for note in change.notes()),
            *(_of_nobody(stage, trial, workloads, touched) if not inventory else ()),
            *notes,
        ),
        {title(change.name): found for change in changes if (found := change.waves(stage.ledger))},
    )


def _of_nobody(
    stage: CentreState, trial: Placements, written: Written, touched: AbstractSet[str]
) -> Iterator[str]:
    """What of placements and waves means no destination that there is, and is not to."""
    records = stage.ledger.values()
    rollouts, placements = trial.workloads.rollouts, trial.workloads.placements
    for name in sorted(touched & placements.keys()):
        meant = alternatives_of(placements[name].spec)
        if placements[name].spec.readiness.allow_empty:
            continue
        unmatched = empty_selectors(meant, lambda each: takes_any(records, (each,), EVERYONE))
        yield from (f"{title(name)}: {each}" for each in unmatched)
        if not takes_any(records, meant, EVERYONE):
            yield f"{title(name)}: none of its selectors matches a destination: it goes nowhere"
    named = {key.name for key in written if key.group_resource == ROLLOUTS}
    for name in sorted(named | rollouts.steering(touched)):
        spec = rollouts.specs.get(name)
        placement = placements.get(spec.placement.placement) if spec is not None else None
        if spec is not None and placement is not None:
            meant = alternatives_of(placement.spec)
            if said := empty_waves(spec, partial(takes_any, records, meant)):
                yield f"rollout/{name}: {said}"


def _standing(stage: CentreState, named: AbstractSet[ObjectKey]) -> set[str]:
    """The placements of these objects of which not everyone has what they want."""
    now, resolver = stage.placements, stage.placements.workloads.resolver
    names = {name for key in named for name in resolver.selecting(key)}
    names |= {name for name in map(placement_at, named) if name is not None}
    steered = {name: steered_of(now, name) for name in names}
    return {
        name
        for name, it in steered.items()
        if now.refused.get(name) or (it is not None and (name in now.gone or not it.is_everywhere))
    }


def _put_standing(
    stage: CentreState, names: Iterable[str], placements: dict[MailKey, Delivery]
) -> None:
    """Put what these want, and what keeps that back, in the place of what is delivered now."""
    now = stage.placements
    for name in names:
        key, steered = now.source(name).key, steered_of(now, name)
        former, refused = placements.get(key), why_refused(now.refused.get(name, {}))
        if former is None:
            continue
        if steered is None:
            placements[key] = replace(former, back=refused)
            continue
        wanted = now.wanted(name)
        if wanted is None:
            # Nothing steers it: all but what is rejected goes out at once.
            wanted = former.entries
        gone = name in now.gone
        holding = of_deleted(name) if gone else of_standing(steered, stage.now_ms)
        rejected = dict.fromkeys(now.rejections.objects.get(name, ()), why_rejected(steered))
        made = replace(former, entries=wanted, arms=None, back={**rejected, **refused})
        placements[key] = replace(made, arms=KeptBack(made, former, holding))


def _works(trial: Placements, names: Collection[str]) -> Iterator[Work]:
    """What is issued and deleted, also of what waits for others of these to be issued first."""
    while names:
        listed, names = trial.next(names), trial.deferred
        yield from (work for work in listed if work.draft is not None or work.translation is None)


def later(key: ObjectKey, obj: Object) -> Object:
    """An object as it is once it is written: newer than all that there is."""
    metadata = {"uid": f"{key}", "creationTimestamp": LATER_TIME, **obj["metadata"]}
    return {**obj, "metadata": {**metadata, "resourceVersion": str(LATER_REVISION)}}


class _Change:
    """What becomes of one placement."""

    def __init__(
        self,
        trial: Placements,
        name: str,
        work: Work | None,
        before: PlannedState,
        written: Written,
        stage: CentreState,
    ) -> None:
        self.name = name
        self._trial = trial
        self._key = trial.source(name).key
        self._former = before.placements.get(self._key)
        self._work = work
        self._written = written
        self._placement = trial.workloads.placements.get(name)
        self._faults = self._kept_back() if self._placement is not None else {}
        # What was aborted or undone, and stays so.
        self._rejected: Mapping[ObjectKey, str] = {}
        self._standing = self._held_back(stage)

    @property
    def action(self) -> str:
        """What becomes of it, in a word; "" if it stays as it is."""
        if self._faults:
            return "frozen"
        if self._standing.everywhere and not self._standing.is_going:
            return "held"
        if self._work is None:
            return "held" if self.name in self._trial.held else ""
        if self._work.translation is None:
            return "delete"
        return "update" if self._former is not None else "create"

    def put_into(self, placements: dict[MailKey, Delivery]) -> None:
        """Put what is delivered then in the place of what is delivered now."""
        placements.pop(self._key, None)
        delivery = self._delivery()
        if delivery is not None:
            placements[self._key] = delivery

    def notes(self) -> Iterator[str]:
        """What its status would say is wrong."""
        lack = self._trial.workloads.lack(self.name)
        if lack is not None and not self._faults and self.name in self._trial.workloads.objects:
            yield f"{title(self.name)}: {lack.message}"
        for fault in self._trial.faults.get(self.name, ()) if self._work else ():
            yield f"{title(self.name)}: {fault}; it stays as it went out last"
        if why := self._trial.held.get(self.name):
            yield f"{title(self.name)}: RemovalHeld: {why}"

    def waves(self, ledger: Mapping[MailKey, Record]) -> tuple[tuple[str, int], ...]:
        """The waves by which it goes out, with how many destinations; none if it goes at once.

        Shares of a Rollout that is new are drawn otherwise later, so these are about as many.
        """
        rollouts = self._trial.workloads.rollouts
        steering = rollouts.of(self.name)
        if steering is None or self.action not in ("create", "update") or self._work is None:
            return ()
        draft = self._work.draft
        if draft is None or not isinstance(draft.record, DeltaHead):
            return ()
        listed, _ = expanded(
            rollouts.specs[steering], lambda label: label_values(ledger.values(), label)
        )
        status = rollouts.stored_status(steering)
        salt = status.salt if status is not None else ""
        counts = wave_members(ledger, draft.record.alternatives, listed, salt)
        return tuple(zip((wave.name for wave in listed), counts, strict=True))

    def _held_back(self, stage: CentreState) -> HoldReasons:
        """What its Rollout keeps back of it, or that this was deleted."""
        now = stage.placements
        if self.name in self._trial.gone:
            return of_deleted(self.name)
        steered, work = steered_of(now, self.name), self._work
        rollout = self._trial.workloads.rollouts.of(self.name) or ""
        if steered is None or steered.rollout != rollout or work is None or not work.translation:
            return NOTHING_HELD
        if work.translation.wish is not None:
            rejected = work.translation.wish.rejected
            self._rejected = dict.fromkeys(rejected, why_rejected(steered))
        known = now.wanted(self.name)
        is_news = known is None or bool(differing(known, work.translation.entries))
        spec = self._trial.workloads.rollouts.specs.get(rollout)
        if not is_news or spec is None:
            return of_standing(steered, stage.now_ms)
        return of_rollout(steered, of_spec(rollout, spec, stage.now_ms), is_news=True)

    def _delivery(self) -> Delivery | None:
        """What is delivered then, as far as something lets it out."""
        made = self._wanted()
        if made is None or self._standing is NOTHING_HELD:
            return made
        former = self._former or replace(made, entries=NOTHING)
        return replace(made, arms=KeptBack(made, former, self._standing))

    def _wanted(self) -> Delivery | None:
        work, former = self._work, self._former
        if former is not None and (gone := self._trial.gone.get(self.name)) is not None:
            return replace(former, entries=gone.entries, arms=None)
        if work is not None:
            if work.translation is None or work.draft is None:
                return None
            head = work.draft.record
            assert isinstance(head, DeltaHead)
            entries = work.translation.entries
            made = Delivery(self.name, self._key, head.alternatives, entries)
            refused = why_refused(self._trial.refused.get(self.name, {}))
            made = replace(made, back={**self._rejected, **refused})
            return self._holding(made)
        if self._faults:
            assert self._placement is not None
            meant = alternatives_of(self._placement.spec)
            stays = former or Delivery(self.name, self._key, meant, NOTHING)
            return replace(stays, faults=self._faults)
        if former is None:
            return None
        if refused := why_refused(self._trial.refused.get(self.name, {})):
            former = replace(former, back=refused)
        return self._holding(former)

    def _holding(self, delivery: Delivery) -> Delivery:
        why = self._trial.held.get(self.name)
        if why is None:
            return delivery
        selected = self._trial.workloads.resolver.selection(self.name)
        held = frozenset(delivery.entries.keys() - selected.keys())
        return replace(delivery, held=held, why_held=why)

    def _kept_back(self) -> dict[ObjectKey, tuple[Fault, ...]]:
        """What can be customized nowhere, and what else is written and stays back for that."""
        resolver = self._trial.workloads.resolver
        everything = self._trial.workloads.frozen(self.name)
        if not everything:
            return {}
        found: dict[ObjectKey, tuple[Fault, ...]] = {}
        for key in resolver.selection(self.name):
            own = resolver.customizers.casting(key, resolver.objects[key]).faults
            if own or key in self._written:
                found[key] = own or everything
        return found


def _state(stage: CentreState) -> PlannedState:
    """What the ledger says now."""
    ours = {
        issued.head.source.key: _delivered(
            issued, never_open(steered_of(stage.placements, name), stage.now_ms)
        )
        for name, issued in stage.placements.standing().items()
    }
    others = {key: _delivered(issued) for key, issued in stage.others.items()}
    records = stage.ledger
    return PlannedState(
        {**others, **ours},
        records_of(records, Profile),
        records_of(records, LocationRecord),
    )


def _delivered(issued: IssuedDelta, closed: Closed = lambda _gate, _profile: False) -> Delivery:
    head = issued.head
    name = placement_of(head.source) or head.source.name
    entries = issued.entries or NOTHING
    made = Delivery(name, head.source.key, head.alternatives, entries)
    arms = Arms(made, issued, closed) if issued.gates else None
    return made if arms is None or arms.is_one else replace(made, arms=arms)


def _with_inventory(
    stage: CentreState, written: Written, state: PlannedState
) -> tuple[PlannedState, tuple[str, ...]]:
    """The state with what becomes of destinations and Locations, and what is wrong with them."""
    if not written:
        return state, ()
    trial = stage.registry.trial(stage.inventory, stage.ledger)
    looked_at: frozenset[ObjectKey] = frozenset()
    for key, obj in written.items():
        looked_at |= trial.deleted(key) if obj is None else trial.put(key, later(key, obj))
    work = trial.next(looked_at, 0)
    records = {**stage.ledger, **{draft.slot: draft.record for draft in work.drafts}}
    touched = [*(stage.ledger[slot] for slot in work.deleted), *(it.record for it in work.drafts)]
    for slot in work.deleted:
        del records[slot]
    notes = [
        f"synctarget/{name}: {said.message}"
        for name, said in sorted(work.conditions.items())
        if said.type == REGISTERED and said.status != "True"
    ]
    notes += [f"{name}: {why}" for name, why in sorted(trial.errors.items())]
    if any(isinstance(record, Profile) for record in touched):
        state = replace(state, profiles=records_of(records, Profile))
    if any(isinstance(record, LocationRecord) for record in touched):
        state = replace(state, locations=records_of(records, LocationRecord))
    return state, tuple(notes)


def _references(
    before: PlannedState, after: PlannedState, named: AbstractSet[ObjectKey]
) -> Iterator[Reference]:
    """The content by which it is told what differs.

    First of what is another, and what is named; then of templates; then of all that may come or go
    as a whole.
    """
    former, later_ = before.placements, after.placements
    inventory = before.profiles is not after.profiles or before.locations is not after.locations
    changed = [key for key in {**former, **later_} if former.get(key) is not later_.get(key)]
    told = set(named)
    for key in changed:
        old, new = _entries(former.get(key)), _entries(later_.get(key))
        told |= {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
        if (delivery := former.get(key)) is not None and delivery.arms is not None:
            # What someone has otherwise than is wanted now.
            told |= {it for had in delivery.contents() for it in differing(had, new)}
    # Others may have the object, too: before it is taken from them, or after they get it.
    for name in sorted(told):
        for standing in (*former.values(), *later_.values()):
            for entries in standing.contents():
                if name in entries:
                    yield from entries[name].references
    concerned = list({**former, **later_}) if inventory else changed
    for key in concerned:
        for delivery in (former.get(key), later_.get(key)):
            yield from _of(delivery.templates() if delivery is not None else ())
    for key in concerned:
        yield from _of(_entries(former.get(key)).values())
        yield from _of(_entries(later_.get(key)).values())


def _entries(delivery: Delivery | None) -> Mapping[ObjectKey, ManifestEntry]:
    return NOTHING if delivery is None else delivery.entries


def _of(entries: Iterable[ManifestEntry]) -> Iterator[Reference]:
    for entry in entries:
        yield from entry.references
