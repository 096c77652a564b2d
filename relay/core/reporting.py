"""What a node says of each placement: its children's reports folded, and its own added.

It is complete when all who are concerned have answered (wire.md, "Reports").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from relay.core import reduce
from relay.core.reduce import BlockFold
from schemas.identity import MailKey
from schemas.objects import ObjectKey
from schemas.reports import ARM_OLDER, ObjectResult, Report, ReportPart, Summary

INTERNED_MAX = 4096


@dataclass(frozen=True, slots=True)
class Facts:
    """What the node knows of one child and one placement, besides the child's report.

    `bearing` is the sequence the child must have answered; None while something is still unsent.
    """

    concerned: bool
    sent: bool
    bearing: int | None
    silent: bool
    edge: bool
    path: str
    generation: int


def unconcerned(path: str) -> Facts:
    """The facts of a child that has no part in a placement."""
    return Facts(
        concerned=False, sent=False, bearing=None, silent=False, edge=False, path=path, generation=0
    )


@dataclass(slots=True)
class ChildReport:
    """A child's latest report on one placement; `effective` is what it counts for now."""

    answered: int = 0
    current: bool = False
    epoch: int = 0
    revision: int = 0
    generation: int = 0
    summary: Summary | None = None
    effective: Summary | None = None
    results: dict[int, tuple[ObjectResult, ...]] | None = None


class Reporting:
    """All reports of all children, folded by placement."""

    def __init__(self, place: Callable[[str], int], facts: Callable[[str, MailKey], Facts]) -> None:
        self.dirty: dict[MailKey, None] = {}
        self._place = place
        self._facts = facts
        self._folds: dict[MailKey, BlockFold[ChildReport]] = {}
        self._interned: dict[frozenset[tuple[str, int]], Mapping[str, int]] = {}

    def take(self, child: str, report: Report, incarnation: str) -> bool:
        """Take a child's part 0; False if it is older than what is known.

        One on a placement that the child was not sent is not kept.
        """
        if not self._may_speak(child, report.key):
            return True
        fold = self._fold(report.key)
        held = fold.get(child) or ChildReport()
        if (report.epoch, report.revision) < (held.epoch, held.revision):
            return False
        held.answered, held.current = report.answered, report.incarnation == incarnation
        held.epoch, held.revision = report.epoch, report.revision
        held.generation = report.generation
        held.summary = self._intern(report.summary)
        if held.results is not None:
            held.results = {n: r for n, r in held.results.items() if n <= report.parts}
        fold.put(child, held)
        self.refresh(child, report.key)
        return True

    def take_part(self, child: str, part: ReportPart) -> None:
        """Take a child's results of some objects, if the placement was ever sent to it."""
        if not self._may_speak(child, part.key):
            return
        fold = self._fold(part.key)
        held = fold.get(child) or ChildReport()
        if part.epoch >= held.epoch:
            held.results = {**(held.results or {}), part.part: part.results}
            fold.put(child, held)
            self.dirty[part.key] = None

    def refresh(self, child: str, key: MailKey) -> None:
        """Say again what a child counts for: its report, its mail or its liveness changed."""
        fold = self._fold(key)
        held = fold.get(child)
        facts = self._facts(child, key)
        effective = self._effective(held, facts)
        if held is None and effective is None:
            return
        held = held or ChildReport()
        if effective is None:
            fold.put(child, None)
        elif held.effective != effective or fold.get(child) is None:
            held.effective = effective if effective is held.summary else self._intern(effective)
            fold.put(child, held)
        else:
            return
        self.dirty[key] = None

    def forget_child(self, child: str) -> None:
        for key, fold in self._folds.items():
            if fold.get(child) is not None:
                fold.put(child, None)
                self.dirty[key] = None

    def forget(self, key: MailKey) -> None:
        self._folds.pop(key, None)

    def answered(self, child: str, key: MailKey) -> int:
        """The sequence that the child has answered for the placement in this run; 0 for none."""
        fold = self._folds.get(key)
        held = fold.get(child) if fold else None
        return held.answered if held is not None and held.current else 0

    def keys_of(self, child: str) -> list[MailKey]:
        """The placements that the child has, or should have, a say in."""
        return [key for key, fold in self._folds.items() if fold.get(child) is not None]

    def summary(self, key: MailKey, own: Summary) -> Summary:
        """The node's summary: its children's and its own destination's."""
        fold = self._folds.get(key)
        return reduce.merge(fold.total(), own) if fold else own

    def by_child(self, key: MailKey) -> dict[str, Summary]:
        """What each child counts for now."""
        fold = self._folds.get(key)
        entries = fold.entries() if fold else ()
        return {name: held.effective for name, held in entries if held.effective is not None}

    def results(self, key: MailKey, own: Iterable[ObjectResult]) -> dict[ObjectKey, ObjectResult]:
        """The returned states of the subtree, by object."""
        fold = self._folds.get(key)
        found = list(own)
        for _, held in fold.entries() if fold else ():
            for part in (held.results or {}).values():
                found.extend(part)
        return reduce.merge_results(found)

    def _may_speak(self, child: str, key: MailKey) -> bool:
        """Whether the child was ever sent the placement, so that no child fills this node."""
        fold = self._folds.get(key)
        if fold is not None and fold.get(child) is not None:
            return True
        facts = self._facts(child, key)
        return facts.concerned or facts.sent

    def _effective(self, held: ChildReport | None, facts: Facts) -> Summary | None:
        if not facts.concerned and not facts.sent:
            return None
        summary = held.summary if held else None
        if held is not None and summary is not None:
            if held.generation < facts.generation:
                summary = reduce.older(summary, "pending" if facts.concerned else "leaving")
            answered = facts.bearing is not None and held.current
            if answered and held.answered >= (facts.bearing or 0):
                return reduce.unreachable(summary) if facts.silent else summary
        if facts.silent and (facts.edge or summary is not None):
            return self._silent(summary, facts)
        if facts.edge and facts.concerned and (summary is None or not summary.destinations):
            summary = Summary({"pending": 1}, {"unknown": 1}, {ARM_OLDER: 1})
        return replace(summary or reduce.EMPTY, complete=False, blocking=(facts.path,))

    def _silent(self, summary: Summary | None, facts: Facts) -> Summary:
        """A subtree that cannot be reached: its parent counts what it must hold."""
        if summary is not None and (summary.destinations or not facts.edge):
            return reduce.unreachable(summary)
        if facts.concerned:
            return Summary({"unreachable": 1}, {"unknown": 1}, {ARM_OLDER: 1})
        return reduce.EMPTY

    def _fold(self, key: MailKey) -> BlockFold[ChildReport]:
        fold = self._folds.get(key)
        if fold is None:
            fold = self._folds[key] = BlockFold(self._place)
        return fold

    def _intern(self, summary: Summary) -> Summary:
        """The summary with one object for equal counts: most edges say the same, if not at once."""
        states, health, arms = map(self._shared, (summary.states, summary.health, summary.arms))
        return replace(summary, states=states, health=health, arms=arms)

    def _shared(self, counts: Mapping[str, int]) -> Mapping[str, int]:
        if len(self._interned) > INTERNED_MAX:
            self._interned.clear()
        return self._interned.setdefault(frozenset(counts.items()), counts)
