"""What a node makes of a record, held or offered, under the newest snapshot that it verified."""

from __future__ import annotations

from enum import Enum, auto

from relay.core.records.snapshot import (
    ListedAt,
    NotListed,
    SnapshotListing,
    SnapshotView,
    UnreadBlobs,
)
from schemas.records.snapshots import EntryKey, SnapshotRecord, Term
from schemas.values.value import Value


class RecordStanding(Enum):
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


class RecordAcceptance(Enum):
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


def standing(record: HeldRecord, listing: SnapshotListing, view: SnapshotView) -> RecordStanding:
    """What becomes of a record that is held, and listed so; raises SnapshotRefused."""
    if record.generation > view.generation:
        return RecordStanding.IN_FORCE
    match listing:
        case UnreadBlobs():
            return RecordStanding.UNREAD
        case ListedAt(generation) if generation >= record.generation:
            return (
                RecordStanding.IN_FORCE
                if generation == record.generation
                else RecordStanding.OUTDATED
            )
        case ListedAt():
            return _unless_orphaned(RecordStanding.OUTDATED, record, view)
        case NotListed():
            return _unless_orphaned(RecordStanding.DROPPED, record, view)


def _unless_orphaned(
    verdict: RecordStanding, record: HeldRecord, view: SnapshotView
) -> RecordStanding:
    """The verdict on what the snapshot knows of; what it does not know is orphaned."""
    term = view.term_of(record.term)
    if isinstance(term, UnreadBlobs):
        return RecordStanding.UNREAD
    return (
        verdict if term is not None and term.covers(record.generation) else RecordStanding.ORPHANED
    )


def admit(
    key: EntryKey, generation: int, view: SnapshotView, held: HeldRecord | None = None
) -> RecordAcceptance:
    """Whether a record is taken in place of the one held, if any; raises SnapshotRefused."""
    if generation > view.generation:
        return RecordAcceptance.TAKEN
    listing = view.generation_of(key)
    match listing:
        case UnreadBlobs():
            return RecordAcceptance.UNREAD
        case ListedAt(listed) if listed != generation:
            return RecordAcceptance.SUPERSEDED
        case NotListed():
            return RecordAcceptance.SUPERSEDED
        case ListedAt():
            return _in_place_of(held, listing, view)


def _in_place_of(
    held: HeldRecord | None, listing: ListedAt, view: SnapshotView
) -> RecordAcceptance:
    """Whether what is listed takes the place of what is held."""
    if held is None or held.generation <= listing.generation:
        return RecordAcceptance.TAKEN
    match standing(held, listing, view):
        case RecordStanding.ORPHANED:
            return RecordAcceptance.LISTED_BELOW
        case RecordStanding.UNREAD:
            return RecordAcceptance.UNREAD
        case _:
            return RecordAcceptance.TAKEN


def admits_new(
    record: SnapshotRecord, now_ms: int, *, with_memory: bool, expired_allowed: bool = False
) -> bool:
    """Whether a node takes anything new under this snapshot.

    Without memory (new, wiped, restored) a node takes nothing under one that expired, unless it is
    configured to: whoever shows it may show an old state.
    """
    return with_memory or expired_allowed or now_ms < record.expires_ms
