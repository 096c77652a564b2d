"""What a node says of each placement: its children's reports folded, and its own added.

It is complete when all who are concerned have answered (wire.md, "Reports").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from relay.core import reduce
from relay.core.fold import NOTHING, Counted, Fold, Reported, Shapes
from relay.core.report_digest import ReportDigests, Said, size_of
from schemas.identity import MailKey
from schemas.objects import ObjectKey
from schemas.reports import (
    ARM_OLDER,
    NEVER_JOINED,
    ObjectResult,
    Report,
    ReportPart,
    State,
    Summary,
)

_PENDING = Summary({"pending": 1}, {"unknown": 1}, {ARM_OLDER: 1})
_LOST = Summary({"unreachable": 1}, {"unknown": 1}, {ARM_OLDER: 1})
_ABSENT = Summary({NEVER_JOINED: 1}, {NEVER_JOINED: 1}, {ARM_OLDER: 1})


class Facts(NamedTuple):
    """What the node knows of one child and one placement, besides the child's report.

    `bearing` is the sequence the child must have answered; None while something is still unsent.
    At `most` so many destinations can hold the placement there: every profile comes by here. It is
    so many exactly where nobody ever `joined`: that asks for no answer.
    """

    concerned: bool
    sent: bool
    bearing: int | None
    silent: bool
    edge: bool
    generation: int
    most: int
    joined: bool = True


UNCONCERNED = Facts(
    concerned=False, sent=False, bearing=None, silent=False, edge=False, generation=0, most=0
)
"""The facts of a child that has no part in a placement."""


class Reporting:
    """All reports of all children, folded by placement.

    `dirty` gathers the placements of which something else may be to be said; of `settled` the last
    child has answered that kept them from being complete. Whoever acts on them empties them.
    """

    def __init__(
        self,
        place: Callable[[str], int],
        facts: Callable[[str, MailKey], Facts],
        prefix: str = "/",
    ) -> None:
        self.dirty: dict[MailKey, None] = {}
        self.settled: dict[MailKey, None] = {}
        self._place = place
        self._facts = facts
        self._prefix = prefix
        self._names: list[str] = []
        self._folds: dict[MailKey, Fold] = {}
        self._shapes = Shapes()
        self._digests = ReportDigests()
        self._regrouped: dict[MailKey, dict[int, int]] = {}

    def digest(self, child: str) -> bytes:
        """The digest of what the child's report slots say, as the child should have it."""
        return self._digests.of(self._place(child))

    def take(self, child: str, report: Report, incarnation: str) -> bool:
        """Take a child's part 0; False if it is older than what is known.

        One on a placement that the child was not sent is not kept.
        """
        key = report.key
        facts = self._facts(child, key)
        fold, place = self._folds.get(key), self._at(child)
        stands = fold is not None and fold.stands(place)
        if fold is None or not stands:
            if not (facts.concerned or facts.sent):
                return True
            fold = self._fold(key)
        held = fold.reported(place)
        if (report.epoch, report.revision) < (held.epoch, held.revision):
            return False
        said = Reported(
            report.answered,
            report.epoch,
            report.revision,
            report.generation,
            report.summary.oldest_ms,
            report.incarnation == incarnation,
            self._shapes.shared(report.summary),
            report.gone,
        )
        fold.report(place, said)
        self._digests.keep_parts(place, key, 0 if report.gone else report.parts)
        if parts := fold.results_of(place):
            fold.set_results(place, {n: r for n, r in parts.items() if n <= report.parts})
        unsure = self._unsure(place, key, said)
        if not unsure:
            self._regrouped.get(key, {}).pop(place, None)
        was_open = fold.open
        if fold.count(place, self._counted(said, facts, unsure=unsure)):
            self.dirty[key] = None
        if was_open and not fold.open:
            self.settled[key] = self.dirty[key] = None
        self._digests.replace(place, key, _said(held), _said(fold.reported(place)))
        if not fold.stands(place):
            self._digests.keep_parts(place, key, 0)
        return True

    def take_part(self, child: str, part: ReportPart) -> None:
        """Take a child's results of some objects, if the placement was ever sent to it."""
        fold, place = self._folds.get(part.key), self._at(child)
        if fold is None or not fold.stands(place):
            facts = self._facts(child, part.key)
            if not (facts.concerned or facts.sent):
                return
            fold = self._fold(part.key)
            fold.stale(place)
        if part.epoch >= fold.reported(place).epoch:
            fold.set_results(place, {**fold.results_of(place), part.part: part.results})
            said = (part.epoch, part.revision)
            self._digests.part(place, part.key, part.part, said, size_of(part.results))
            self.dirty[part.key] = None

    def knows(self, child: str, key: MailKey) -> bool:
        """Whether the child has a say in the placement."""
        fold = self._folds.get(key)
        return fold is not None and fold.stands(self._at(child))

    def has_room(self, child: str, part: ReportPart) -> bool:
        """Whether a child has fewer and smaller later parts than it may have, with this one."""
        size = size_of(part.results)
        return self._digests.has_room(self._at(child), part.key, part.part, size)

    def refresh(self, child: str, key: MailKey) -> None:
        """Say again what a child counts for: its mail or its liveness changed."""
        self._fold(key).stale(self._at(child))
        self.dirty[key] = None

    def regrouped(self, child: str, key: MailKey, sequence: int) -> None:
        """A relay is told at this sequence of its mail that others are meant below it than before.

        Once it cannot be reached, what it said before that counts destinations that are not there,
        or not all that are.
        """
        self._regrouped.setdefault(key, {})[self._at(child)] = sequence

    def forget_child(self, child: str) -> None:
        place = self._at(child)
        for changes in self._regrouped.values():
            changes.pop(place, None)
        for key, fold in self._folds.items():
            if fold.stands(place):
                fold.count(place, None)
                self.dirty[key] = None
        self._digests.forget_child(place)

    def forget(self, key: MailKey) -> None:
        fold = self._folds.pop(key, None)
        self._regrouped.pop(key, None)
        if fold is not None:
            for place in range(len(self._names)):
                if fold.stands(place):
                    self._drop(key, place, fold.reported(place))

    def answered(self, child: str, key: MailKey) -> int:
        """The sequence that the child has answered for the placement in this run; 0 for none."""
        fold = self._folds.get(key)
        held = fold.reported(self._at(child)) if fold else NOTHING
        return held.answered if held.current else 0

    def keys_of(self, child: str) -> list[MailKey]:
        """The placements that the child has, or should have, a say in."""
        place = self._at(child)
        return [key for key, fold in self._folds.items() if fold.stands(place)]

    def summary(self, key: MailKey, own: Summary) -> Summary:
        """The node's summary: its children's and its own destination's."""
        fold = self._looked_at(key)
        if fold is None:
            return own
        total = fold.total(self._names)
        return total if own is reduce.EMPTY else reduce.merge(total, own)

    def by_child(self, key: MailKey) -> dict[str, Summary]:
        """What each child counts for now."""
        fold = self._looked_at(key)
        return dict(fold.counting(self._names)) if fold else {}

    def results(self, key: MailKey, own: Iterable[ObjectResult]) -> dict[ObjectKey, ObjectResult]:
        """The returned states of the subtree, by object."""
        fold = self._folds.get(key)
        return reduce.merge_results([*own, *(fold.results() if fold else ())])

    def _looked_at(self, key: MailKey) -> Fold | None:
        """The placement's fold, with every child looked at that something changed for."""
        fold = self._folds.get(key)
        if fold is not None:
            for place in fold.take_stale():
                facts, held = self._facts(self._names[place], key), fold.reported(place)
                counted = self._counted(held, facts, unsure=self._unsure(place, key, held))
                fold.count(place, counted)
                if counted is None:
                    self._drop(key, place, held)
        return fold

    def _drop(self, key: MailKey, place: int, held: Reported) -> None:
        """Count no more what a child said of a placement in which it has no part."""
        self._digests.replace(place, key, _said(held), None)
        self._digests.keep_parts(place, key, 0)

    def _unsure(self, place: int, key: MailKey, held: Reported) -> bool:
        """Whether a child has not answered yet for who is meant below it."""
        told = self._regrouped.get(key, {}).get(place)
        return told is not None and not (held.current and held.answered >= told)

    def _counted(self, held: Reported, facts: Facts, *, unsure: bool) -> Counted | None:
        if not facts.concerned and not facts.sent:
            return None
        return self._heard(held, facts, unsure=unsure) if facts.joined else self._absent(facts)

    def _absent(self, facts: Facts) -> Counted:
        """What counts for a child as which nobody ever ran: there is no one to answer."""
        absent = reduce.times(_ABSENT, facts.most) if facts.most else reduce.EMPTY
        return Counted(self._shapes.shared(absent))

    def _heard(self, held: Reported, facts: Facts, *, unsure: bool) -> Counted:
        summary = held.said
        if summary is not None and facts.edge and summary.destinations > 1:
            summary = None  # An edge is one destination, and speaks for no other.
        if summary is not None:
            if held.generation < facts.generation:
                state: State = "pending" if facts.concerned else "leaving"
                summary = self._shapes.shared(reduce.older(summary, state))
            if facts.bearing is not None and held.current and held.answered >= facts.bearing:
                if facts.silent:
                    return Counted(self._unreachable(summary), dated=True)
                # More than there are: someone below was put back to an old copy of its disk.
                ghosts = _holding(summary) > facts.most
                return Counted(summary, dated=True, blocks=ghosts)
        if facts.silent and (facts.edge or summary is not None):
            if summary is not None and (summary.destinations or not facts.edge):
                return Counted(self._unreachable(summary), dated=True, blocks=unsure)
            # A subtree that cannot be reached: its parent counts what it must hold.
            return Counted(_LOST if facts.concerned else reduce.EMPTY)
        if facts.edge and facts.concerned and (summary is None or not summary.destinations):
            return Counted(_PENDING, blocks=True)
        return Counted(summary or reduce.EMPTY, dated=summary is not None, blocks=True)

    def _unreachable(self, summary: Summary) -> Summary:
        return self._shapes.shared(reduce.unreachable(summary))

    def _at(self, child: str) -> int:
        place, names = self._place(child), self._names
        if place >= len(names):
            names.extend([""] * (place + 1 - len(names)))
        names[place] = child
        return place

    def _fold(self, key: MailKey) -> Fold:
        fold = self._folds.get(key)
        if fold is None:
            fold = self._folds[key] = Fold(self._prefix)
        return fold


def _holding(summary: Summary) -> int:
    """How many destinations say that they hold the placement, or are about to."""
    states = summary.states
    return states.get("synced", 0) + states.get("pending", 0) + states.get("failing", 0)


def _said(held: Reported) -> Said | None:
    """Which report a row holds, as far as it counts in the digest."""
    return None if held.gone or not held.epoch else (held.epoch, held.revision)
