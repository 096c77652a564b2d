"""What each child counts for: the reports of all children, folded by placement.

Only of a child that is in step what it reported counts; for every other its parent counts what the
signed inventory expects there (docs/protocol.md, U12 and U13).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from relay.core.gates import GateNames, WaveNumbers
from relay.core.link.session import Presence
from relay.core.reports import reduce
from relay.core.reports.digest import ReportDigests, run_number
from relay.core.reports.fold import NOTHING, Counted, Fold, Reported, Shapes
from relay.core.reports.room import (
    PartBudget,
    PartFigures,
    UnsaidCounts,
    room_of,
    size_of,
    taken_from,
)
from schemas.objects.objects import ObjectKey
from schemas.reports.collectors import Collected
from schemas.reports.reports import (
    ARM_OLDER,
    CELL_FORMER,
    CELL_OTHER,
    ObjectResult,
    Report,
    ReportPart,
    Summary,
    cell,
    part_key,
)
from schemas.reports.states import MAINTAINED, NEVER_JOINED
from schemas.values.identity import MailKey
from schemas.values.wire import encode, replace


def _is_of_one(summary: Summary) -> bool:
    return summary.destinations == 1 and "leaving" not in summary.states


def _tells_no_wave(summary: Summary) -> bool:
    return CELL_FORMER in summary.cells or CELL_OTHER in summary.cells


_PENDING = Summary({"pending": 1}, {"unknown": 1}, {ARM_OLDER: 1})
_UNREACHABLE = Summary({"unreachable": 1}, {"unknown": 1}, {ARM_OLDER: 1})
_MAINTAINED = Summary({MAINTAINED: 1}, {MAINTAINED: 1}, {ARM_OLDER: 1})
_NEVER_JOINED = Summary({NEVER_JOINED: 1}, {NEVER_JOINED: 1}, {ARM_OLDER: 1})


def _of_waves(one: Summary, count: int, waves: WaveNumbers) -> Summary:
    """So many destinations that say the same, in their waves."""
    if not count:
        return reduce.EMPTY
    [state], [health] = one.states, one.health
    cells = {cell(wave, state, health): many for wave, many in waves.items() if wave}
    return replace(reduce.repeated(one, count), cells=reduce.fit_cells(cells))


UNSENT_MAX, UNSENT_BYTES_MAX = 1000, 2**20
"""So many reports are kept of one child on placements that it was not sent from here."""


class ExpectedWaves(NamedTuple):
    """What a node knows besides of a placement under a rollout."""

    # What was reported of this generation, or of a later one, counts as it says.
    rollout_since: int
    # The names in force.
    names: Callable[[], GateNames]
    # Whether its content cannot be had here, so that nobody is sent the present step.
    refused: bool
    # The waves of those for whom it is meant at and below the child. Costs as much as there are.
    expected: Callable[[], WaveNumbers]
    # Whether the child is an edge whose progress says that its report reflects the present step.
    answered: bool = False
    # The waves of those of them at which a person works.
    maintained: Callable[[], WaveNumbers] = Counter


class ExpectedCounts(NamedTuple):
    """What a node knows of one child and one placement, besides the child's report."""

    # For how many destinations at and below the child the placement is meant.
    expected: int
    # Whether the child's mailbox has a slot for it.
    sent: bool
    # Of the record in force here.
    generation: int
    presence: Presence
    # Whether the child is one destination, with nothing below it.
    edge: bool
    # None without a rollout.
    rollout: ExpectedWaves | None = None
    # At how many of these destinations a person works. Costs as much as there are.
    maintained: Callable[[], int] = int


class CollectedTaker(Protocol):
    """Keeps what collectors collected."""

    def take(self, key: MailKey, child: str, part: int, said: tuple[Collected, ...]) -> bool:
        """Keep what a child says in a part; whether it said another thing there."""

    def mark_dirty(self, key: MailKey, child: str) -> None:
        """Something else is known of a child and a placement."""

    def mark_child_dirty(self, child: str) -> None:
        """Something else is known of a child in all placements."""

    def forget_child(self, child: str) -> None:
        """The child is none any more."""


