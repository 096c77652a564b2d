"""What becomes of each object at a destination: by what is wanted there before, and after.

Destinations for which the same placements are meant are one group, judged once for all of which the
copies are alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from controllers.core.planning.copies import Copies, PlannedCopy
from controllers.core.planning.states import NOTHING, Delivery, PlannedState
from relay.core.destination.claims import Claim, DesiredObject, choose
from relay.core.destination.customized_forms import CustomizedForm
from relay.objects.policies import on_removal
from relay.syncer.plan import implied_namespace
from schemas.content.manifest import ManifestEntry
from schemas.objects.objects import ALWAYS_THERE, DEFINITIONS, NAMESPACES, ObjectKey
from schemas.records.properties import properties_of
from schemas.records.records import LocationRecord, Profile
from schemas.values.identity import ContentHash, MailKey

PlannedAction = Literal["delete", "held", "keep", "orphan", "frozen", "create", "update", "none"]
DELETE: PlannedAction = "delete"
HELD: PlannedAction = "held"
KEEP: PlannedAction = "keep"
ORPHAN: PlannedAction = "orphan"
FROZEN: PlannedAction = "frozen"
CREATE: PlannedAction = "create"
UPDATE: PlannedAction = "update"
NONE: PlannedAction = "none"
ACTIONS = (DELETE, HELD, KEEP, ORPHAN, FROZEN, CREATE, UPDATE, NONE)
"""In the order in which they are told."""
REMOVALS: AbstractSet[PlannedAction] = frozenset({DELETE, HELD, KEEP, ORPHAN})
_ON_REMOVAL: Mapping[str, PlannedAction] = {"keep": KEEP, "orphan": ORPHAN}

UNKNOWN = "?"
"""What a frozen placement left at a destination, nobody but that knows."""
SETTLED_MAX = 4096

CopySlot = tuple[MailKey, ObjectKey]


class ObjectOutcome(NamedTuple):
    """What becomes of one object; `by` is the placement that freezes or holds it."""

    key: ObjectKey
    action: PlannedAction
    before: DesiredObject | None
    after: DesiredObject | None
    by: MailKey = MailKey("")
    # What of that placement could not be made: another object, perhaps.
    failing: ObjectKey | None = None
    failed: PlannedCopy | None = None
    # Why nothing becomes of it, if the placement itself tells that.
    why: str = ""


class PlanSide(NamedTuple):
    """One place at one moment: who hangs there, where that is, and what is meant for it."""

    profile: Profile | None = None
    locations: tuple[LocationRecord, ...] = ()
    placements: tuple[MailKey, ...] = ()


class PlanPosition(NamedTuple):
    """One place before and after."""

    before: PlanSide
    after: PlanSide


@dataclass(slots=True)
class DestinationGroup:
    """Destinations for which the same is meant before and after; what differs is `keys`."""

    before: tuple[Delivery, ...]
    after: tuple[Delivery, ...]
    keys: tuple[ObjectKey, ...]
    # What is to be customized to judge, of either side.
    templates: tuple[tuple[tuple[MailKey, ManifestEntry], ...], ...]
    # Placements of which something may change here.
    active: frozenset[MailKey]
    settled: dict[tuple[PlannedCopy, ...], tuple[ObjectOutcome, ...]] = field(default_factory=dict)

    @property
    def customizes(self) -> bool:
        return any(self.templates)


class _Side:
    """What is wanted of a group's destinations at one moment."""

    def __init__(
        self, deliveries: Iterable[Delivery], copies: Mapping[CopySlot, PlannedCopy]
    ) -> None:
        self.copies = copies
        self.frozen: dict[MailKey, dict[ObjectKey, PlannedCopy]] = {}
        self.holding: dict[MailKey, Delivery] = {}
        for (placement, key), copy in copies.items():
            if copy.failed:
                self.frozen.setdefault(placement, {})[key] = copy
        self.holding |= {delivery.key: delivery for delivery in deliveries}

    def wanted(self, key: ObjectKey) -> DesiredObject | None:
        claims = [
            Claim(it.key, entry, self._form(it, entry))
            for it in self.holding.values()
            if (entry := it.entries.get(key)) is not None
        ]
        if claims:
            return choose(key, claims).wanted
        implied = key.group_resource == NAMESPACES and key.name in self.namespaces()
        return implied_namespace(key.name) if implied else None

    def namespaces(self) -> AbstractSet[str]:
        """The Namespaces that are needed there."""
        needed = {key.namespace for it in self.holding.values() for key in it.entries}
        return needed - {""} - ALWAYS_THERE

    def _form(self, delivery: Delivery, entry: ManifestEntry) -> CustomizedForm | None:
        if delivery.key in self.frozen:
            return CustomizedForm(ContentHash(f"{UNKNOWN}{entry.address}"), None, ())
        copy = self.copies.get((delivery.key, entry.key))
        return copy.form if copy is not None else None


