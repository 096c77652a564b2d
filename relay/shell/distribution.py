"""How often something took how long: counts by bounds, as a histogram of Prometheus has them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple


class Exemplar(NamedTuple):
    """The last observation within a bound, and whose it was."""

    trace: str
    seconds: float
    at_ms: int


class Distribution:
    """Counts of observations by their bounds; an observation at a bound is within it."""

    __slots__ = ("bounds", "counts", "exemplars", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        # By bound, and at last those beyond all of them.
        self.counts = [0] * (len(self.bounds) + 1)
        self.exemplars: list[Exemplar | None] = [None] * len(self.counts)
        self.sum = 0.0

    def observe(self, seconds: float, trace: str = "", at_ms: int = 0) -> None:
        """Count one; with a trace it is the exemplar of its bound."""
        at = bisect_left(self.bounds, seconds)
        self.counts[at] += 1
        self.sum += seconds
        if trace:
            self.exemplars[at] = Exemplar(trace, seconds, at_ms)

    def copy(self) -> Distribution:
        """What was counted by now."""
        made = Distribution(self.bounds)
        made.counts, made.exemplars, made.sum = [*self.counts], [*self.exemplars], self.sum
        return made

    @property
    def total(self) -> int:
        """How many observations there were."""
        return sum(self.counts)
