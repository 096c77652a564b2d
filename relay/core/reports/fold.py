"""The fold of all children's reports on one placement, in a few dozen bytes a child.

Most children say the same, if not at once: what they say is kept once, and each child's row is some
numbers and two references. A row is counted anew only when it is asked for after a change.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from relay.core.reports.reduce import EMPTY, merge_all, repeated
from schemas.reports.reports import ObjectResult, Summary
from schemas.values.wire import replace

BLOCK_CHILDREN = 45
"""About the square root of the most children a relay is made for, 2,000."""
SHAPES_MAX = 128
Results = Mapping[int, tuple[ObjectResult, ...]]
"""A child's results of objects, by report part."""

_COUNTS, _DATED, _STALE, _REPORTED, _MOVED, _GONE = (1 << n for n in range(6))
_KEPT = _REPORTED | _GONE
_NUMBERS, _OLDEST = 4, 3


class Reported(NamedTuple):
    """A child's latest report."""

    # The run that made it, as a number.
    run: int
    revision: int
    generation: int
    # The oldest receipt, milliseconds since 1970; 0 for none.
    oldest_ms: int
    # The summary without its oldest receipt.
    summary: Summary | None
    # It says that nothing of the placement is there.
    gone: bool = False

    @property
    def is_there(self) -> bool:
        return self.summary is not None and not self.gone


class Counted(NamedTuple):
    """What a child counts for now."""

    # Without its oldest receipt.
    summary: Summary
    # Whether the reported oldest receipt counts, too.
    dated: bool = False


NOTHING = Reported(0, 0, 0, 0, None)


class Shapes:
    """One object for equal summaries; those that nobody said for long are forgotten."""

    def __init__(self) -> None:
        self._known: dict[object, Summary] = {}
        self._before: dict[object, Summary] = {}

    def shared(self, summary: Summary) -> Summary:
        """The summary without its oldest receipt, as an object that all who say the same share."""
        counts = (summary.states, summary.health, summary.arms, summary.cells)
        traces = (summary.kept, summary.kept_copies, summary.repaired, summary.repairs)
        key = (*[frozenset(count.items()) for count in counts], summary.exceptions, traces)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= SHAPES_MAX:
                self._before, self._known = self._known, {}
            known = self._before.get(key) or replace(summary, oldest_ms=0)
            self._known[key] = known
        return known


class _Block:
    """The rows of some children."""

    __slots__ = ("counted", "flags", "numbers", "sum", "summaries")

    def __init__(self) -> None:
        self.flags = array("B")
        self.numbers = array("q")
        self.summaries: list[Summary | None] = []
        self.counted: list[Summary | None] = []
        self.sum: Summary | None = EMPTY

    def reach(self, at: int) -> None:
        """Make room for the row."""
        lacking = at + 1 - len(self.flags)
        if lacking > 0:
            self.flags.extend([0] * lacking)
            self.numbers.extend([0] * (_NUMBERS * lacking))
            self.summaries.extend([None] * lacking)
            self.counted.extend([None] * lacking)


