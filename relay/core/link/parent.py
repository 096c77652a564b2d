"""The parent, as its child sees it: the session, the own mailbox, and what is wanted of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from relay.core.link.reader import MailboxReader
from relay.core.link.session import ParentSession, SessionEvent, SessionState
from schemas.records.snapshots import NO_SNAPSHOT, SnapshotRank
from schemas.reports.link import (
    WANTS_MAX,
    WIRE_UNSAID,
    Cursor,
    Hello,
    Progress,
    Repair,
    Welcome,
)
from schemas.reports.running import Running
from schemas.values.identity import MailKey

NOTHING_RUNS = Running()
QUIET_SECONDS = 5.0
"""So long after the last mail it is acknowledged, and a hello says what is still wanted."""


class ParentLink:
    """What is said to the parent besides reports, and what its welcome leads to."""

    def __init__(self, run: str, home: str, cursor: Cursor | None) -> None:
        self.session = ParentSession()
        self.reader = MailboxReader(cursor)
        self._run = run
        self._home = home
        # The newest snapshot that the parent's welcome showed.
        self.shown_by_parent = NO_SNAPSHOT
        # Where it, its members and its standby listen, as it said last in this run.
        self.addresses: tuple[str, ...] = ()
        # What the last hello named last.
        self._named_last = ""
        # Whether the parent asked for all reports again.
        self._repeat_reports = False

    @property
    def stopped(self) -> bool:
        return self.session.state is SessionState.STOPPED

    def note_shown(self, snapshot: SnapshotRank) -> None:
        """The parent shows a snapshot."""
        self.shown_by_parent = max(self.shown_by_parent, snapshot)

    def take_repeat(self) -> bool:
        """Whether all reports are to be said again; not once more for the same word."""
        taken, self._repeat_reports = self._repeat_reports, False
        return taken

    def linked(self, now: float, *, up: bool) -> None:
        """The way to the parent opened or was lost."""
        self.session.happened(SessionEvent.LINKED if up else SessionEvent.UNLINKED, now)
        self.reader.link_lost()

    def welcomed(self, welcome: Welcome, now: float) -> int | None:
        """Take a welcome; the sequence to read the mailbox from, None: read on as it is."""
        if self.session.state is SessionState.UNLINKED:
            # It was on its way when the link went.
            return None
        if not welcome.run:
            if welcome.incarnation != self.reader.incarnation or not self.session.welcomed:
                self._parent_is_new(now)
            return None
        if welcome.run != self._run:
            return None
        if welcome.repair == Repair.STOP:
            self.session.happened(SessionEvent.STOP, now)
            self.reader.link_lost()
            return None
        if self.session.welcomed and welcome.incarnation != self.reader.incarnation:
            self._parent_is_new(now)
            return None
        self.session.happened(SessionEvent.WELCOME, now)
        if welcome.incarnation != self.reader.incarnation:
            # What a former run of the parent showed, this one may have forgotten.
            self.shown_by_parent = NO_SNAPSHOT
        self.addresses = welcome.addresses
        self._repeat_reports = self._repeat_reports or welcome.repair == Repair.REPORT_ALL
        return self.reader.begin(welcome)

    def hello(  # noqa: PLR0913 - each is a field of it
        self,
        snapshot: int,
        shown: tuple[SnapshotRank, bytes],
        wants: Iterable[MailKey],
        *,
        levels: int,
        refused: int,
        orphaned: int,
        farewell: bool = False,
        copies: int = 0,
        progress: Progress | None = None,
        newest: SnapshotRank = NO_SNAPSHOT,
        running: Running = NOTHING_RUNS,
        wire: int = WIRE_UNSAID,
    ) -> Hello:
        """What to say now; `shown` is the newest snapshot seen here or below, with its rank."""
        reader = self.reader
        rank, signed = shown
        # Whoever answers may be a copy of the centre, which shows newer ones of its own.
        news = rank > self.shown_by_parent or not self.session.welcomed
        return Hello(
            run=self._run,
            home=self._home,
            parent_run=reader.incarnation,
            sequence=reader.judged,
            digest=reader.digest,
            snapshot=snapshot,
            shown=signed if news else b"",
            wants=self._by_turns(wants),
            levels=levels,
            refused=refused,
            orphaned=orphaned,
            farewell=farewell,
            copies=copies,
            through=progress.through if progress is not None else 0,
            reports=progress.digest if progress is not None else b"",
            newest=newest.generation,
            newest_reign=newest.reign,
            held=b"" if self.session.welcomed else reader.held,
            running=running.counts,
            faults=running.faults,
            wire=wire,
        )

    def _by_turns(self, wants: Iterable[MailKey]) -> tuple[MailKey, ...]:
        """As many as one hello may name, from where the last one ended: none waits for ever."""
        ranked = sorted(wants)
        if len(ranked) <= WANTS_MAX:
            return tuple(ranked)
        at = bisect_right(ranked, self._named_last)
        named = [*ranked[at:], *ranked[:at]][:WANTS_MAX]
        self._named_last = named[-1]
        return tuple(named)

    def _parent_is_new(self, now: float) -> None:
        if self.session.state is SessionState.UNLINKED:
            return
        self.session.happened(SessionEvent.PARENT_RESTARTED, now)
        self.reader.link_lost()
        self.session.due = now
