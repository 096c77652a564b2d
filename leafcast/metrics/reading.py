"""A figure as it is read: of which metric, with which labels, and how much."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

from relay.shell.distribution import Distribution


class MetricKind(Enum):
    """What one may do with a figure; the value is its word in Prometheus."""

    COUNTER = "counter"
    """It only grows, and begins at 0 with the process or with the run of the node."""
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"
    """Always 1: its labels are what it says."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One name: what it counts, in which unit, and by which labels."""

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...] = ()

    def of(self, value: float | Distribution, *labels: str) -> MetricReading:
        """A figure of this metric; the labels in their order."""
        assert len(labels) == len(self.labels), self.name
        # It is written by and by, and counting goes on meanwhile.
        value = value.copy() if isinstance(value, Distribution) else value
        return MetricReading(self, value, labels)

    def states(self, counts: Mapping[str, float], *labels: str) -> list[MetricReading]:
        """One figure for each value of the last label."""
        return [self.of(value, *labels, state) for state, value in counts.items()]


@dataclass(frozen=True, slots=True)
class MetricReading:
    """One figure."""

    metric: Metric
    value: float | Distribution
    labels: tuple[str, ...]


Readings: TypeAlias = Callable[[], Coroutine[Any, Any, Sequence[MetricReading]]]
"""Reads the figures as they are now."""


async def no_readings() -> Sequence[MetricReading]:
    """Of what has nothing to show."""
    return ()