class Judge:
    """Compares two states group by group."""

    def __init__(
        self,
        before: PlannedState,
        after: PlannedState,
        copies: Copies,
        named: AbstractSet[ObjectKey],
    ) -> None:
        self._before, self._after = before.placements, after.placements
        self._copies = copies
        self._named = named
        # The placements of which something was told.
        self.concerned: set[MailKey] = set()
        everything = self._before.keys() | self._after.keys()
        self._changed = {
            key for key in everything if self._before.get(key) is not self._after.get(key)
        }
        self._changed |= {
            key for key, it in self._after.items() if not named.isdisjoint(it.entries.keys())
        }

    def is_unchanged(self, placements: Iterable[MailKey]) -> bool:
        """Whether nothing is to be told of these placements where nothing else changes."""
        return self._changed.isdisjoint(placements)

    def group(
        self, before: Iterable[Delivery], after: Iterable[Delivery], *, same_place: bool
    ) -> DestinationGroup:
        """The destinations that have these deliveries, and are to have those."""
        were = {delivery.key: delivery for delivery in before}
        are = {delivery.key: delivery for delivery in after}
        active = {key for key in were.keys() | are.keys() if were.get(key) is not are.get(key)}
        keys = {key for name in active for key in _differing(were.get(name), are.get(name))}
        for delivery in (*were.values(), *are.values()):
            keys |= self._named & delivery.entries.keys()
        if not same_place:
            active |= {key for key in were.keys() & are.keys() if are[key].templates()}
        sides = [
            tuple(
                (key, entry)
                for key, delivery in side.items()
                for entry in delivery.templates()
                if key in active or entry.key in keys
            )
            for side in (were, are)
        ]
        keys |= {
            entry.key for side in sides for key, entry in side if key in active and not same_place
        }
        group = DestinationGroup(
            (*were.values(),), (*are.values(),), (), (sides[0], sides[1]), frozenset(active)
        )
        return replace(group, keys=tuple(sorted(keys)))

    def verdicts(
        self, group: DestinationGroup, place: PlanPosition | None
    ) -> tuple[ObjectOutcome, ...]:
        """What becomes of its objects at one of a group's destinations."""
        sides = [*self._made(group, place)]
        made = tuple(copy for side in sides for copy in side.values())
        found = group.settled.get(made)
        if found is None:
            if len(group.settled) >= SETTLED_MAX:
                group.settled.clear()
            found = tuple(self._compare(group, *sides))
            group.settled[made] = found
        return found

    def is_kept(self, verdict: ObjectOutcome) -> bool:
        """Whether the copy that is there is kept in step now."""
        return verdict.before is not None and self._in_step(verdict.key, verdict.before)

    def _made(
        self, group: DestinationGroup, place: PlanPosition | None
    ) -> Iterator[dict[CopySlot, PlannedCopy]]:
        sides = place or PlanPosition(PlanSide(), PlanSide())
        for templates, side, values in zip(group.templates, sides, _values(*sides), strict=True):
            name = "" if side.profile is None else side.profile.source.name
            yield {
                (key, entry.key): self._copies.at(entry, values, name) for key, entry in templates
            }

    def _compare(
        self,
        group: DestinationGroup,
        were: Mapping[CopySlot, PlannedCopy],
        are: Mapping[CopySlot, PlannedCopy],
    ) -> Iterator[ObjectOutcome]:
        before, after = _Side(group.before, were), _Side(group.after, are)
        frozen = self._freeze(group, before, after)
        spaces = before.namespaces() ^ after.namespaces()
        implied = {ObjectKey(*NAMESPACES, "", name) for name in spaces}
        keys = sorted({*group.keys, *implied, *frozen})
        judged = [self._judge(key, before.wanted(key), after.wanted(key)) for key in keys]
        for key, found in zip(keys, _around_kept(judged), strict=True):
            verdict = found
            if verdict.action == NONE:
                back = frozen.get(key)
                # That an object is kept back is said beside what is wanted of it.
                back = back and back._replace(before=verdict.before, after=verdict.after)
                verdict = back or self._kept(group, verdict)
                verdict = _still_frozen(verdict, after)
            if verdict.action != NONE:
                self.concerned |= _placements(verdict)
            if verdict.action != NONE or key in self._named:
                yield verdict

    def _freeze(
        self, group: DestinationGroup, before: _Side, after: _Side
    ) -> dict[ObjectKey, ObjectOutcome]:
        """Keep what was good of placements that cannot be customized; what that keeps back."""
        told: dict[ObjectKey, ObjectOutcome] = {}
        for delivery in group.after:
            failed = after.frozen.get(delivery.key)
            if failed is None:
                continue
            former = before.holding.get(delivery.key)
            kept = NOTHING if former is None else former.entries
            after.holding[delivery.key] = replace(delivery, entries=kept)
            good = former is not None and delivery.key not in before.frozen
            after.copies = {
                slot: copy for slot, copy in after.copies.items() if slot[0] != delivery.key
            } | {slot: copy for slot, copy in before.copies.items() if slot[0] == delivery.key}
            if good:
                del after.frozen[delivery.key]
            news = former is not delivery or before.frozen.get(delivery.key) != failed
            if delivery.key in group.active and news:
                told |= _frozen(delivery, kept, failed)
        return told

    def _judge(
        self, key: ObjectKey, before: DesiredObject | None, after: DesiredObject | None
    ) -> ObjectOutcome:
        action = UPDATE
        wanted = after or before
        if wanted is None or (before is not None and self._stays(key, before, after)):
            action = NONE
        elif before is None:
            action = CREATE
        elif after is None:
            action = _ON_REMOVAL.get(on_removal(key, wanted.on_removal), DELETE)
        return ObjectOutcome(key, action, before, after)

    def _stays(self, key: ObjectKey, before: DesiredObject, after: DesiredObject | None) -> bool:
        """Whether a copy stays as it is."""
        if after is None:
            return bool(before.placements) and self._copies.is_left_alone(key, before.reference)
        if after.create_only:
            return True
        if self._copies.is_left_alone(key, after.reference):
            # One that was kept in step is told that it is not any more.
            return not self._in_step(key, before)
        # Nobody knows how a copy is that was not kept in step.
        same = (before.address, before.on_removal) == (after.address, after.on_removal)
        return self._in_step(key, before) and same

    def _in_step(self, key: ObjectKey, wanted: DesiredObject) -> bool:
        return not wanted.create_only and not self._copies.is_left_alone(key, wanted.reference)

    def _kept(self, group: DestinationGroup, verdict: ObjectOutcome) -> ObjectOutcome:
        """The verdict on what does not change, if a placement keeps it from that."""
        for delivery in group.after:
            if verdict.key in delivery.faults:
                return verdict._replace(action=FROZEN, by=delivery.key, failing=verdict.key)
            if verdict.key in delivery.held and verdict.before is not None:
                return verdict._replace(action=HELD, by=delivery.key)
            if why := delivery.back.get(verdict.key):
                return verdict._replace(action=HELD, by=delivery.key, why=why)
            if why := delivery.going.get(verdict.key):
                return verdict._replace(by=delivery.key, why=why)
        return verdict


