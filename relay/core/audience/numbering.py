"""Numbers for destinations: those of one child lie in one range, which has slack."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

RANGE_MIN = 4
"""The numbers of a new child's range. One that is full doubles, at the end or in a spare place."""


class Range:
    """The numbers of one child."""

    __slots__ = ("capacity", "child", "free", "index", "start", "top")

    def __init__(self, child: str, index: int, start: int, capacity: int) -> None:
        self.child = child
        # The child's place in arrays of counts; it stays when the range moves.
        self.index = index
        self.start = start
        self.capacity = capacity
        # Offsets below `top` that are not in use.
        self.free: list[int] = []
        # The lowest offset that was never in use.
        self.top = 0

    @property
    def used(self) -> int:
        return self.top - len(self.free)

    @property
    def is_full(self) -> bool:
        return self.used == self.capacity

    @property
    def stop(self) -> int:
        return self.start + self.capacity

    def take(self) -> int:
        """A number that is not in use; the range must not be full."""
        if self.free:
            return self.start + self.free.pop()
        self.top += 1
        return self.start + self.top - 1

    def give_back(self, number: int) -> None:
        self.free.append(number - self.start)

    def offsets(self) -> Iterator[int]:
        """The offsets in use, in order."""
        free = set(self.free)
        return (offset for offset in range(self.top) if offset not in free)


class Numbering:
    """The ranges of all children."""

    def __init__(self) -> None:
        self.by_child: dict[str, Range] = {}
        # All ranges by start, and their starts.
        self.ordered: list[Range] = []
        self._starts: list[int] = []
        # Capacity to the starts of places that are not in use.
        self._spare: dict[int, list[int]] = {}
        self._free_indices: list[int] = []
        # One above the highest number of any place.
        self.end = 0

    @property
    def indices(self) -> int:
        """One above the highest index of any child."""
        return len(self.by_child) + len(self._free_indices)

    def range_for(self, child: str) -> Range:
        """The child's range, made if need be."""
        held = self.by_child.get(child)
        if held is None:
            index = self._free_indices.pop() if self._free_indices else len(self.by_child)
            held = Range(child, index, self._place(RANGE_MIN), RANGE_MIN)
            self.by_child[child] = held
            self._insert(held)
        return held

    def range_at(self, number: int) -> Range:
        """The range that holds a number in use."""
        return self.ordered[bisect_right(self._starts, number) - 1]

    def widen(self, held: Range) -> int:
        """Double a range at another start; returns the former one, where nothing is any more."""
        former, capacity = held.start, held.capacity
        self._take_out(held)
        held.start, held.capacity = self._place(2 * capacity), 2 * capacity
        self._insert(held)
        self._spare.setdefault(capacity, []).append(former)
        return former

    def release(self, held: Range) -> None:
        """Forget a child whose range is not in use."""
        self._take_out(held)
        del self.by_child[held.child]
        self._free_indices.append(held.index)
        self._spare.setdefault(held.capacity, []).append(held.start)

    def assert_invariants(self) -> None:
        """Assert that places tile all numbers up to the end, and that each index is one child's."""
        assert self._starts == sorted(held.start for held in self.by_child.values())
        assert self._starts == [held.start for held in self.ordered]
        places = [(held.start, held.capacity) for held in self.ordered]
        places += [(start, size) for size, starts in self._spare.items() for start in starts]
        at = 0
        for start, size in sorted(places):
            assert start == at
            at += size
        assert at == self.end
        indices = [held.index for held in self.ordered] + self._free_indices
        assert sorted(indices) == list(range(len(indices)))
        for child, held in self.by_child.items():
            assert held.child == child
            assert 0 <= held.used <= held.top <= held.capacity
            assert len(set(held.free)) == len(held.free)
            assert all(0 <= offset < held.top for offset in held.free)

    def _place(self, capacity: int) -> int:
        spare = self._spare.get(capacity)
        if spare:
            return spare.pop()
        start = self.end
        self.end += capacity
        return start

    def _insert(self, held: Range) -> None:
        at = bisect_left(self._starts, held.start)
        self._starts.insert(at, held.start)
        self.ordered.insert(at, held)

    def _take_out(self, held: Range) -> None:
        at = bisect_left(self._starts, held.start)
        del self._starts[at], self.ordered[at]
