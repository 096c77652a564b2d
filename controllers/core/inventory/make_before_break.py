"""Make before break: who loses a placement by its labels keeps it until who gains it is well.

The record of a Location or destination that would lose it bears a label for it, with the time from
which on it is held; a placement that moves so selects that label, too. So the ledger remembers what
is held, and each of the two steps is one record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from controllers.core.ledger.destination_counts import SelectedDestinations
from controllers.core.ledger.ledger import Draft
from controllers.core.rollout.culprits import locations_of
from schemas.objects.selectors import LabelSelector
from schemas.records.records import (
    OVER_LOCATION,
    OVER_SYNC_TARGET,
    Alternative,
    DeltaHead,
    LocationRecord,
    Profile,
    Record,
)
from schemas.values import wire
from schemas.values.identity import MailKey

GATHER_SECONDS = 5.0
"""A move may be several changes of labels, one after the other."""
MOVED, BRAKED = "held.leafcast.io/", "removal-held.leafcast.io/"
"""How labels begin by which a record holds who it is of: for a move, or until someone accepts."""

Labelled = Profile | LocationRecord


def hold_alternatives(key: MailKey, prefix: str = MOVED) -> tuple[Alternative, ...]:
    """Who keeps a placement, beside those for whom it is meant."""
    expression = {"key": f"{prefix}{key}", "operator": "Exists"}
    selector = LabelSelector.from_kubernetes({"matchExpressions": [expression]})
    return (Alternative(OVER_LOCATION, selector), Alternative(OVER_SYNC_TARGET, selector))


def kept_alternatives(
    inventory: SelectedDestinations,
    before: Iterable[Alternative],
    wanted: tuple[Alternative, ...],
) -> tuple[Alternative, ...]:
    """Who is meant no more by what is wanted, and keeps it: of `before` no more than is needed."""
    covered = inventory.destinations(wanted)
    kept: list[Alternative] = []
    for each in before:
        if each in wanted or is_hold(each):
            continue
        more = inventory.destinations((each,)) - covered
        if more:
            kept.append(each)
            covered |= more
    return tuple(kept)


def holds_in(record: Record, prefix: str = MOVED) -> dict[MailKey, int]:
    """The placements for which a record holds who it is of, and since when, in ms since 1970."""
    labels = record.labels if isinstance(record, Profile | LocationRecord) else {}
    found = {name: value for name, value in labels.items() if name.startswith(prefix)}
    return {
        MailKey(name.removeprefix(prefix)): int(value) if value.isdecimal() else 0
        for name, value in found.items()
    }


class MoveGuards:
    """Which holds the records in force bear, and which of them are let go."""

    def __init__(self, records: Mapping[MailKey, Record]) -> None:
        self._records = records
        self._released: set[tuple[MailKey, MailKey]] = set()

    def release(self, slot: MailKey, placement: MailKey) -> None:
        """Let go of what a record holds for a placement, when it is drafted next."""
        self._released.add((slot, placement))

    def with_holds(self, drafts: Iterable[Draft], now_ms: int) -> list[Draft]:
        """The same drafts, with the holds that their records are to bear."""
        drafted = list(drafts)
        if not any(is_relabelled(draft, self._records) for draft in drafted):
            return drafted
        heads = [head for head in self._records.values() if isinstance(head, DeltaHead)]
        movers = [head for head in heads if holds_for(head, MOVED)]
        return [
            self._with_holds(draft, movers, now_ms)
            if is_relabelled(draft, self._records)
            else draft
            for draft in drafted
        ]

    def _with_holds(self, draft: Draft, movers: Iterable[DeltaHead], now_ms: int) -> Draft:
        record, slot = draft.record, draft.slot
        before = self._records[slot]
        assert isinstance(record, Profile | LocationRecord)
        assert isinstance(before, Profile | LocationRecord)
        held, labels = holds_in(before), dict(record.labels)
        for head in movers:
            key = head.source.key
            if (slot, key) in self._released:
                self._released.discard((slot, key))
                continue
            kept = key in held or reaches(head, before, self._records, MOVED)
            if kept and not reaches(head, record, self._records, MOVED):
                labels[f"{MOVED}{key}"] = str(held.get(key, now_ms))
        if labels == record.labels:
            return draft
        return Draft(draft.kind, wire.replace(record, labels=labels))


def is_relabelled(draft: Draft, records: Mapping[MailKey, Record]) -> bool:
    """Whether a Location or destination in force says another whom it is part of."""
    record, before = draft.record, records.get(draft.slot)
    if not isinstance(record, Labelled) or not isinstance(before, Labelled):
        return False
    return before.labels != record.labels or instances(before) != instances(record)


def instances(record: Record | None) -> LabelSelector | None:
    """Whom a Location takes; None of what is none."""
    return record.instance_selector if isinstance(record, LocationRecord) else None


def selects(head: DeltaHead, record: Labelled, records: Mapping[MailKey, Record]) -> bool:
    """Whether a placement is meant for it by its labels, holds left aside."""
    meant = [each for each in head.alternatives if not is_hold(each)]
    over = OVER_LOCATION if isinstance(record, LocationRecord) else OVER_SYNC_TARGET
    if any(_matches(each, record) for each in meant if each.over == over):
        return True
    located = [each for each in meant if each.over == OVER_LOCATION]
    if isinstance(record, LocationRecord) or not located:
        return False
    return any(
        _matches(each, location)
        for location in locations_of(records.values())(record)
        for each in located
    )


def reaches(
    head: DeltaHead, record: Labelled, records: Mapping[MailKey, Record], prefix: str
) -> bool:
    """Whether a placement is meant for it, or a Location that takes it holds the placement for it.

    Its own holds are left aside.
    """
    if selects(head, record, records):
        return True
    if isinstance(record, LocationRecord):
        return False
    locations = locations_of(records.values())(record)
    return any(head.source.key in holds_in(location, prefix) for location in locations)


class GuardIndex:
    """Which records in force hold who they are of for which placements."""

    def __init__(self, records: Mapping[MailKey, Record], prefix: str = MOVED) -> None:
        self._records = records
        self._prefix = prefix
        self._slots: dict[MailKey, set[MailKey]] = {}
        self.changed(records.values())

    def __contains__(self, placement: MailKey) -> bool:
        return bool(self.of(placement))

    def changed(self, records: Iterable[Record]) -> list[MailKey]:
        """Take records that came into force, or left it; the placements that they hold for."""
        found = []
        for record in records:
            for placement in holds_in(record, self._prefix):
                self._slots.setdefault(placement, set()).add(record.source.key)
                found.append(placement)
        return found

    def placements(self) -> list[MailKey]:
        """For which something is held, or was."""
        return list(self._slots)

    def of(self, placement: MailKey) -> dict[MailKey, int]:
        """The records that hold for a placement, and since when, in ms since 1970."""
        slots, found = self._slots.get(placement, set()), {}
        for slot in list(slots):
            record = self._records.get(slot)
            since = holds_in(record, self._prefix).get(placement) if record is not None else None
            if since is None:
                slots.discard(slot)
            else:
                found[slot] = since
        if not slots:
            self._slots.pop(placement, None)
        return found

    def keepers(self, placement: MailKey) -> int:
        """How many destinations have a placement for no other reason than that it is held."""
        head = self._records.get(placement)
        if not isinstance(head, DeltaHead):
            return 0
        meant = tuple(each for each in head.alternatives if not is_hold(each))
        reach = SelectedDestinations(self._records.values())
        return reach.count(head.alternatives) - reach.count(meant)


@dataclass(frozen=True, slots=True)
class HealthBaseline:
    """How a placement fares when it does not move.

    What lasts longer than a move may take is taken for what is usual.
    """

    # Destinations that were not healthy at best, and since when that is so.
    unwell: int
    since_seconds: float
    # Destinations that were healthy at last.
    healthy: int

    def seen(
        self, unwell: int, healthy: int, now: float, deadline_seconds: float
    ) -> HealthBaseline:
        """The same with what an exact count says now."""
        if unwell <= self.unwell or now - self.since_seconds >= deadline_seconds:
            return HealthBaseline(unwell, now, healthy)
        return replace(self, healthy=healthy)

    def allows(self, unwell: int, healthy: int, keepers: int) -> bool:
        """Whether `keepers` may lose it, whichever of these counts they are in.

        No more are unwell than before the move; and among those who stay there are as many healthy
        ones as before, or as there can be.
        """
        staying = unwell + healthy - keepers
        return unwell <= self.unwell and max(healthy - keepers, 0) >= min(self.healthy, staying)


def _matches(alternative: Alternative, record: Labelled) -> bool:
    spaces = ("", record.source.space)
    return alternative.space in spaces and alternative.selector.matches(record.labels)


def holds_for(head: DeltaHead, prefix: str) -> bool:
    """Whether a placement is meant for those, too, who hold it by such a label."""
    return any(is_hold(each, prefix) for each in head.alternatives)


def is_hold(alternative: Alternative, *prefixes: str) -> bool:
    """Whether an alternative means who keeps a placement, and not for whom it is meant."""
    prefixes = prefixes or (MOVED, BRAKED)
    return any(each.key.startswith(prefixes) for each in alternative.selector.requirements)
