"""For how many destinations of each child one list of alternatives is meant."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import TypeAlias

from schemas.records.records import OVER_LOCATION, Alternative
from schemas.values.identity import MailKey

Counts: TypeAlias = "array[int]"
"""Numbers of destinations by child index, 4 bytes each; what lies beyond the end is 0."""


def changed_indices(before: Counts, after: Counts) -> Iterator[int]:
    """The indices whose counts differ."""
    pairs = zip_longest(before, after, fillvalue=0)
    return (index for index, (old, new) in enumerate(pairs) if old != new)


class Selection:
    """The alternatives of one or several placements, and their counts."""

    __slots__ = (
        "_over_location",
        "_over_target",
        "alternatives",
        "before",
        "children",
        "counts",
        "placements",
    )

    def __init__(self, alternatives: tuple[Alternative, ...]) -> None:
        self.alternatives = alternatives
        # Those of them that select by the destination's own labels, and by a Location's.
        self._over_target = [item for item in alternatives if item.over != OVER_LOCATION]
        self._over_location = [item for item in alternatives if item.over == OVER_LOCATION]
        # The placements that have these alternatives, in the order they came.
        self.placements: dict[MailKey, None] = {}
        self.counts: Counts = array("I")
        # The children that are counted, once someone asked; None since the counts changed.
        self.children: tuple[str, ...] | None = None
        # Child index to its count at the last drain, of those that changed since.
        self.before: dict[int, int] = {}

    def selects_target(self, space: str, labels: Mapping[str, str]) -> bool:
        """Whether a destination is selected by its own labels."""
        return _selects(self._over_target, space, labels)

    def selects_location(self, space: str, labels: Mapping[str, str]) -> bool:
        """Whether a Location with these labels is selected."""
        return _selects(self._over_location, space, labels)

    def count(self, index: int) -> int:
        return self.counts[index] if index < len(self.counts) else 0

    def add(self, index: int, number: int) -> None:
        """Count so many destinations of a child more."""
        if index >= len(self.counts):
            self.counts.extend([0] * (index + 1 - len(self.counts)))
        self.before.setdefault(index, self.counts[index])
        self.counts[index] += number
        self.children = None

    def set_counts(self, counts: Counts) -> None:
        """Replace all counts."""
        for index in changed_indices(self.counts, counts):
            self.before.setdefault(index, self.count(index))
        self.counts, self.children = counts, None

    def drained_counts(self) -> Counts:
        """The counts as they were at the last drain."""
        counts = self.counts[:]
        for index, count in self.before.items():
            if index < len(counts):
                counts[index] = count
        return counts

    def drain(self) -> list[int]:
        """The child indices whose counts differ from those at the last drain."""
        before, self.before = self.before, {}
        return [index for index, count in before.items() if count != self.count(index)]


def _selects(items: Iterable[Alternative], space: str, labels: Mapping[str, str]) -> bool:
    return any(item.selects(space, labels) for item in items)
