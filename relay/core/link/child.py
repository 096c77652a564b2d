"""What a node knows of one child."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from relay.core.events import MailWritten
from relay.core.instant import Instant
from relay.core.link.progress import Answers
from relay.core.link.session import (
    SILENT_AFTER_SECONDS,
    ChildSession,
    ChildStatus,
    Presence,
    PresenceEvent,
)
from relay.core.link.writer import Comparison, MailboxWriter
from relay.core.records.accepted import AcceptedRecord, Version
from relay.core.records.judge import VerifiedSnapshot
from schemas.records.snapshots import SnapshotRank
from schemas.reports.link import WIRE_UNSAID, Hello, Repair
from schemas.values.identity import SNAPSHOT_KEY, MailKey

REACH_SECONDS = 60.0
"""So long per level below it a child may take to reach what was written to it."""
RENEWAL_MS = 590_000
"""A snapshot that is so much newer than the one in a mailbox is written there in any case."""
IN_FLIGHT_MAX = 64
"""If more inventory records are under way to a child, each may bear on any placement."""


class ChildFigures(NamedTuple):
    """What a node knows of one child at a moment."""

    # The public keys by which it is let in, by spaces.
    nkey: str
    standing: ChildStatus
    # When it was heard last, ms since 1970, 0 if it never joined; and whether that is too long ago.
    heard_ms: int
    is_silent: bool
    # How much it said that was refused, and how often another home asked for its place.
    refused: int
    contests: int


@dataclass(slots=True)
class InFlight:
    """Inventory on its way to a child: it may change who is meant there."""

    records: tuple[AcceptedRecord, ...]
    # What leaves no message there is told by a snapshot above this generation.
    generation: int
    # Where the newest of it was written in the child's mailbox; None until that is confirmed.
    sequence: int | None = None


@dataclass(slots=True)
class ChildLink:
    """All that a node knows of one child."""

    nkey: str
    session: ChildSession
    mailbox: MailboxWriter
    answers: Answers = field(init=False, default_factory=Answers)
    # Up to where its reports reflect its mailbox, in this run of the node.
    through: int = field(init=False, default=0)
    # Where its mailbox ended when it came back: it is in step once it has answered that.
    catch_up_to: int = field(init=False, default=0)
    # The first place that it has not reached, and since when.
    overdue: tuple[int, float] | None = field(init=False, default=None)
    levels: int = field(init=False, default=0)
    # Whether it was told to read its mailbox again since its mail digest was last as it is here.
    read_requested: bool = field(init=False, default=False)
    rewritten: float = field(init=False, default=float("-inf"))
    # When it is to be told to report everything again, as its report digest differs.
    repeat_at: float | None = field(init=False, default=None)
    wants: tuple[MailKey, ...] = field(init=False, default=())
    snapshot_time_ms: int = field(init=False, default=0)
    in_flight: dict[MailKey, InFlight] = field(init=False, default_factory=dict)
    refused: int = field(init=False, default=0)
    # How often another home's run asked for its place.
    contests: int = field(init=False, default=0)
    # Whether there is room for what it brings up.
    has_copies: bool = field(init=False, default=False)
    # Where the last of its reports lay that was taken.
    said_at: int = field(init=False, default=0)
    # The version of the wire that it spoke last.
    wire: int = field(init=False, default=WIRE_UNSAID)

    def figures(self, now: Instant) -> ChildFigures:
        """What is known of it."""
        session = self.session
        since_ms = session.since_ms or session.former_ms
        heard_ms = since_ms or now.wall_ms - int((now.seconds - session.heard) * 1000)
        if session.presence is Presence.NEVER_JOINED:
            heard_ms = 0
        return ChildFigures(
            self.nkey,
            session.standing,
            heard_ms,
            not session.is_there,
            self.refused,
            self.contests,
        )

    def note_report(self, sequence: int) -> None:
        """A report of it lies there."""
        self.said_at = max(self.said_at, sequence)

    def send_inventory(
        self, key: MailKey, records: tuple[AcceptedRecord, ...], reached: int
    ) -> None:
        """Note these versions of a record as in flight; `reached` is the snapshot's generation."""
        former = self.in_flight.get(key)
        versions = (*(former.records if former is not None else ()), *records)
        above = max(reached, *(record.generation for record in versions))
        self.in_flight[key] = InFlight(versions[-4:], above)

    def wrote(self, event: MailWritten) -> None:
        """Note where inventory lies that was in flight."""
        if event.key == SNAPSHOT_KEY:
            for flying in self.in_flight.values():
                if flying.sequence is None and flying.generation < event.generation:
                    flying.sequence = event.sequence
        elif event.key in self.in_flight and self.mailbox.is_written(event.key):
            self.in_flight[event.key].sequence = event.sequence

    def fall_behind(self) -> None:
        """Have it answer where its mailbox ends now, before what it says counts."""
        self.session.happened(PresenceEvent.FELL_BEHIND)
        self.catch_up_to = self.mailbox.last_sequence
        self.overdue = None

    def landed(self) -> None:
        """Nothing is in flight any more that its reports reflect."""
        for key, flying in list(self.in_flight.items()):
            if flying.sequence is not None and flying.sequence <= self.through:
                del self.in_flight[key]
        if not self.in_flight:
            # An empty table that was large takes long to look through.
            self.in_flight.clear()

    def causes(self) -> Iterator[int]:
        """Places in the own mail from which something has still to be written or answered."""
        yield from self.mailbox.causes()
        cause = self.answers.first_cause()
        if cause is not None:
            yield cause

    def next_look(self) -> float | None:
        """When a child may be silent or behind next."""
        if not self.session.is_there:
            return None
        at = self.session.heard + SILENT_AFTER_SECONDS
        if self.session.is_in_step:
            if self.overdue is not None:
                at = min(at, self.overdue_at)
            if self.repeat_at is not None:
                at = min(at, self.repeat_at)
        return at

    def offer(
        self,
        snapshot: VerifiedSnapshot,
        excluded: Sequence[tuple[MailKey, Version]],
        *,
        due: bool,
    ) -> None:
        """Take a snapshot that the node reached; `due` if it is to be written in any case."""
        age = snapshot.record.time_ms - self.snapshot_time_ms
        # The centre's clock may have been set back.
        due = due or not self.mailbox.snapshot or not 0 <= age < RENEWAL_MS
        if due:
            self.snapshot_time_ms = snapshot.record.time_ms
        self.mailbox.offer(snapshot, excluded, due=due)

    def take_over(self, hello: Hello) -> tuple[Repair, int]:
        """What it is told that was with a former run: whether to read all, and its mailbox's end.

        What it read then, and what lies there alike, lies before that end.
        """
        # Its snapshot is of the reign of the newest that it verified, or of one before.
        reached = SnapshotRank(hello.newest_reign, hello.snapshot)
        through = self.mailbox.read_through(hello.held, reached, hello.wants)
        if through is None:
            return Repair.REREAD, self.mailbox.end
        self.read_requested = False
        return Repair.NONE, through

    def is_to_read_again(self, found: Comparison) -> bool:
        """Whether it is to read its mailbox again, as the first time that it differs."""
        if found is Comparison.EQUAL:
            self.read_requested = False
        if found is not Comparison.DIFFERENT or self.read_requested:
            return False
        self.read_requested = True
        return True

    def is_behind(self, now: float) -> bool:
        """Whether something written is not reached; if it got further, from now on the rest."""
        if self.overdue is not None and self.through >= self.overdue[0]:
            behind = self.through < self.mailbox.last_sequence
            self.overdue = (self.mailbox.last_sequence, now) if behind else None
        return self.overdue is not None

    @property
    def overdue_at(self) -> float:
        """When it has taken too long to reach what was written to it."""
        assert self.overdue is not None
        return self.overdue[1] + REACH_SECONDS * (self.levels + 1)

    def is_in_sync_with(self, key: MailKey, bears_on: Callable[[AcceptedRecord], bool]) -> bool:
        """Whether its reports reflect all that bears on a placement, or it is not there."""
        if not self.session.is_there:
            return True
        if self.session.presence is not Presence.IN_STEP or not self.mailbox.is_written(key):
            return False
        slot = self.mailbox.slots.get(key)
        if slot is not None and self.through < slot.sequence:
            return False
        if len(self.in_flight) > IN_FLIGHT_MAX:
            return False
        return not any(
            bears_on(record) for flying in self.in_flight.values() for record in flying.records
        )

    def has_answered(self, key: MailKey, version: Version) -> bool:
        """Whether its progress speaks of this version of a record."""
        slot = self.mailbox.slots.get(key)
        if slot is None or slot.version != version or not self.mailbox.is_written(key):
            return False
        return 0 < slot.sequence <= self.through

    def lag(self, read_through: int | None) -> int:
        """How many messages in its mailbox it has not read; without its word, not answered."""
        through = self.through if read_through is None else read_through
        return sum(1 for slot in self.mailbox.slots.values() if slot.sequence > through)
