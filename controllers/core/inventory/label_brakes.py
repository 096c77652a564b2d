"""What an edit of labels takes of a placement, and is much, stays until someone accepts it.

The record of a Location or SyncTarget says its new labels at once, so that others gain by them; and
a label of ours, by which the placement that would lose it is still meant for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Protocol

from controllers.core.inventory.make_before_break import (
    BRAKED,
    MOVED,
    GuardIndex,
    hold_alternatives,
    holds_for,
    holds_in,
    instances,
    is_hold,
    is_relabelled,
    reaches,
)
from controllers.core.ledger.destination_counts import SelectedDestinations
from controllers.core.ledger.ledger import Draft
from controllers.core.ledger.weighing import Brake, Confirmations, Delivered, Loss, weigh
from schemas.objects.objects import ObjectKey
from schemas.records.records import Alternative, DeltaHead, LocationRecord, Profile, Record
from schemas.values import wire
from schemas.values.identity import MailKey


class Weights(Protocol):
    """What is known of placements, by mail key; raises LookupError while nobody knows."""

    def objects_of(self, placement: MailKey) -> AbstractSet[ObjectKey]:
        """The objects that it has delivered."""

    def grace_of(self, placement: MailKey) -> float | None:
        """How many seconds what an edit takes of it waits; None: until it is accepted."""

    def brakes_changed(self, placements: AbstractSet[MailKey]) -> None:
        """Take it that what is held of these is another: they are to say so."""


class LabelBrakes:
    """The placements that hold what edits of labels take, of all inventory spaces together."""

    def __init__(self, records: Mapping[MailKey, Record], confirmed: Confirmations) -> None:
        self.brake = Brake(confirmed)
        self._records = records
        self._index = GuardIndex(records, BRAKED)
        # Placements that are to be meant for those who hold them, so that these can be.
        self._asked: set[MailKey] = set()
        # Whom a person named, and until when, in ms since 1970.
        self._given_up: dict[MailKey, int] = {}
        self._listeners: list[Callable[[], None]] = []

    def __contains__(self, placement: MailKey) -> bool:
        return placement in self._asked or placement in self._index

    def listen(self, on_word: Callable[[], None]) -> None:
        """Tell this one when a person lets something go."""
        self._listeners.append(on_word)

    def changed(self, records: Iterable[Record]) -> None:
        """Take records that came into force, or left it."""
        self._index.changed(records)

    def accept(self, placement: MailKey) -> None:
        """Let go what is held of a placement now."""
        self.brake.accept(placement)
        self.look_again()

    def look_again(self) -> None:
        """Have what is held looked at: a person let something go."""
        for on_word in self._listeners:
            on_word()

    def alternatives(self, placement: MailKey) -> tuple[Alternative, ...]:
        """Who keeps a placement; nobody if nothing of it is held."""
        return hold_alternatives(placement, BRAKED) if placement in self else ()

    def slots(self) -> frozenset[MailKey]:
        """The records in force that hold anything."""
        return frozenset(
            slot for placement in self._index.placements() for slot in self._index.of(placement)
        )

    def with_holds(
        self, drafts: Iterable[Draft], weights: Weights, now_ms: int
    ) -> tuple[list[Draft], set[MailKey]]:
        """The same drafts with what their records hold; the slots of those that wait, left out."""
        drafted = list(drafts)
        self._given_up = {slot: at for slot, at in self._given_up.items() if now_ms < at}
        touched = {
            draft.slot: draft
            for draft in drafted
            if is_relabelled(draft, self._records) and not self._is_given_up(draft.slot, now_ms)
        }
        if not touched:
            return drafted, set()
        after = {**self._records, **{slot: draft.record for slot, draft in touched.items()}}
        inventory = (
            SelectedDestinations(self._records.values()),
            SelectedDestinations(after.values()),
        )
        heads = [it for it in self._records.values() if isinstance(it, DeltaHead)]
        # Who is left out by another instance selector is held for no move.
        moves = all(instances(self._records[slot]) == instances(after[slot]) for slot in touched)
        deferred, holding = set[MailKey](), list[DeltaHead]()
        for head in heads:
            key = head.source.key
            try:
                held = self._holds(head, inventory, heads, weights, now_ms, moves=moves)
            except LookupError:
                held = True
            if held and holds_for(head, BRAKED) and key in self.brake.held:
                holding.append(head)
            elif held:
                self._asked |= {key} & self.brake.held.keys()
                deferred |= {slot for slot in touched if self._loses(head, touched[slot], after)}
        self._asked &= self.brake.held.keys()
        braked = [
            self._held(draft, holding, after, now_ms) if draft.slot in touched else draft
            for draft in drafted
            if draft.slot not in deferred
        ]
        return braked, deferred

    def give_up(self, name: str, until_ms: int) -> None:
        """Take it that a person moves or removes the destination of this name: it is not held."""
        for slot, record in self._records.items():
            if isinstance(record, Profile | LocationRecord) and record.source.name == name:
                self._given_up[slot] = until_ms

    def _is_given_up(self, slot: MailKey, now_ms: int) -> bool:
        return now_ms < self._given_up.get(slot, now_ms)

    def held_without(self, slots: AbstractSet[MailKey], weights: Weights, now_ms: int) -> str:
        """Why these destinations are not to go, as placements would lose much; "" if they are.

        Raises LookupError while nobody knows.
        """
        slots = {slot for slot in slots if not self._is_given_up(slot, now_ms)}
        if not slots:
            return ""
        heads = [it for it in self._records.values() if isinstance(it, DeltaHead)]
        left = (record for slot, record in self._records.items() if slot not in slots)
        inventory = SelectedDestinations(self._records.values()), SelectedDestinations(left)
        for head in heads:
            key = head.source.key
            meant = Delivered(head.alternatives, weights.objects_of(key))
            loss = weigh(inventory, meant, meant)
            goes = not loss.is_large or weights.grace_of(key) == 0
            if not goes and not self.brake.confirmed.covers(key, loss.copies, now_ms):
                return f'placement "{head.source.name}" would lose {loss}; its node is there'
        return ""

    def _holds(
        self,
        head: DeltaHead,
        inventory: tuple[SelectedDestinations, SelectedDestinations],
        heads: Iterable[DeltaHead],
        weights: Weights,
        now_ms: int,
        *,
        moves: bool,
    ) -> bool:
        """Whether what a placement loses waits."""
        key = head.source.key
        meant = _without_moves(head)
        bare = tuple(each for each in head.alternatives if not is_hold(each))
        if inventory[0].destinations(meant) <= inventory[1].destinations(bare):
            self.brake.let_go(key)
            return False
        objects = weights.objects_of(key)
        others = (
            Delivered(_without_moves(it), weights.objects_of(it.source.key))
            for it in heads
            if it.source.key != key
        )
        loss: Loss = weigh(
            inventory,
            Delivered(meant, objects),
            Delivered(bare, objects),
            others,
            moves=moves and holds_for(head, MOVED),
        )
        return self.brake.withholds(key, loss, weights.grace_of(key), now_ms)

    def _loses(self, head: DeltaHead, draft: Draft, after: Mapping[MailKey, Record]) -> bool:
        """Whether a placement is no more meant for who this is of, by what the draft says."""
        key, record, before = head.source.key, draft.record, self._records[draft.slot]
        assert isinstance(record, Profile | LocationRecord)
        assert isinstance(before, Profile | LocationRecord)
        had = key in holds_in(before, BRAKED) or reaches(head, before, self._records, BRAKED)
        stays = reaches(head, record, after, BRAKED)
        return had and (not stays or instances(before) != instances(record))

    def _held(
        self,
        draft: Draft,
        holding: Iterable[DeltaHead],
        after: Mapping[MailKey, Record],
        now_ms: int,
    ) -> Draft:
        record, before = draft.record, self._records[draft.slot]
        assert isinstance(record, Profile | LocationRecord)
        held, labels = holds_in(before, BRAKED), dict(record.labels)
        selector = instances(record)
        for head in holding:
            if not self._loses(head, draft, after):
                continue
            key, selector = head.source.key, instances(before)
            labels[f"{BRAKED}{key}"] = str(held.get(key, now_ms))
        if isinstance(record, LocationRecord):
            kept = wire.replace(record, labels=labels, instance_selector=selector)
            return Draft(draft.kind, kept)
        return Draft(draft.kind, wire.replace(record, labels=labels))


def _without_moves(head: DeltaHead) -> tuple[Alternative, ...]:
    """For whom a placement is meant, and who holds what an edit took."""
    held = hold_alternatives(head.source.key, MOVED)
    return tuple(each for each in head.alternatives if each not in held)