def _around_kept(judged: Sequence[ObjectOutcome]) -> Iterator[ObjectOutcome]:
    """The same, with Namespaces and definitions kept that would go around what stays."""
    staying = [each.key for each in judged if each.action in (KEEP, ORPHAN)]
    holders = {ObjectKey(*NAMESPACES, "", key.namespace) for key in staying}
    holders |= {ObjectKey(*DEFINITIONS, "", f"{key.resource}.{key.group}") for key in staying}
    for verdict in judged:
        goes = verdict.action == DELETE and verdict.key in holders
        yield verdict._replace(action=KEEP) if goes else verdict


def _still_frozen(verdict: ObjectOutcome, side: _Side) -> ObjectOutcome:
    """The outcome with what still keeps a placement frozen, if nothing becomes of its object."""
    if verdict.action != NONE or verdict.after is None:
        return verdict
    for name in map(MailKey, verdict.after.placements):
        if failed := side.frozen.get(name):
            failing = verdict.key if verdict.key in failed else min(failed)
            return verdict._replace(by=name, failing=failing, failed=failed[failing])
    return verdict


def _placements(verdict: ObjectOutcome) -> set[MailKey]:
    wanted = [it for it in (verdict.before, verdict.after) if it is not None]
    found = {MailKey(name) for it in wanted for name in it.placements}
    return found | ({verdict.by} if verdict.by else set())


def _values(before: PlanSide, after: PlanSide) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The properties of a destination, before and after."""
    were = _values_of(before)
    is_same = before.profile is after.profile and before.locations is after.locations
    return were, were if is_same else _values_of(after)


def _values_of(side: PlanSide) -> Mapping[str, str]:
    return {} if side.profile is None else properties_of(side.profile, side.locations).values


def _differing(before: Delivery | None, after: Delivery | None) -> Iterator[ObjectKey]:
    """The objects of which two deliveries of a placement say something else."""
    old = NOTHING if before is None else before.entries
    new = NOTHING if after is None else after.entries
    yield from (key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    if after is not None:
        yield from (*after.faults, *after.held, *after.back, *after.going)


def _frozen(
    delivery: Delivery,
    kept: Mapping[ObjectKey, ManifestEntry],
    failed: Mapping[ObjectKey, PlannedCopy],
) -> dict[ObjectKey, ObjectOutcome]:
    """What of a placement does not come, for the objects of it that cannot be made."""
    late = {key for key, entry in delivery.entries.items() if kept.get(key) != entry}
    first = min(failed)
    told = {key: key if key in failed else first for key in {*late, *failed}}
    return {
        key: ObjectOutcome(key, FROZEN, None, None, delivery.key, failing, failed[failing])
        for key, failing in told.items()
    }
