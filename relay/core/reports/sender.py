"""What a node reports to its parent: each thing once in a session, and again when it is another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest

from relay.core.effects import Effect, SendReport
from relay.core.reports.child_reports import UNSENT_MAX
from relay.core.reports.digest import content_of, digest_bytes, report_term, run_number
from relay.core.reports.intake import bounded
from relay.core.reports.parts import PartRows, inlined
from relay.core.reports.room import Allotted, SenderRoom, room_of
from schemas.records.records import DIGEST_MODULUS
from schemas.reports.collectors import Collected
from schemas.reports.link import Progress
from schemas.reports.reports import COUNT_MAX, ObjectResult, Report, ReportPart, Summary, part_key
from schemas.values.identity import MailKey
from schemas.values.subjects import PROGRESS_KEY
from schemas.values.wire import encode


class ReportSender:
    """What one run reported; nothing is before `begin`."""

    def __init__(self, run: str, out: list[Effect]) -> None:
        self._run = run
        self._number = run_number(run)
        self._out = out
        # Of the parent that it reports to; empty before there is one.
        self._incarnation = ""
        self._revision = 0
        # What was reported of each placement, as a hash, and how much later parts take.
        self._sent: dict[MailKey, bytes] = {}
        self._parts: dict[MailKey, tuple[int, ...]] = {}
        # Whether the parent has a placement in the mailbox, and what was reported that it has not.
        self._shows: Callable[[MailKey], bool] = lambda _key: True
        self._unshown: set[MailKey] = set()
        # Which placements have how much of the room for later parts at the parent.
        self._room = SenderRoom()
        # The revision in each slot that says that something is there, and the sum of their terms.
        self._slots: dict[str, int] = {}
        self._sum = 0
        # The progress that was said last: it may have been lost, so each hello says it again.
        self.sent_progress: Progress | None = None

    def settle(self, shows: Callable[[MailKey], bool]) -> None:
        """Learn how to tell what the mailbox has; whoever finds more there reports on that."""
        self._shows = shows

    def begin(self, incarnation: str) -> None:
        """Report all anew to this run of the parent: whoever calls this then reports everything."""
        self._incarnation = incarnation
        self._unshown.clear()
        self._sent.clear()
        self._slots.clear()
        self._sum = 0
        self.sent_progress = None

    def in_turn(self, keys: Iterable[MailKey], *, below: int) -> Iterator[MailKey]:
        """These placements, and then those to report again, as room at the parent is shared anew.

        Each is to be reported before the next is asked for. `below` is how much is below the node.
        """
        self._room.bytes = room_of(below)
        yield from keys
        yield from self._room.settle()

    @property
    def digest(self) -> bytes:
        """The digest of the reports that the parent should have now: 16 bytes."""
        return digest_bytes(self._sum)

    def report(
        self,
        key: MailKey,
        summary: Summary,
        results: Iterable[ObjectResult] = (),
        collected: Sequence[Collected] = (),
        *,
        generation: int,
        gone: bool = False,
        unsaid: int = 0,
    ) -> None:
        """Send a placement's report if it says something else than the last one sent.

        `unsaid` is how much found no room below already. With `gone` the node forgot the placement,
        and what was reported of it is forgotten, too.
        """
        if not self._incarnation or not self._may_report(key, gone=gone):
            return
        beside, later = inlined(() if gone else collected)
        allotted = Allotted(() if gone else results, later)
        allotted.fit(self._room.limit(key, allotted.size))
        sizes = allotted.sizes()
        self._room.take(key, sum(sizes))
        count, parts = allotted.count, allotted.parts
        unsaid = min(allotted.unsaid + unsaid, COUNT_MAX)
        revision = self._revision + 1
        fitted, run = bounded(summary), self._run
        report = Report(key, 0, run, revision, generation, gone, count, fitted, beside, unsaid)
        content = content_of(report, parts)
        if self._sent.get(key) == content:
            return
        self._revision = revision
        former = self._parts.get(key, ())
        if count < len(former):
            # It makes room: with it the parent forgets those beyond.
            self._say(key, encode(report), is_there=not gone)
        # Those first that make room for others.
        grows = [new - old for new, old in zip_longest(sizes, former, fillvalue=0)]
        for at in sorted(range(len(grows)), key=grows.__getitem__):
            part, is_there = at + 1, at < count
            said = ReportPart(
                key, part, self._run, revision, generation, *parts.get(part, PartRows())
            )
            self._say(part_key(key, part), encode(said) if is_there else b"", is_there=is_there)
        if count >= len(former):
            self._say(key, encode(report), is_there=not gone)
        if gone:
            self._sent.pop(key, None)
            self._parts.pop(key, None)
        else:
            self._sent[key], self._parts[key] = content, sizes

    def _may_report(self, key: MailKey, *, gone: bool) -> bool:
        """Whether the parent keeps it: of what it did not send it takes only so much."""
        self._unshown.discard(key)
        if gone or self._shows(key):
            return True
        if len(self._unshown) < UNSENT_MAX:
            self._unshown.add(key)
        return key in self._unshown or key in self._sent

    def progress(self, through: int, mail: bytes = b"", snapshot: int = 0) -> None:
        """Say that what was reported reflects the mailbox up to here; after all reports.

        `mail` is the digest of the mailbox as far as that, under the snapshot that was reached.
        """
        if not self._incarnation:
            return
        progress = Progress(self._run, self._incarnation, through, self.digest, mail, snapshot)
        if progress != self.sent_progress:
            self.sent_progress = progress
            self._out.append(SendReport(PROGRESS_KEY, encode(progress)))

    def assert_invariants(self) -> None:
        """Assert that the digest is that of the slots."""
        self._room.assert_invariants()
        terms = (report_term(slot, self._number, each) for slot, each in self._slots.items())
        assert self._sum == sum(terms) % DIGEST_MODULUS
        kept = {
            part_key(key, n) for key, sizes in self._parts.items() for n in range(len(sizes) + 1)
        }
        assert self._slots.keys() <= kept

    def _say(self, slot: str, data: bytes, *, is_there: bool) -> None:
        """Put something into a slot, counted in the digest if it says that something is there."""
        former = self._slots.pop(slot, None)
        if former is not None:
            self._sum -= report_term(slot, self._number, former)
        if is_there:
            self._slots[slot] = self._revision
            self._sum += report_term(slot, self._number, self._revision)
        self._sum %= DIGEST_MODULUS
        self._out.append(SendReport(slot, data))
