"""What a node makes of a record, held or offered, under the newest snapshot that it verified."""

from __future__ import annotations

from enum import Enum, auto

from relay.core.records.snapshot import Listed, Listing, NotListed, SnapshotView, Unread
from schemas.records.snapshots import EntryKey, SnapshotRecord, Term
from schemas.values.value import Value


class Standing(Enum):
    """What becomes of a record that is held."""

    # The snapshot lists it, or is older than it.
    IN_FORCE = auto()
    # Listed with another generation: stays in force, and that one is wanted.
    OUTDATED = auto()
    # Not listed, and its term is known so far: it was deleted.
    DROPPED = auto()
    # Not listed, or with a lower generation, and its term is not known so far: stays in force,
    # and is reported.
    ORPHANED = auto()
    # Blobs are missing: as before.
    UNREAD = auto()


class Admission(Enum):
    """What becomes of a record that is not held, or above what is held."""

    TAKEN = auto()
    SUPERSEDED = auto()
    # It is listed, and what is held is orphaned: that stays.
    LISTED_BELOW = auto()
    # Blobs are missing: it waits.
    UNREAD = auto()


class HeldRecord(Value, frozen=True):
    """What a verdict needs to know of a record."""

    key: EntryKey
    generation: int
    term: Term


def standing(record: HeldRecord, listing: Listing, view: SnapshotView) -> Standing:
    """What becomes of a record that is held, and listed so; raises SnapshotRefused."""
    if record.generation > view.generation:
        return Standing.IN_FORCE
    match listing:
        case Unread():
            return Standing.UNREAD
        case Listed(generation) if generation >= record.generation:
            return Standing.IN_FORCE if generation == record.generation else Standing.OUTDATED
        case Listed():
            return _unless_orphaned(Standing.OUTDATED, record, view)
        case NotListed():
            return _unless_orphaned(Standing.DROPPED, record, view)


def _unless_orphaned(verdict: Standing, record: HeldRecord, view: SnapshotView) -> Standing:
    """The verdict on what the snapshot knows of; what it does not know is orphaned."""
    term = view.term_of(record.term)
    if isinstance(term, Unread):
        return Standing.UNREAD
    return verdict if term is not None and term.covers(record.generation) else Standing.ORPHANED


def admit(
    key: EntryKey, generation: int, view: SnapshotView, held: HeldRecord | None = None
) -> Admission:
    """Whether a record is taken in place of the one held, if any; raises SnapshotRefused."""
    if generation > view.generation:
        return Admission.TAKEN
    listing = view.generation_of(key)
    match listing:
        case Unread():
            return Admission.UNREAD
        case Listed(listed) if listed != generation:
            return Admission.SUPERSEDED
        case NotListed():
            return Admission.SUPERSEDED
        case Listed():
            return _in_place_of(held, listing, view)


def _in_place_of(held: HeldRecord | None, listing: Listed, view: SnapshotView) -> Admission:
    """Whether what is listed takes the place of what is held."""
    if held is None or held.generation <= listing.generation:
        return Admission.TAKEN
    match standing(held, listing, view):
        case Standing.ORPHANED:
            return Admission.LISTED_BELOW
        case Standing.UNREAD:
            return Admission.UNREAD
        case _:
            return Admission.TAKEN


def admits_new(
    record: SnapshotRecord, now_ms: int, *, with_memory: bool, expired_allowed: bool = False
) -> bool:
    """Whether a node takes anything new under this snapshot.

    Without memory (new, wiped, restored) a node takes nothing under one that expired, unless it is
    configured to: whoever shows it may show an old state.
    """
    return with_memory or expired_allowed or now_ms < record.expires_ms
