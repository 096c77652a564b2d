"""What was done at a destination and is nothing wrong: copies kept, and copies put right.

A copy is kept that nothing wants any more and that is to stay. It is told of under each placement
that claimed it, as long as it is there and that placement is in force.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from heapq import nsmallest
from typing import NamedTuple

from relay.core.destination.object_outcome import sample
from relay.core.destination.removals import ClaimHistory
from relay.core.effects import Noted
from relay.core.events import KEPT, KEPT_GONE, LEFT_IN_PLACE, ObjectObserved
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import (
    COUNT_MAX,
    KEPT_COPIES_MAX,
    Done,
    Repaired,
    RepairSample,
    Summary,
    newest_repairs,
)
from schemas.values.identity import MailKey
from schemas.values.wire import replace
from schemas.values.wording import namespace_first, repair_text


class FormerTrace(NamedTuple):
    """Whether an object was kept, and how often it was put right."""

    kept: bool
    repairs: int


class Traces:
    """The traces of one destination; the history says which placements claimed what."""

    def __init__(self, history: ClaimHistory, path: str) -> None:
        self._history = history
        self._path = path
        # Why each is kept.
        self._kept: dict[ObjectKey, str] = {}
        self._repaired: dict[ObjectKey, Repaired] = {}

    def restore(self, done: Done) -> bool:
        """Take what a former run knew of an object; whether it is kept. Why, is said again."""
        if done.repaired is not None:
            self._repaired[done.key] = done.repaired
        if done.kept:
            self._kept[done.key] = ""
        return done.kept

    def observe(self, event: ObjectObserved, *, kept: bool) -> bool:
        """Take the syncer's word on an object; whether something else is to be told of it."""
        key = event.key
        before = self._kept.get(key), self._repaired.get(key)
        if kept:
            self._kept[key] = event.reason
        else:
            self._kept.pop(key, None)
        if event.repaired is not None:
            self._repaired[key] = event.repaired
        else:
            self._repaired.pop(key, None)
        return before != (self._kept.get(key), self._repaired.get(key))

    def of(self, key: ObjectKey) -> FormerTrace:
        """What is told of an object now."""
        found = self._repaired.get(key)
        return FormerTrace(self.is_kept(key), found.count if found is not None else 0)

    def is_kept(self, key: ObjectKey) -> bool:
        """Whether nothing wants the object, and it stays."""
        return key in self._kept

    def why_kept(self, key: ObjectKey) -> str:
        """Why an object is kept, in a few words; "" if it is not, or nobody said so in this run."""
        return self._kept.get(key, "")

    def keeps(self, placement: MailKey) -> bool:
        """Whether something is kept that the placement claimed."""
        return any(placement in self._history.placements(obj) for obj in self._kept)

    def told(self, key: MailKey, claims: Container[ObjectKey], summary: Summary) -> Summary:
        """The summary of a placement with the traces of it; `claims` is what it wants here."""
        if self._kept:
            summary = self._with_kept(key, claims, summary)
        return self._with_repaired(claims, summary) if self._repaired else summary

    def _with_kept(self, key: MailKey, claims: Container[ObjectKey], summary: Summary) -> Summary:
        kept = {
            obj: why
            for obj, why in self._kept.items()
            if obj not in claims and key in self._history.placements(obj)
        }
        some = [sample(0, str(obj), why, self._path) for obj, why in kept.items()]
        least = nsmallest(KEPT_COPIES_MAX, some, key=lambda each: each.rank)
        return replace(summary, kept=len(kept), kept_copies=tuple(least))

    def _with_repaired(self, claims: Container[ObjectKey], summary: Summary) -> Summary:
        found = {obj: each for obj, each in self._repaired.items() if obj in claims}
        samples = (
            RepairSample(it.at_ms, str(obj), self._path, it.count, it.field, it.manager)
            for obj, it in found.items()
        )
        count = min(sum(each.count for each in found.values()), COUNT_MAX)
        return replace(summary, repaired=count, repairs=newest_repairs(samples))


def noted(
    event: ObjectObserved, former: FormerTrace, claimers: Sequence[MailKey]
) -> Iterator[Noted]:
    """What of an object's becoming is told to people at once: of who claims it, if anyone does."""
    key, repaired = str(event.key), event.repaired
    if event.reason.startswith(f"{LEFT_IN_PLACE}{KEPT}") and not (event.kept and former.kept):
        yield Noted("Kept", key, event.reason)
    if former.kept and not event.present:
        yield Noted("KeptGone", key, KEPT_GONE)
    if repaired is not None and repaired.count > former.repairs:
        about = min(claimers, default=key)
        said = repair_text(namespace_first(key), repaired.field, repaired.manager)
        yield Noted("Repaired", about, said)
