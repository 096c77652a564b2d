"""What a placement's objects come to at an edge: only those that changed are judged again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from heapq import nsmallest
from typing import NamedTuple

from schemas.objects.objects import ObjectKey
from schemas.reports.reports import ExceptionSample, Health, State, Summary

SAMPLES_MAX = 20

Judged = tuple[State, Health, ExceptionSample | None]
"""What becomes of one object, and what is wrong with it."""

_STATES: tuple[State, ...] = ("failing", "pending", "synced")
_HEALTH: tuple[Health, ...] = ("degraded", "progressing", "unknown", "healthy")


class PlacementOutcome(NamedTuple):
    """What becomes of a placement here; `samples`, read once, cost as much as there is wrong."""

    state: State
    health: Health
    arm: str
    samples: Iterable[ExceptionSample]

    def summary(self, now_ms: int) -> Summary:
        worst = tuple(sorted(self.samples, key=lambda sample: sample.rank)[:SAMPLES_MAX])
        return Summary({self.state: 1}, {self.health: 1}, {self.arm: 1}, worst, oldest_ms=now_ms)


class ObjectTally:
    """The objects of one placement, counted by what becomes of them."""

    def __init__(self) -> None:
        self._judged: dict[ObjectKey, Judged] = {}
        self._counts: dict[State | Health, int] = {}
        self._samples: dict[ObjectKey, ExceptionSample] = {}
        self._stale: dict[ObjectKey, None] = {}

    def mark_dirty(self, keys: Iterable[ObjectKey]) -> None:
        """Judge these objects again when the tally is asked for next."""
        self._stale.update(dict.fromkeys(keys))

    def refresh(self, judge: Callable[[ObjectKey], Judged | None]) -> None:
        """Judge again what is stale; None takes an object out."""
        for key in self._stale:
            self._count(self._judged.pop(key, None), -1)
            self._samples.pop(key, None)
            judged = judge(key)
            if judged is not None:
                self._judged[key] = judged
                self._count(judged, 1)
                if judged[2] is not None:
                    self._samples[key] = judged[2]
        self._stale = {}

    @property
    def state(self) -> State:
        """The worst of the objects; synced without any."""
        return next((state for state in _STATES if self._counts.get(state)), "synced")

    @property
    def health(self) -> Health:
        """The worst of the objects; healthy without any."""
        return next((health for health in _HEALTH if self._counts.get(health)), "healthy")

    def worst(self, most: int) -> Iterator[ExceptionSample]:
        """The first samples by rank, at most so many, looked for as they are asked for."""
        yield from nsmallest(most, self._samples.values(), key=lambda sample: sample.rank)

    def assert_invariants(self) -> None:
        """Assert that the counts are those of the objects."""
        counts = Counter(what for judged in self._judged.values() for what in judged[:2])
        assert counts == Counter(self._counts)
        samples = {key: judged[2] for key, judged in self._judged.items() if judged[2]}
        assert self._samples == samples

    def _count(self, judged: Judged | None, by: int) -> None:
        for what in judged[:2] if judged is not None else ():
            self._counts[what] = self._counts.get(what, 0) + by
