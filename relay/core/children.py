"""The children of a node: their sessions, and whether they are heard of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from schemas.reports import (
    NEVER_JOINED,
    WANT_AGAIN,
    WANT_NONE,
    WANT_SAY,
    Heartbeat,
    SessionMessage,
)
from schemas.wire import replace

HEARTBEAT_SECONDS = 30.0
SILENT_AFTER_SECONDS = 3 * HEARTBEAT_SECONDS
INDEX_TO_EDGE_SECONDS = 600.0
LIST_EVERY_SECONDS = 60.0
DIFFER_MAX = 2
REPORTS_DIFFER_SECONDS = 10.0
REWRITE_AFTER_MISMATCHES = 2
REWRITE_EVERY_SECONDS = 10.0
"""A mailbox that differs however often it is written again (as while a centre with an old ledger
reads it back) is left alone meanwhile: a child answers each reading at once."""
SAY_EVERY_SECONDS, SAY_EVERY_MAX_SECONDS = 60.0, 3600.0
SAYS_AT_ONCE = 10
"""So often reports are asked for every minute, as answers get lost, and then ever more rarely."""
FORMER_RUNS_MAX = 4
NOTE_EVERY_SECONDS = 1.0
"""A child that is refused without end is noted so often."""
CONTESTED_SECONDS = 600.0
"""So long after two runs of a child were up at a time that is told of."""
EPOCH_MAX = 1 << 62
"""What a child claims beyond does not count: epochs stay within 64 bits."""


class Standing(NamedTuple):
    """How it is with a child, by its parent's word: since when it is silent, and the like."""

    silent_since_ms: int | None
    left: bool
    in_session: bool
    joined: bool = True

    @property
    def word(self) -> str:
        """The same in a word or two, as people are told it everywhere."""
        if not self.joined:
            return NEVER_JOINED
        if self.silent_since_ms is not None:
            return "stopped" if self.left else "unreachable"
        return "up" if self.in_session else "connecting"


