"""What a parent and a child say to each other besides mail and reports.

Unsigned: a child's author is the account it came through; a parent's word only steers reading.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

from schemas.records.snapshots import SnapshotRank
from schemas.reports.running import COUNTS_MAX, FAULTS_MAX, Running, RunningCount, RunningFault
from schemas.values.identity import MailKey
from schemas.values.wire import Meta, Natural, WireRecord

WANTS_MAX = 1000
WIRE_UNSAID = 2
"""The version of the wire of whoever says none: the only one when programs began to say it."""
ADDRESSES_MAX = 8
ADDRESS_MAX_CHARACTERS = 255

Addresses = Annotated[
    tuple[Annotated[str, Meta(max_length=ADDRESS_MAX_CHARACTERS)], ...],
    Meta(max_length=ADDRESSES_MAX),
]
"""Where servers listen, as URLs."""


class Repair(StrEnum):
    """What a parent asks of a child in its welcome."""

    NONE = "none"
    # Read the mailbox from its start.
    REREAD = "read"
    # Report everything again.
    REPORT_ALL = "say"
    # Another run has this place: do nothing.
    STOP = "stop"


class Hello(WireRecord, frozen=True):
    """Child to parent, at `_node.self`: who speaks, and how far it has come."""

    # Random, new at each start of the child.
    run: str
    # Random, kept where the node keeps its state.
    home: str
    # The parent's run to which `sequence` belongs.
    parent_run: str
    # Up to where the mailbox was judged.
    sequence: Natural
    # 16 bytes, or none while something is pending: what is in force under `snapshot`.
    digest: bytes
    # The generation of the snapshot that was reached, 0 for none.
    snapshot: Natural
    # The newest signed snapshot shown to it or to any below it, if the parent showed an older one.
    shown: bytes = b""
    # Deltas and Locations that are in force, and that neither it nor who asks it has.
    wants: Annotated[tuple[MailKey, ...], Meta(max_length=WANTS_MAX)] = ()
    # Levels of nodes below it; an edge has none.
    levels: Natural = 0
    # Messages it refused since its start, for people.
    refused: Natural = 0
    # Records of terms that the centre does not know.
    orphaned: Natural = 0
    # The last word of a run that ends in good order.
    farewell: bool = False
    # How what it brought up stands to its space: 0 nothing comes up, 1 not all was said in this
    # run, else two more than the seconds by which it may be behind.
    copies: Natural = 0
    # Its progress, as it was said last: see there. No `reports`: it was not welcomed yet, or said
    # none since.
    through: Natural = 0
    reports: bytes = b""
    # The generation of the newest snapshot that it verified, 0 for none; and its reign.
    newest: Natural = 0
    newest_reign: Natural = 0
    # As `digest`, of all that the mailbox showed in full, whatever the snapshot; empty once it is
    # welcomed.
    held: bytes = b""
    # How many nodes at and below it run what, and some that could not do what was wanted.
    running: Annotated[tuple[RunningCount, ...], Meta(max_length=COUNTS_MAX)] = ()
    faults: Annotated[tuple[RunningFault, ...], Meta(max_length=FAULTS_MAX)] = ()
    # The version of the wire that it speaks.
    wire: Natural = WIRE_UNSAID

    @property
    def who_runs(self) -> Running:
        """Who runs what at and below it."""
        return Running(self.running, self.faults)

    @property
    def progress(self) -> Progress | None:
        """The progress that it says again, with the mail digest if that is of the same place."""
        if not self.reports:
            return None
        mail = self.digest if self.through == self.sequence else b""
        return Progress(self.run, self.parent_run, self.through, self.reports, mail, self.snapshot)


def copies_word(*, stated: bool, behind_seconds: float) -> int:
    """What `Hello.copies` says of copies that lie at the parent, or are to."""
    return 2 + max(0, int(behind_seconds)) if stated else 1


def copies_as_of(word: int, heard_ms: int) -> int:
    """The moment (ms since 1970) of which copies are for sure, by a hello heard then; 0: none."""
    return max(heard_ms - (word - 2) * 1000, 0) if word >= 2 else 0


class Welcome(WireRecord, frozen=True):
    """Parent to child: the answer to a hello, or with an empty `run` said by itself."""

    # Random, new at each start of the parent.
    incarnation: str
    # The run of the child that is answered.
    run: str
    # Where the mailbox ends.
    last_sequence: Natural
    # The newest signed snapshot that the parent reached; none before there is one.
    snapshot: bytes
    repair: str = Repair.NONE
    # Where this parent, its members and its standby listen. Nothing uses it yet.
    addresses: Addresses = ()


class Progress(WireRecord, frozen=True):
    """Child to parent, at `_stat._progress`: its reports reflect its mailbox up to `through`."""

    run: str
    parent_run: str
    through: Natural
    # 16 bytes: over the report slots that it said.
    digest: bytes
    # As in a hello, if the mailbox was read no further than `through`; else empty.
    mail: bytes = b""
    # The generation of the snapshot that was reached, 0 for none.
    snapshot: Natural = 0


class Cursor(WireRecord, frozen=True):
    """The slot `_cursor` of OWN: how far the parent's mail is judged and kept."""

    incarnation: str
    sequence: Natural
    # A snapshot that is not reached, and where it lay; 0 if there is none.
    snapshot: Natural
    snapshot_sequence: Natural
    # The generation of the snapshot that was reached last, 0 for none.
    reached: Natural
    # Whether a snapshot was ever reached: a node that never did writes to no child.
    has_memory: bool
    # The reigns of these two snapshots.
    snapshot_reign: Natural = 0
    reached_reign: Natural = 0

    @property
    def snapshot_rank(self) -> SnapshotRank:
        return SnapshotRank(self.snapshot_reign, self.snapshot)

    @property
    def reached_rank(self) -> SnapshotRank:
        return SnapshotRank(self.reached_reign, self.reached)


def told_addresses(urls: Iterable[str]) -> tuple[str, ...]:
    """Those URLs where a server listens that a welcome has room for."""
    return tuple(it for it in urls if len(it) <= ADDRESS_MAX_CHARACTERS)[:ADDRESSES_MAX]


def greeting(incarnation: str) -> Welcome:
    """What a parent says by itself when it starts."""
    return Welcome(incarnation, "", 0, b"")