class Fold:
    """The rows of all children, by their places."""

    __slots__ = ("_blocks", "_results", "_rows", "_stale", "_total")

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._stale: dict[int, None] = {}
        self._results: dict[int, Results] = {}
        self._total: Summary | None = EMPTY
        # How many children have a row.
        self._rows = 0

    @property
    def is_empty(self) -> bool:
        """Whether no child has a row, or results."""
        return not self._rows and not self._results

    def reported(self, place: int) -> Reported:
        """What a child said last; NOTHING if it said nothing."""
        number, at = divmod(place, BLOCK_CHILDREN)
        block = self._blocks.get(number)
        if block is None or at >= len(block.flags) or not block.flags[at] & _REPORTED:
            return NOTHING
        start = at * _NUMBERS
        run, revision, generation, oldest = block.numbers[start : start + _NUMBERS]
        gone = bool(block.flags[at] & _GONE)
        return Reported(run, revision, generation, oldest, block.summaries[at], gone)

    def has_row(self, place: int) -> bool:
        """Whether a child has a row: it counts or reported, or is to be looked at."""
        number, at = divmod(place, BLOCK_CHILDREN)
        block = self._blocks.get(number)
        return block is not None and at < len(block.flags) and block.flags[at] != 0

    def report(self, place: int, said: Reported) -> None:
        """Keep what a child said, NOTHING if it is void; what it counts for stays."""
        block, at = self._row(place)
        start, before = at * _NUMBERS, block.flags[at]
        flags = before & ~_KEPT
        if said.summary is not None:
            flags |= _REPORTED | (said.gone and _GONE)
            if block.numbers[start + _OLDEST] != said.oldest_ms:
                flags |= _MOVED
        numbers = (said.run, said.revision, said.generation, said.oldest_ms)
        block.numbers[start : start + _NUMBERS] = array("q", numbers)
        block.summaries[at] = said.summary
        self._set(block, at, flags)

    def mark_dirty(self, place: int) -> None:
        """Look at a child anew when the whole is asked for next."""
        block, at = self._row(place)
        if not block.flags[at] & _STALE:
            self._stale[place] = None
            self._set(block, at, block.flags[at] | _STALE)

    def take_stale(self) -> list[int]:
        """The places that `count` is to be called for; none are left."""
        taken, self._stale = list(self._stale), {}
        return taken

    def count(self, place: int, counted: Counted | None) -> bool:
        """Set what a child counts for, None for nothing. Whether it is another."""
        block, at = self._row(place)
        flags = block.flags[at]
        if flags & _STALE:
            self._stale.pop(place, None)
        now = flags & _KEPT
        if counted is None:
            changed = bool(flags & _COUNTS)
            block.counted[at] = None
        else:
            now |= _COUNTS | (counted.dated and _DATED)
            mask = _COUNTS | _DATED
            moved = bool(flags & _MOVED and now & _DATED)
            changed = moved or now & mask != flags & mask or block.counted[at] != counted.summary
            block.counted[at] = counted.summary
        self._set(block, at, now)
        if changed:
            block.sum = self._total = None
        return changed

    def results_of(self, place: int) -> Results:
        return self._results.get(place, {})

    def set_results(self, place: int, results: Results) -> None:
        """Keep a child's results of objects; few placements want any."""
        if results:
            self._results[place] = results
        else:
            self._results.pop(place, None)

    def results(self) -> Iterator[tuple[int, Iterable[ObjectResult]]]:
        """Each child's results of objects, with its place."""
        for place, parts in self._results.items():
            yield place, chain.from_iterable(parts.values())

    def counting(self, names: Sequence[str], state: str = "") -> Iterator[tuple[str, Summary]]:
        """Each child, by name, that counts for something, or some in a state, and for what."""
        for number, block in self._blocks.items():
            for at, summary in enumerate(block.counted):
                if summary is not None and (not state or summary.states.get(state)):
                    dated = replace(summary, oldest_ms=_oldest(block, at))
                    yield names[number * BLOCK_CHILDREN + at], dated

    def total(self) -> Summary:
        """The fold over all children."""
        if self._total is None:
            for block in self._blocks.values():
                if block.sum is None:
                    block.sum = _sum(block)
            self._total = merge_all(b.sum for b in self._blocks.values() if b.sum is not None)
        return self._total

    def assert_invariants(self) -> None:
        """Assert that sums and rows agree."""
        rows = 0
        for number, block in self._blocks.items():
            assert len(block.flags) == len(block.summaries) == len(block.counted)
            assert block.sum is None or block.sum == _sum(block)
            for at, flags in enumerate(block.flags):
                rows += flags != 0
                assert (block.counted[at] is not None) == bool(flags & _COUNTS)
                assert (block.summaries[at] is not None) == bool(flags & _REPORTED)
                assert bool(flags & _STALE) <= (number * BLOCK_CHILDREN + at in self._stale)
        assert rows == self._rows
        assert self._total is None or self._total == merge_all(map(_sum, self._blocks.values()))

    def _row(self, place: int) -> tuple[_Block, int]:
        number, at = divmod(place, BLOCK_CHILDREN)
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = _Block()
        block.reach(at)
        return block, at

    def _set(self, block: _Block, at: int, flags: int) -> None:
        self._rows += bool(flags) - bool(block.flags[at])
        block.flags[at] = flags


def _oldest(block: _Block, at: int) -> int:
    """The oldest receipt that counts in a row."""
    return block.numbers[at * _NUMBERS + _OLDEST] if block.flags[at] & _DATED else 0


def _sum(block: _Block) -> Summary:
    """The fold over a block: equal summaries are counted, then added once."""
    same: dict[int, tuple[Summary, int]] = {}
    oldest = 0
    for at, summary in enumerate(block.counted):
        if summary is None:
            continue
        dated = _oldest(block, at)
        oldest = min(oldest, dated) if oldest and dated else oldest or dated
        known = same.get(id(summary))
        same[id(summary)] = (summary, known[1] + 1 if known else 1)
    total = merge_all(repeated(summary, count) for summary, count in same.values())
    return replace(total, oldest_ms=oldest)
