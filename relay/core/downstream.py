"""What a node has to do with its children: their hellos and reports, and what counts for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from relay.core.audience import HERE
from relay.core.collectors.ports import PlacementStanding, RowOwner
from relay.core.effects import DropReport, Noted
from relay.core.events import HelloArrived, ReportArrived
from relay.core.gates import Candidate, GateNames, WaveNumbers, names_in, wave_of
from relay.core.link.old_wires import is_held_back
from relay.core.link.session import Presence
from relay.core.link.target import mail_owner
from relay.core.records.acceptance import RecordRefusal
from relay.core.records.accepted import AcceptedRecord, is_delta
from relay.core.records.judge import VerifiedSnapshot
from relay.core.reports.child_reports import ExpectedCounts, ExpectedWaves
from relay.core.reports.intake import DIGEST_BYTES, RUN_MAX_BYTES, ReportIntake, check_run
from relay.core.rooms import Rooms, RoomsPart
from schemas.records.maintenance import maintenance_of
from schemas.records.records import DeltaHead, Gate, LocationRecord, Profile
from schemas.reports.link import Hello, Progress
from schemas.reports.reports import PART_MAX_BYTES, Report, ReportPart
from schemas.reports.running import Running, held_back
from schemas.values.identity import MailKey, NodePath
from schemas.values.refusals import RecordRefused
from schemas.values.wire import decode, replace

NOTED_MAX_CHARACTERS = 300
"""Of why something is refused: it may repeat what a child said."""


class HelloTaken(NamedTuple):
    """What came of a hello."""

    # The snapshot that it shows, if that verifies.
    shown: VerifiedSnapshot | None
    # Whether its progress was taken.
    progressed: bool
    # Whether it says of who runs what something else than before.
    tells_of_running: bool = False


NOT_TAKEN = HelloTaken(None, progressed=False)


class Downstream(RoomsPart):
    """The children's side of one node."""

    def __init__(self, path: NodePath, rooms: Rooms) -> None:
        super().__init__(rooms)
        # Messages refused since the start.
        self.refused = 0
        self._path = path
        self._intake = ReportIntake(path, self._sent_generation, self._named)

    def hello(self, event: HelloArrived) -> HelloTaken:
        """Take a child's hello."""
        name = event.child
        if not self._children.has(name):
            return NOT_TAKEN
        try:
            hello = self._own(name, decode(Hello, event.data, PART_MAX_BYTES))
        except RecordRefused as error:
            self._refuse(name, error.reason)
            return NOT_TAKEN
        self._joined.add(name)
        now = self._clock()
        if self._children.hello(name, hello, now.seconds, now.wall_ms, event.former_ms):
            self._reports.void_until_repeated(name, hello.run)
        for key in hello.wants:
            if self._book.get(key) is not None:
                self._children.answer_wants(key)
        if hello.copies:
            self._children.open_copies(name)
        progress = hello.progress
        progressed = progress is not None and self._progress(name, progress, in_hello=True)
        tells = self._releases.take(name, self._running(name, hello), now.seconds)
        if not hello.shown:
            return HelloTaken(None, progressed, tells)
        verified = self._acceptance.snapshot(hello.shown)
        shown = None if isinstance(verified, RecordRefusal) else verified
        return HelloTaken(shown, progressed, tells)

    def _running(self, name: str, hello: Hello) -> Running:
        """Who runs what there; nothing of a child that tells of more nodes than there are.

        Only faults at and below it count: those of other nodes would hide true ones.
        """
        said = hello.who_runs.below(self._path.child(name))
        if not said.counts and is_held_back(self._children, name):
            # It knows no releases, and so cannot say why it gets nothing.
            why = f"it gets no placement: it speaks wire {hello.wire}, and what is issued needs"
            why = f"{why} wire {self._releases.needs}; install a newer release there"
            return held_back(str(self._path.child(name)), why)
        if said == self._releases.of_child(name) or said.nodes <= self._book.nodes_at(name):
            return said
        self._refuse(name, f"it tells of {said.nodes} nodes, and has {self._book.nodes_at(name)}")
        return Running()

    def _own(self, name: str, hello: Hello) -> Hello:
        """The hello with no more levels than signed records tell of; raises RecordRefused."""
        check_run(hello.run)
        if len(hello.home.encode()) > RUN_MAX_BYTES:
            raise RecordRefused(f"a home is named by at most {RUN_MAX_BYTES} bytes")
        for what, said in (("report digest", hello.reports), ("digest of all", hello.held)):
            if len(said) not in (0, DIGEST_BYTES):
                raise RecordRefused(f"hello: a {what} of {len(said)} bytes")
        return replace(hello, levels=min(hello.levels, self._book.levels_below(name)))

    def report(self, event: ReportArrived) -> bool:
        """Take a report slot of a child; whether its progress was taken.

        What nothing is kept of is erased: else a child could fill this node's disk.
        """
        name, kept, progressed = event.child, False, False
        if not self._children.has(name):
            return False
        self._children.note_report(name, event.sequence)
        try:
            match self._intake.read(name, event.key, event.data):
                case Progress() as progress:
                    kept, progressed = True, self._progress(name, progress)
                case Report() as report:
                    self._check_collected(report)
                    kept = self._reports.take(name, report)
                case ReportPart() as part:
                    self._check_collected(part)
                    kept = self._reports.take_part(name, part)
                case None:
                    pass
        except RecordRefused as error:
            self._refuse(name, error.reason)
        else:
            self._children.heard(name, self._clock().seconds)
        if not kept and event.sequence:
            self._out.append(DropReport(name, event.key, event.sequence))
        return progressed

    def count_junk(self, name: str) -> None:
        """A child said something that is no answer to what it was asked."""
        self.refused += 1
        if self._children.has(name):
            self._children.note_refused(name)

    def standing(self, child: str, key: MailKey) -> PlacementStanding:
        """The same for who merges rows: whether the child is there, and who it is if it is one."""
        if child == HERE:
            return PlacementStanding(
                self._audience.expected(key, HERE), there=True, in_step=True, edge=None
            )
        facts = self.facts(child, key)
        there = facts.presence in (Presence.IN_STEP, Presence.CATCHING_UP)
        edge = next(iter(self.members(child, key)), None) if facts.edge else None
        in_step = facts.presence is Presence.IN_STEP
        return PlacementStanding(facts.expected, there=there, in_step=in_step, edge=edge)

    def members(self, child: str, key: MailKey) -> list[RowOwner]:
        """The destinations at and below a child that a placement is meant for."""
        records = (self._book.by_key[each].record for each in self._audience.profiles(key, child))
        return [RowOwner(r.source.name, r.destination) for r in records if isinstance(r, Profile)]

    def concerned(self, key: MailKey) -> list[str]:
        """The children that a placement concerns, the node itself among them."""
        return [*self._audience.concerned(key), HERE]

    def facts(self, child: str, key: MailKey) -> ExpectedCounts:
        """What is known of a child and a placement, besides the child's report."""
        held = self._book.get(key)
        expected = self._audience.expected(key, child)
        edge = expected == 1 and self._book.is_edge(child)
        return ExpectedCounts(
            expected,
            self._children.slot(child, key) is not None,
            held.generation if held is not None else 0,
            self._children.presence(child),
            edge,
            self._rollout(child, key, held, edge=edge),
            lambda: sum(1 for _ in self._maintained(child, key)),
        )

    def _check_collected(self, report: Report | ReportPart) -> None:
        """Refuse rows that are none; raises RecordRefused."""
        if report.collected:
            held = self._book.get(report.key)
            current = held is not None and held.generation == report.generation
            self._collected.admits(report.key, report.collected, current=current)

    def _progress(self, name: str, progress: Progress, *, in_hello: bool = False) -> bool:
        before, digest = self._children.places(name)[0], self._reports.digest(name)
        now = self._clock().seconds
        if not self._children.progressed(name, progress, digest, now, in_hello=in_hello):
            return False
        through, last_report = self._children.places(name)
        for key in self._book.gated:
            slot = self._children.slot(name, key)
            if slot is not None and before < slot.sequence <= through:
                self._reports.refresh(name, key)
        # It has just what its digest says: all else is a former run's, or was lost on its way out.
        for unsaid in self._reports.drop_void(name, progress.run):
            # What it says there since then is another report, which may be to be kept.
            self._out.append(DropReport(name, unsaid, last_report, older=True))
        # What came before what made room for it.
        self._reports.make_good(name)
        for key in self._children.clear_heads(name, lambda key: self._is_over(name, key)):
            self._reports.refresh(name, key)
        return True

    def _is_over(self, child: str, key: MailKey) -> bool:
        """Whether a head has said its last, and the child knows it."""
        return is_delta(self._book.get(key)) and self._reports.is_gone(child, key)

    def _refuse(self, name: str, reason: str) -> None:
        """Count a refusal, and note it, but not each of a flood."""
        self.refused += 1
        count = self._children.note_refused(name)
        if count in (1, 10, 100) or count % 1000 == 0:
            self._out.append(Noted("BadReport", name, reason[:NOTED_MAX_CHARACTERS]))

    def _sent_generation(self, child: str, key: MailKey) -> int | None:
        slot = self._children.slot(child, key)
        held = self._book.get(key)
        known = [slot.version.generation] if slot is not None else []
        if held is not None:
            known.append(held.generation)
        if self._reports.knows(child, key):
            known.append(self._reports.generation(child, key))
        return max(known, default=None)

    def _named(self, key: MailKey) -> GateNames | None:
        """The names in the delta in force; None if its content is not known here."""
        held = self._book.get(key)
        if held is None or held.body is None:
            return None
        return names_in(held.body.gates)

    def _rollout(
        self, child: str, key: MailKey, held: AcceptedRecord | None, *, edge: bool
    ) -> ExpectedWaves | None:
        if held is None or held.body is None or not isinstance(held.record, DeltaHead):
            return None
        if not held.record.is_gated:
            return None
        gates = held.body.gates
        return ExpectedWaves(
            held.record.rollout_since,
            lambda: names_in(gates),
            self._content.refused_since(mail_owner(key)) is not None,
            lambda: self._waves_of(self._profiles(child, key), gates),
            edge and self._children.has_answered(child, key, held.version),
            lambda: self._waves_of(self._maintained(child, key), gates),
        )

    def _waves_of(self, profiles: Iterable[Profile], gates: Sequence[Gate]) -> WaveNumbers:
        return Counter(wave_of(gates, Candidate(it, self._locations)) for it in profiles)

    def _profiles(self, child: str, key: MailKey) -> Iterator[Profile]:
        """Those for whom a placement is meant at and below a child."""
        records = (self._book.by_key[each].record for each in self._audience.profiles(key, child))
        return (record for record in records if isinstance(record, Profile))

    def _maintained(self, child: str, key: MailKey) -> Iterator[Profile]:
        """Those of them at which a person works."""
        now_ms = self._clock().wall_ms
        found = self._profiles(child, key)
        return (it for it in found if maintenance_of(it.annotations).is_on(now_ms))

    def _locations(self, profile: Profile) -> Iterator[LocationRecord]:
        for key in self._audience.locations_of(profile.source.key):
            location = self._book.by_key[key].record
            if isinstance(location, LocationRecord):
                yield location
