"""Faults planted in the centre's decisions, each one thing that a hurried change might do."""

from __future__ import annotations

from typing import Any

from controllers.core import ledger, notes, placements, reading_back, registry, removal, workloads
from controllers.core.recovery import missing
from controllers.core.removal import Held
from relay.core.content import sweeping
from relay.core.records.accepted import is_delta
from tests.simulation.planted import Patch

# What a list says.


def believe_an_empty_list() -> Patch:
    """Let placements go though no placement is seen any more."""
    honest = placements.hold_records

    def hold(before: Any, inferred: Any, what: str, *, seen_any: bool) -> Any:
        return honest(before, inferred, what, seen_any=True)

    return placements, "hold_records", hold


def believe_an_empty_inventory() -> Patch:
    """Let destinations and Locations go though none of them is seen any more."""
    return registry, "hold_records", lambda *_, **__: Held(frozenset())


def believe_another_space() -> Patch:
    """Take the list of a space of another identity for this one's."""
    return placements.Placements, "believes", lambda *_: True


def hold_no_removal() -> Patch:
    """Let every removal pass that a list implies."""
    return placements, "hold_objects", lambda *_: Held(frozenset())


def hold_only_by_kind() -> Patch:
    """Let any number of objects go that a list lacks, while others of their kind are seen."""
    return removal, "removals_max", lambda _count: 1_000_000


def hold_only_by_number() -> Patch:
    """Let the last object of a kind go that a list lacks."""
    honest = placements.hold_objects

    def hold(before: Any, inferred: Any, *_: Any) -> Any:
        return honest(before, inferred, {(key.group, key.resource) for key in inferred})

    return placements, "hold_objects", hold


def count_no_destinations() -> Patch:
    """Let all destinations of a placement go with a Location that a list lacks."""
    return registry, "hold_destinations", lambda *_: Held(frozenset())


def withdraw_from_many() -> Patch:
    """Let a small placement go that a list lacks, however many have it."""
    return placements, "destinations", lambda *_: set()


def forget_what_was_issued() -> Patch:
    """Take for missing only what was seen since the start: a held removal passes at a restart."""
    honest = workloads.Workloads.listed

    def listed(self: Any, objects: Any, issued: Any, kind: Any = None) -> Any:
        seen = set(self.resolver.objects)
        names = honest(self, objects, issued, kind)
        self.unseen &= seen
        self.unseen_placements &= {key.name for key in seen}
        return names

    return workloads.Workloads, "listed", listed


def accept_more_than_was_shown() -> Patch:
    """Let all held removals pass, of whatever placement, when one of them is accepted."""
    honest = workloads.Workloads.accept

    def accept(self: Any, objects: Any, placement: str) -> None:
        honest(self, objects, placement)
        self.unseen.clear()
        self.unseen_placements.clear()

    return workloads.Workloads, "accept", accept


def decide_before_the_list() -> Patch:
    """Look at what the ledger holds before the space was listed whole."""
    honest = placements.Placements.listed

    def listed(self: Any, objects: Any) -> Any:
        early = {} if not self.known else objects
        names = honest(self, early)
        self.workloads.unseen_placements.clear()
        return names

    return placements.Placements, "listed", listed


# A lost ledger.


def start_from_nothing() -> Patch:
    """Take a ledger that lacks what was issued for a new one."""

    def begin(self: Any, held: Any, noted: Any, enrolled: Any = ()) -> None:
        self.lost = False
        self._ledger, self._notes, self._enrolled = held, noted, frozenset(enrolled)
        self._waived, self._silent, self._read, self._recalled = set(), set(), set(), []

    return reading_back.ReadingBack, "__init__", begin


def restart_below() -> Patch:
    """Stamp by the clock alone, whatever was issued before."""
    return ledger.Ledger, "raise_to", lambda *_: None


def forget_what_children_showed() -> Patch:
    """Stamp what is new as if the children had shown nothing."""

    def restored(self: Any) -> Any:
        found = missing(self._recalled, self._ledger.records)
        return [item for item in found if item.envelope.kind == "node"]

    return reading_back.ReadingBack, "restored", restored


def remove_what_came_back() -> Patch:
    """Take what was read back for what objects said: a list that lacks it lets it go."""
    return notes.Notes, "recover", lambda *_: None


def wait_for_one_child() -> Patch:
    """Be sure of the ledger once a single child has shown what it holds."""
    honest = reading_back.ReadingBack.awaited.fget

    def awaited(self: Any) -> Any:
        return frozenset() if self._read else honest(self)  # type: ignore[misc]

    return reading_back.ReadingBack, "awaited", property(awaited)


def forget_that_it_reads() -> Patch:
    """Take the ledger for whole after a restart in the midst of its being read back."""
    return notes.Notes, "read_back", lambda *_, **__: None


# What is swept.


def sweep_what_is_in_force() -> Patch:
    """Sweep the content of placements that are in force."""
    honest = sweeping.Sweeper._roots

    def roots(self: Any) -> Any:
        deltas = [held for held in self._state.held.values() if is_delta(held)]
        led = {reference for held in deltas for reference in held.record.references}
        return (reference for reference in honest(self) if reference not in led)

    return sweeping.Sweeper, "_roots", roots
