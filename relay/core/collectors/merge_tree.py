"""The merge over many children, of which one changed at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

WIDTH = 8
"""A change costs so many merges at each of log(children) levels."""

T = TypeVar("T")


class MergeTree(Generic[T]):
    """One value for each child that has one, and their merge."""

    def __init__(self, merge: Callable[[Sequence[T]], T]) -> None:
        self._merge = merge
        self._places: dict[str, int] = {}
        self._free: list[int] = []
        # The children's values, above them the merges of WIDTH each, up to one.
        self._levels: list[list[T | None]] = [[]]
        self._dirty: set[int] = set()

    def get(self, child: str) -> T | None:
        """What a child has."""
        place = self._places.get(child)
        return None if place is None else self._levels[0][place]

    def set(self, child: str, value: T | None) -> None:
        """Put a child's value in place of the one before; None takes it out."""
        leaves, place = self._levels[0], self._places.get(child)
        if place is None:
            if value is None:
                return
            place = self._free.pop() if self._free else len(leaves)
            self._places[child] = place
            if place == len(leaves):
                leaves.append(None)
        elif value is None:
            del self._places[child]
            self._free.append(place)
        leaves[place] = value
        self._dirty.add(place // WIDTH)

    def total(self) -> T | None:
        """The merge of all; None of none."""
        level, dirty = 0, self._dirty
        while len(self._levels[level]) > 1:
            lower = self._levels[level]
            if level + 1 == len(self._levels):
                self._levels.append([])
            upper = self._levels[level + 1]
            upper.extend([None] * (-(-len(lower) // WIDTH) - len(upper)))
            for group in dirty:
                there = [v for v in lower[group * WIDTH : (group + 1) * WIDTH] if v is not None]
                upper[group] = self._merge(there) if there else None
            dirty = {group // WIDTH for group in dirty}
            level += 1
        self._dirty = set()
        return self._levels[level][0] if self._levels[level] else None

    def assert_invariants(self) -> None:
        """Assert that the total is the merge of what is there."""
        there = [value for value in self._levels[0] if value is not None]
        assert len(there) == len(self._places)
        assert self.total() == (self._merge(there) if there else None)
