"""The own mailbox, as its owner reads it: how far, and what lies in it.

The parent's incarnation and a sequence make the cursor. Reading never proves absence: what is not
in the mailbox is only not shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

from relay.core.events import MailArrived
from relay.core.link.digest import MailDigest
from relay.core.records.accepted import Version
from relay.core.records.parked import Parked
from schemas.records.snapshots import SnapshotRank
from schemas.reports.link import Cursor, Repair, Welcome
from schemas.values.identity import MailKey


class Reading(Enum):
    """How the own mailbox is read."""

    # No parent welcomed this run yet.
    NONE = auto()
    # From the cursor on, not at its end yet.
    RESUMING = auto()
    # From its start, not at its end yet.
    REREADING = auto()
    # Read to its end once; what follows is read as it comes.
    FOLLOWING = auto()


class ReadingEvent(Enum):
    RESUME = auto()
    REREAD = auto()
    AT_END = auto()
    LINK_LOST = auto()


READING: dict[tuple[Reading, ReadingEvent], Reading] = {
    **{(state, ReadingEvent.LINK_LOST): Reading.NONE for state in Reading},
    **{(state, ReadingEvent.REREAD): Reading.REREADING for state in Reading},
    (Reading.NONE, ReadingEvent.RESUME): Reading.RESUMING,
    (Reading.RESUMING, ReadingEvent.AT_END): Reading.FOLLOWING,
    (Reading.REREADING, ReadingEvent.AT_END): Reading.FOLLOWING,
    (Reading.FOLLOWING, ReadingEvent.AT_END): Reading.FOLLOWING,
}


class MailboxReader:
    """Cursor, what waits to be judged, and the digest of what came in full."""

    def __init__(self, cursor: Cursor | None = None) -> None:
        self.state = Reading.NONE
        self.parked = Parked()
        self.incarnation = cursor.incarnation if cursor is not None else ""
        # The last sequence that was delivered and dealt with, or parked.
        self._read = cursor.sequence if cursor is not None else 0
        self._pending = 0
        # What each slot held in full when it was read last.
        self._full: dict[MailKey, Version] = {}
        # Slots that were read as a head last.
        self.heads: dict[MailKey, int] = {}
        self._digest = MailDigest()
        # In a reading from the start, what was seen of it.
        self._seen: dict[MailKey, None] | None = None

    @property
    def caught_up(self) -> bool:
        """Whether it is read to its end, as far as is known."""
        return self.state is Reading.FOLLOWING and not self._pending

    @property
    def unread(self) -> int:
        """How many messages are known to follow."""
        return self._pending + len(self.parked)

    @property
    def judged(self) -> int:
        """The highest sequence up to which every message was judged."""
        lowest = self.parked.lowest
        return self._read if lowest is None else min(self._read, lowest - 1)

    @property
    def digest(self) -> bytes:
        """16 bytes, or none while something is pending."""
        return self._digest.value if self._is_at_rest else b""

    @property
    def held(self) -> bytes:
        """The same of all that it shows in full, whatever the snapshot."""
        return self._digest.of_all if self._is_at_rest else b""

    @property
    def _is_at_rest(self) -> bool:
        resting = self.state in (Reading.NONE, Reading.FOLLOWING)
        return resting and not self._pending and not self.parked

    def begin(self, welcome: Welcome) -> int | None:
        """Begin or go on, as the parent's welcome says; the sequence to read from, None: as it is.

        A cursor of another incarnation, or beyond the end, is void: with equal digests it is set to
        the end, else the mailbox is read from its start.
        """
        same = welcome.incarnation == self.incarnation
        if same and self.state is not Reading.NONE and welcome.repair != Repair.REREAD:
            # Mail may have come since the parent said where the mailbox ends.
            return None
        known = same and self._read <= welcome.last_sequence
        self.incarnation = welcome.incarnation
        if welcome.repair == Repair.REREAD or not (known or self._agreed(welcome)):
            return self._reread(welcome.last_sequence)
        if not known:
            self._read = welcome.last_sequence
        self._go(ReadingEvent.RESUME)
        # What was parked in a former link comes again.
        self._read = self.judged
        self.parked.clear()
        self._pending = max(0, welcome.last_sequence - self._read)
        if not self._pending:
            self._go(ReadingEvent.AT_END)
        return self._read + 1

    def reread(self) -> int:
        """Begin to read from the start; the sequence to read from."""
        return self._reread(self._read)

    def link_lost(self) -> None:
        self._go(ReadingEvent.LINK_LOST)

    def arrived(self, event: MailArrived) -> bool:
        """Count a message that was judged or parked; whether the mailbox is at its end now."""
        self._read = max(self._read, event.sequence)
        self._pending = event.pending
        if self._seen is not None:
            self._seen[event.key] = None
        if event.pending or self.state is Reading.NONE:
            return False
        if self._seen is not None:
            for key in [key for key in self._full if key not in self._seen]:
                self.forget(key)
            self._seen = None
        news = self.state is not Reading.FOLLOWING
        self._go(ReadingEvent.AT_END)
        return news

    def put_version(self, key: MailKey, version: Version) -> None:
        """A slot of the mailbox holds this record, and the node holds it or a newer orphan."""
        former = self._full.get(key)
        if former is not None and version.full and former.digest_term == version.digest_term:
            # To count it anew would count what the snapshot excludes.
            return
        self.forget(key)
        if version.full:
            self._full[key] = version
            self._digest.add(key, version)
        else:
            self.heads[key] = version.generation

    def forget(self, key: MailKey) -> None:
        """The node holds nothing of the key, or the mailbox does not."""
        self.heads.pop(key, None)
        former = self._full.pop(key, None)
        if former is not None:
            self._digest.remove(key, former)

    def shows_in_full(self, key: MailKey) -> bool:
        """Whether the mailbox holds any record in full under the key."""
        return key in self._full

    def lacks(self, key: MailKey) -> bool:
        """Whether the mailbox was read to its end, and has nothing under the key."""
        return self.caught_up and key not in self._full and key not in self.heads

    def reached(self, snapshot: int, excluded: Iterable[tuple[MailKey, Version]]) -> None:
        """Take the digest under another snapshot; `excluded` it does not list as they are held.

        A slot may hold what is listed instead: that counts.
        """
        left_out = [
            (key, version)
            for key, version in excluded
            if key in self._full and self._full[key].digest_term == version.digest_term
        ]
        self._digest.advance(snapshot, left_out, self._full.items())

    def cursor(
        self, place: tuple[SnapshotRank, int], reached: SnapshotRank, *, has_memory: bool
    ) -> Cursor:
        """What OWN shall hold of it; `place` is of the newest snapshot, if it is not reached."""
        newest, sequence = place
        return Cursor(
            self.incarnation,
            self.judged,
            newest.generation,
            sequence,
            reached.generation,
            has_memory,
            newest.reign,
            reached.reign,
        )

    def assert_invariants(self) -> None:
        """Assert what must always hold."""
        self._digest.assert_invariants(self._full.items())
        assert not self._full.keys() & self.heads.keys()
        assert self.judged <= self._read

    def _agreed(self, welcome: Welcome) -> bool:
        """Whether the parent found the digest equal: it repairs nothing, and knows the end."""
        return welcome.repair == Repair.NONE and self.state is Reading.NONE and bool(self.digest)

    def _reread(self, last_sequence: int) -> int:
        self._go(ReadingEvent.REREAD)
        self._read, self._pending, self._seen = 0, last_sequence, {}
        self.parked.clear()
        if not last_sequence:
            self._seen = None
            self._go(ReadingEvent.AT_END)
        return 1

    def _go(self, event: ReadingEvent) -> None:
        self.state = READING[self.state, event]