class ChildReports:
    """All reports of all children, folded by placement."""

    def __init__(
        self,
        place: Callable[[str], int],
        facts: Callable[[str, MailKey], ExpectedCounts],
        collected: CollectedTaker,
        below: Callable[[str], int] = lambda _child: 1,
    ) -> None:
        """`place` gives each child a small number of its own while it is a child.

        `below` is how much is below each: an edge has less room than a relay.
        """
        self._place = place
        self._facts = facts
        # What collectors collected is kept there, as long as the slot that says it.
        self._collected = collected
        self._names: list[str] = []
        self._folds: dict[MailKey, Fold] = {}
        self._shapes = Shapes()
        self._digests = ReportDigests()
        # Later parts; of what found no room it is only noted that it was said.
        self._below = below
        self._parts = PartBudget(self._taken_from)
        # Children whose void parts were emptied to make room for what their present run says.
        self._emptied: set[int] = set()
        # What a child reported without having been sent it, as what a lost disk knew of: part 0s.
        self._unsent = PartBudget(lambda _place: (UNSENT_MAX, UNSENT_BYTES_MAX))
        # How many such reports found no room since it was looked whether there is some.
        self._refused_since: dict[int, int] = {}
        # Of more than that it is only noted that it was said: digests then agree.
        self._noted = PartBudget(self._taken_from)
        self._unsaid = UnsaidCounts()
        # Placements of which something else may be to be reported.
        self._dirty: dict[MailKey, None] = {}

    # What children say.

    def take(self, child: str, report: Report) -> bool:
        """Take a child's part 0; whether its slot is to be kept.

        One of another run than the present is not, and one that says gone needs no slot. One on
        what the child was not sent counts for nothing, but belongs to its digest.
        """
        place, run = self._at(child), run_number(report.run)
        if not self._digests.is_present(place, run):
            return False
        if not self._admits(place, report):
            self._note(place, report)
            return False
        self._drop_note(place, report.key)
        fold = self._fold(report.key)
        held = fold.reported(place)
        if held.run == run and report.revision < held.revision:
            return True
        said = Reported(
            run,
            report.revision,
            report.generation,
            report.summary.oldest_ms,
            self._shapes.shared(report.summary),
            report.gone,
        )
        self._replace(fold, place, report.key, said)
        if self._collected.take(report.key, child, 0, () if report.gone else report.collected):
            self.touch(report.key)
        self._set_unsaid(report.key, place, 0 if report.gone else report.unsaid)
        parts = self._parts.of(place, report.key)
        for part in [n for n in parts if report.gone or n > report.parts]:
            self._drop_part(fold, place, report.key, part)
        self._count(fold, report.key, place)
        self._tidy(report.key)
        return not report.gone

    def take_part(self, child: str, part: ReportPart) -> bool:
        """Take a child's results of some objects; whether the slot is to be kept."""
        place, run = self._at(child), run_number(part.run)
        if not self._digests.is_present(place, run):
            return False
        held = self._parts.of(place, part.key).get(part.part)
        if held is not None and held[0] == run and part.revision < held[1]:
            return True
        size, slot = size_of(part), part_key(part.key, part.part)
        if not self._finds_room(place, part, size):
            if not self._parts.admits(place, part.key, part.part, 0):
                return False
            # It is only noted that it was said: then digests agree, and all else counts.
            size, part = -size, replace(part, results=(), collected=())
        fold = self._fold(part.key)
        if held is not None:
            self._digests.remove(place, slot, held[0], held[1])
        self._parts.put(place, part.key, part.part, (run, part.revision, size))
        self._digests.add(place, slot, run, part.revision)
        fold.set_results(place, {**fold.results_of(place), part.part: part.results})
        self._collected.take(part.key, child, part.part, part.collected)
        if not fold.has_row(place):
            fold.mark_dirty(place)
        self.touch(part.key)
        return size > 0

    def void_until_repeated(self, child: str, run: str) -> None:
        """All that the child reported is void until this run says it, or says it again.

        For a run that is new, and for one that is told to say everything again. Whoever calls this
        sees to it that the child is not in step meanwhile.
        """
        self._digests.void_until_repeated(self._at(child), run_number(run))
        self._emptied.discard(self._at(child))

    def drop_void(self, child: str, run: str) -> list[str]:
        """Forget what the run did not say since `void_until_repeated`; the slots to erase."""
        place = self._at(child)
        if not self._digests.is_present(place, run_number(run)) or not self._digests.has_void(
            place
        ):
            return []
        slots: list[str] = []
        for key in self._noted.placements(place):
            if not self._is_said(place, self._noted.of(place, key)[0]):
                self._drop_note(place, key)
        for key, fold in list(self._folds.items()):
            parts = self._parts.of(place, key)
            for part in [n for n, said in parts.items() if not self._is_said(place, said)]:
                self._drop_part(fold, place, key, part)
                slots.append(part_key(key, part))
            held = fold.reported(place)
            if held.is_there and not self._is_said(place, held):
                self._replace(fold, place, key, NOTHING)
                self._collected.take(key, child, 0, ())
                slots.append(key)
                self._count(fold, key, place)
            self._tidy(key)
        return slots

    def make_good(self, child: str) -> None:
        """Have a child say again what found no room, as the digests differ, if all would by now."""
        place = self._at(child)
        for key, part in self._parts.fits_now(place, room_of(self._below(child))):
            self._drop_part(self._folds[key], place, key, part)
            self._tidy(key)

    def digest(self, child: str) -> bytes:
        """The digest of the slots that the child's present run said, as the child states it."""
        return self._digests.of(self._at(child))

    def has_rows(self, key: MailKey) -> bool:
        """Whether any child has a row for the placement."""
        return key in self._folds

    @property
    def is_dirty(self) -> bool:
        """Whether something else may be to be reported of some placement."""
        return bool(self._dirty)

    def knows(self, child: str, key: MailKey) -> bool:
        """Whether the child has reported something of the placement that is there."""
        fold = self._folds.get(key)
        return fold is not None and fold.reported(self._at(child)).is_there

    def is_gone(self, child: str, key: MailKey) -> bool:
        """Whether the child's present run said that nothing of the placement is there."""
        fold, place = self._folds.get(key), self._at(child)
        held = fold.reported(place) if fold is not None else NOTHING
        return held.gone and self._digests.counts(place, held.run, held.revision)

    def generation(self, child: str, key: MailKey) -> int:
        """The generation that the child reported last; 0 if it reported nothing."""
        fold = self._folds.get(key)
        return fold.reported(self._at(child)).generation if fold is not None else 0

    # What is known of children otherwise.

    def refresh(self, child: str, key: MailKey) -> None:
        """Look again at what a child counts for: its facts for this placement changed."""
        place = self._at(child)
        self._refused_since.pop(place, None)
        self._fold(key).mark_dirty(place)
        if self._noted.of(place, key) and self._was_sent(place, key):
            # It counts now: as the digests differ without it, the child says it again.
            self._drop_note(place, key)
        self._collected.mark_dirty(key, child)
        self.touch(key)

    def refresh_child(self, child: str) -> None:
        """Look again at a child in all that it has a row in: its presence changed."""
        place = self._at(child)
        self._collected.mark_child_dirty(child)
        for key, fold in self._folds.items():
            if fold.has_row(place):
                fold.mark_dirty(place)
                self.touch(key)

    def forget_child(self, child: str) -> None:
        """The child is none any more, and counts for nothing."""
        place = self._at(child)
        for key, fold in list(self._folds.items()):
            if fold.has_row(place) or fold.results_of(place):
                fold.report(place, NOTHING)
                fold.set_results(place, {})
                fold.count(place, None)
                self.touch(key)
                self._tidy(key)
        self._collected.forget_child(child)
        self._digests.forget_child(place)
        self._parts.forget_child(place)
        self._unsent.forget_child(place)
        self._refused_since.pop(place, None)
        self._noted.forget_child(place)
        self._emptied.discard(place)
        for key in self._unsaid.placements(place):
            self._set_unsaid(key, place, 0)

    # What follows.

    def touch(self, key: MailKey) -> None:
        """Mark the placement's report as possibly changed."""
        self._dirty[key] = None

    def take_dirty(self) -> dict[MailKey, None]:
        """The placements to look at; none are left."""
        taken, self._dirty = self._dirty, {}
        return taken

    def summary(self, key: MailKey, own: Summary = reduce.EMPTY) -> Summary:
        """The node's summary: its children's and its own."""
        fold = self._looked_at(key)
        if fold is None:
            return own
        return fold.total() if own is reduce.EMPTY else reduce.merge(fold.total(), own)

    def by_child(self, key: MailKey) -> dict[str, Summary]:
        """What each child counts for now."""
        fold = self._looked_at(key)
        return dict(fold.counting(self._names)) if fold is not None else {}

    def in_state(self, key: MailKey, state: str) -> list[tuple[str, int]]:
        """The children that count some destinations in a state, and how many."""
        fold = self._looked_at(key)
        found = fold.counting(self._names, state) if fold is not None else ()
        return [(name, summary.states[state]) for name, summary in found]

    def results(
        self, key: MailKey, own: Iterable[ObjectResult] = ()
    ) -> dict[ObjectKey, ObjectResult]:
        """The returned states of the subtree, by object; a child's last ones while it is away.

        Who only has to let go of the placement has none.
        """
        fold, found = self._folds.get(key), [*own]
        for place, said in fold.results() if fold is not None else ():
            if self._facts(self._names[place], key).expected:
                found += said
        return reduce.merge_results(found)

    def unsaid(self, key: MailKey) -> int:
        """How much of what is known below of the placement found no room on the way here."""
        return self._unsaid.of(key)

    def unsaid_of(self, child: str) -> int:
        """How much a child left out for want of room, by its word, and had refused here."""
        return self._unsaid.of_child(self._at(child)) + self.refused_of(child)

    def refused_of(self, child: str) -> int:
        """How many slots of a child are only noted, as they found no room."""
        place = self._at(child)
        return self._parts.noted(place) + self._noted.noted(place)

    def assert_invariants(self) -> None:
        """Assert that folds and digests agree with the rows."""
        self._parts.assert_invariants()
        self._noted.assert_invariants()
        self._unsent.assert_invariants()
        for place, name in enumerate(self._names):
            assert all(self.knows(name, key) for key in self._unsent.placements(place))
        held: dict[int, list[tuple[str, int, int]]] = {}
        for key, fold in self._folds.items():
            fold.assert_invariants()
            assert not fold.is_empty, key
            for place in range(len(self._names)):
                row = fold.reported(place)
                if row.is_there:
                    held.setdefault(place, []).append((key, row.run, row.revision))
                assert self._parts.of(place, key).keys() == fold.results_of(place).keys()
        for place in range(len(self._names)):
            later = (*self._parts.all_of(place), *self._noted.all_of(place))
            self._digests.assert_invariants(place, [*held.get(place, ()), *later])

    def _admits(self, place: int, report: Report) -> bool:
        """Whether a child reports on what it was sent, or on little that it was not."""
        unsent, key = self._unsent, report.key
        known = self.knows(self._names[place], key) and not unsent.of(place, key)
        if report.gone or known or self._was_sent(place, key):
            return True
        size = len(encode(report.summary))
        if not unsent.admits(place, key, 0, size):
            self._make_room(place)
        if not unsent.admits(place, key, 0, size):
            return False
        unsent.put(place, key, 0, (run_number(report.run), report.revision, size))
        return True

    def _make_room(self, place: int) -> None:
        """Let go of what was sent meanwhile; not at each report of a flood, as that takes 10 ms."""
        refused = self._refused_since.get(place, 0)
        self._refused_since[place] = (refused + 1) % UNSENT_MAX
        if refused:
            return
        for other in self._unsent.placements(place):
            if self._was_sent(place, other):
                self._unsent.take(place, other, 0)

    def _note(self, place: int, report: Report) -> None:
        """Note that a report was said of which nothing is kept."""
        key, run = report.key, run_number(report.run)
        fold, held = self._folds.get(key), self._noted.of(place, key).get(0)
        if held is not None and held[0] == run and report.revision < held[1]:
            return
        if fold is not None and fold.reported(place).is_there:
            self._replace(fold, place, key, NOTHING)
            self._count(fold, key, place)
        for part in [n for n in self._parts.of(place, key) if n > report.parts]:
            self._drop_part(self._fold(key), place, key, part)
        self._tidy(key)
        self._drop_note(place, key)
        if self._noted.admits(place, key, 0, 0):
            self._noted.put(place, key, 0, (run, report.revision, 0))
            self._digests.add(place, key, run, report.revision)

    def _drop_note(self, place: int, key: MailKey) -> None:
        said = self._noted.take(place, key, 0)
        if said is not None:
            self._digests.remove(place, key, said[0], said[1])

    def _taken_from(self, place: int) -> tuple[int, int]:
        return taken_from(room_of(self._below(self._names[place])))

    def _finds_room(self, place: int, part: ReportPart, size: int) -> bool:
        """Whether a part finds room, if need be in that of what former runs of the child said."""
        if self._parts.admits(place, part.key, part.part, size):
            return True
        if place in self._emptied or not self._digests.has_void(place):
            return False
        self._emptied.add(place)
        for key in self._parts.placements(place):
            fold = self._folds[key]
            for number, said in list(self._parts.of(place, key).items()):
                if not self._is_said(place, said):
                    self._parts.put(place, key, number, (said[0], said[1], 0))
                    self._collected.take(key, self._names[place], number, ())
                    fold.set_results(place, {**fold.results_of(place), number: ()})
            self.touch(key)
        return self._parts.admits(place, part.key, part.part, size)

    def _set_unsaid(self, key: MailKey, place: int, count: int) -> None:
        if self._unsaid.put(key, place, count):
            self.touch(key)

    def _was_sent(self, place: int, key: MailKey) -> bool:
        facts = self._facts(self._names[place], key)
        return facts.sent or facts.expected > 0

    def _looked_at(self, key: MailKey) -> Fold | None:
        """The placement's fold, with every child looked at that something changed for."""
        fold = self._folds.get(key)
        if fold is None:
            return None
        for place in fold.take_stale():
            self._recount(fold, key, place)
        self._tidy(key)
        return self._folds.get(key)

    def _count(self, fold: Fold, key: MailKey, place: int) -> None:
        if self._recount(fold, key, place):
            self.touch(key)

    def _recount(self, fold: Fold, key: MailKey, place: int) -> bool:
        """Count what a child counts for now; whether it is another."""
        held = fold.reported(place)
        counted = self._counted(key, place, held)
        if counted is None and held.gone:
            fold.report(place, NOTHING)
        return fold.count(place, counted)

    def _counted(self, key: MailKey, place: int, held: Reported) -> Counted | None:
        facts = self._facts(self._names[place], key)
        if not facts.expected and not facts.sent:
            return None
        match facts.presence:
            case Presence.NEVER_JOINED:
                return self._expected(_NEVER_JOINED, facts)
            case Presence.SILENT | Presence.LEFT:
                return self._expected(_UNREACHABLE, facts)
            case Presence.CATCHING_UP:
                return self._expected(_PENDING, facts)
            case Presence.IN_STEP:
                if self._digests.counts(place, held.run, held.revision):
                    return self._reported(held, facts)
                return self._expected(_PENDING, facts)

    def _reported(self, held: Reported, facts: ExpectedCounts) -> Counted:
        summary = held.summary
        if summary is None or held.gone or (facts.edge and not _is_of_one(summary)):
            # An edge is one destination: it speaks for no other, and for no less than itself.
            return self._expected(_PENDING, facts)
        rollout = facts.rollout
        answered = rollout is not None and rollout.answered
        if held.generation == facts.generation and not (answered and _tells_no_wave(summary)):
            return Counted(summary, dated=True)
        if rollout is None or not facts.expected:
            summary = reduce.as_older_generation(
                summary, "pending" if facts.expected else "leaving"
            )
        elif held.generation >= rollout.rollout_since and not (rollout.refused or answered):
            summary = reduce.as_former_step(summary, rollout.names().arms)
        else:
            return self._expected(_PENDING, facts)
        return Counted(self._shapes.shared(summary), dated=True)

    def _expected(self, one: Summary, facts: ExpectedCounts) -> Counted:
        """What counts without a report: each destination that the placement is meant for."""
        if not facts.expected:
            return Counted(reduce.EMPTY)
        worked_at = 0 if one is _NEVER_JOINED else min(facts.maintained(), facts.expected)
        waves, apart = Counter[str](), Counter[str]()
        if facts.rollout is not None:
            apart = Counter(facts.rollout.maintained()) if worked_at else apart
            waves = Counter(facts.rollout.expected()) - apart
        many = _of_waves(one, facts.expected - worked_at, waves)
        if worked_at:
            many = reduce.merge(many, _of_waves(_MAINTAINED, worked_at, apart))
        return Counted(self._shapes.shared(many))

    def _is_said(self, place: int, said: Reported | PartFigures) -> bool:
        return self._digests.counts(place, said[0], said[1])

    def _replace(self, fold: Fold, place: int, key: MailKey, said: Reported) -> None:
        """Keep a report in place of the former, in the digest too."""
        held = fold.reported(place)
        if held.is_there:
            self._digests.remove(place, key, held.run, held.revision)
        fold.report(place, said)
        if said.is_there:
            self._digests.add(place, key, said.run, said.revision)
        else:
            self._unsent.take(place, key, 0)
            self._set_unsaid(key, place, 0)

    def _drop_part(self, fold: Fold, place: int, key: MailKey, part: int) -> None:
        said = self._parts.take(place, key, part)
        assert said is not None
        self._digests.remove(place, part_key(key, part), said[0], said[1])
        self._collected.take(key, self._names[place], part, ())
        left = {n: listed for n, listed in fold.results_of(place).items() if n != part}
        fold.set_results(place, left)
        self.touch(key)

    def _at(self, child: str) -> int:
        place, names = self._place(child), self._names
        if place >= len(names):
            names.extend([""] * (place + 1 - len(names)))
        names[place] = child
        return place

    def _fold(self, key: MailKey) -> Fold:
        fold = self._folds.get(key)
        if fold is None:
            fold = self._folds[key] = Fold()
        return fold

    def _tidy(self, key: MailKey) -> None:
        """Let go of a fold in which no child has a row."""
        fold = self._folds.get(key)
        if fold is not None and fold.is_empty:
            del self._folds[key]