@dataclass(slots=True)
class Child:
    """One child, by its node record in force, heard of or not; `run` is the run in session.

    `former` are runs that lost it to a later one: none of them gets it back by asking anew.

    It is `proven` once it is known to hold nothing beyond its mailbox: a node without memory cannot
    tell what it had sent, so until then a child's say does not make a summary complete. One that is
    `blank` held nothing when it asked for its session: no index takes anything from it.

    One that `left` said farewell, and counts as silent until another run of it is heard of; one
    that is `unlinked` has lost its link since it was heard of last.
    `seen` is how its mailbox and its reports stood when it was last seen what it has not answered.
    `said` is the newest epoch that a report of it named, `refused` how often it was refused,
    `contests` how often in a row a run was up that had lost its session to another.
    Times are the node's own monotonic seconds; `silent_since_ms` is wall time, for people.
    """

    nkey: str
    heard: float
    proven: bool = True
    blank: bool = False
    silent_since_ms: int | None = None
    left: bool = False
    unlinked: bool = False
    epoch: int = 0
    run: str = ""
    former: tuple[str, ...] = ()
    home: str = ""
    has_memory: bool = False
    labels_stamp: tuple[int, int] = (0, 0)
    index_sent: float = float("-inf")
    mismatches: int = 0
    rewritten: float = float("-inf")
    cursor: int = 0
    seen: tuple[object, ...] = ()
    said: int = 0
    list_asked: float = float("-inf")
    index_shown: int = 0
    behind: bool = False
    labels_hash: bytes = b""
    labels_differ: int = 0
    reports_differ: float | None = None
    say_from: float = float("-inf")
    says: int = 0
    noted: float = float("-inf")
    refused: int = 0
    contests: int = 0
    contested: float = float("-inf")
    contender: str = ""

    def contend(self, run: str, now: float) -> None:
        """Count a run that was up though another one had taken its session, once."""
        if run != self.contender:
            self.contests = self.contests_lately(now) + 1
            self.contender, self.contested = run, now

    def contests_lately(self, now: float) -> int:
        """How often runs took the session from one another, if they still do."""
        return self.contests if now <= self.contested + CONTESTED_SECONDS else 0

    def refuse(self, now: float) -> bool:
        """Count what it said and nobody takes; whether to note it, which not each of a flood is."""
        self.refused += 1
        due = now >= self.noted + NOTE_EVERY_SECONDS
        if due:
            self.noted = now
        return due

    def want_said(
        self, heartbeat: Heartbeat, answer: SessionMessage, reports: bytes, now: float
    ) -> SessionMessage:
        """Ask for all reports again if those known are for a while not those that the child sent.

        `reports` is the digest of those known. Of a child that holds more than it was sent nothing
        follows, and what asking does not mend is asked for ever more rarely.
        """
        in_session = heartbeat.epoch == self.epoch
        labels = in_session and heartbeat.labels_hash not in (b"", self.labels_hash)
        comparable = in_session and self.proven and not heartbeat.withheld
        told = comparable and heartbeat.report_digest != reports
        self.labels_differ = self.labels_differ + 1 if labels else 0
        since = now if self.reports_differ is None else self.reports_differ
        self.reports_differ = since if told else None
        if comparable and not told:
            self.say_from, self.says = float("-inf"), 0
        wanted = self.labels_differ >= DIFFER_MAX
        if told and now >= max(self.say_from, since + REPORTS_DIFFER_SECONDS):
            wanted = True
        if not wanted or answer.want != WANT_NONE:
            return answer
        self.labels_differ, self.reports_differ = 0, None
        wait = SAY_EVERY_SECONDS * 2 ** max(0, self.says - SAYS_AT_ONCE)
        self.say_from = now + min(wait, SAY_EVERY_MAX_SECONDS)
        self.says = min(self.says + 1, 2 * SAYS_AT_ONCE)
        return replace(answer, want=WANT_SAY)

    def is_rewritten(self, now: float) -> bool:
        """Whether its mailbox is to be written again, by what `answer` found; it is noted then."""
        due = now >= self.rewritten + REWRITE_EVERY_SECONDS
        if self.mismatches < REWRITE_AFTER_MISMATCHES or not due:
            return False
        self.mismatches, self.rewritten = 0, now
        return True

    def answer(
        self, heartbeat: Heartbeat, mail: SessionMessage, digest: bytes, wall_ms: int
    ) -> SessionMessage:
        """The answer to a heartbeat: the epoch granted or in force, and what should be read.

        `mail` carries what the parent knows of the mailbox. Digests are compared only when both
        speak of the same sequence, or when the child's cursor is of another incarnation.
        """
        if not heartbeat.epoch:
            # Also of what an older session left in its slots the new one must be the newer.
            claimed = min(max(heartbeat.last_epoch, self.said, self.labels_stamp[0]), EPOCH_MAX)
            self.epoch = max(self.epoch + 1, claimed + 1, wall_ms)
            if self.run not in ("", heartbeat.run):
                self.former = (*self.former, self.run)[-FORMER_RUNS_MAX:]
                self.list_asked = float("-inf")
            self.run = heartbeat.run
            sent_here = self.blank and heartbeat.incarnation == mail.incarnation
            self.blank = sent_here or not any(heartbeat.mail_digest)
        elif heartbeat.epoch > self.epoch:
            self.epoch, self.run = heartbeat.epoch, heartbeat.run
        foreign = heartbeat.incarnation != mail.incarnation
        comparable = foreign or heartbeat.sequence == mail.last_sequence
        differs = comparable and heartbeat.mail_digest != digest
        if not foreign:
            self.mismatches = self.mismatches + 1 if differs else 0
        again = differs and self.mismatches <= REWRITE_AFTER_MISMATCHES
        want = WANT_AGAIN if again else WANT_NONE
        return SessionMessage(
            mail.incarnation,
            self.epoch,
            mail.last_sequence,
            mail.swept_through,
            mail.index_generation,
            want,
            heartbeat.run,
            heartbeat.question,
        )
