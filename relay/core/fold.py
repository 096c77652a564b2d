"""The fold of all children's reports on one placement, in a few dozen bytes a child.

Most children say the same, if not at once: what they say is kept once, and each child's row is some
numbers and two references. A row is counted anew only when it is asked for after a change.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from relay.core.reduce import EMPTY, merge_all, times
from schemas.reports import ObjectResult, Summary
from schemas.wire import replace

BLOCK_CHILDREN = 45
"""About the square root of the most children a relay is made for, 2,000."""
SHAPES_MAX = 128
Results = Mapping[int, tuple[ObjectResult, ...]]
"""A child's results of objects, by report part."""

_CURRENT, _COUNTS, _DATED, _BLOCKS, _OPEN, _STALE, _REPORTED, _MOVED, _GONE = (
    1 << n for n in range(9)
)
_KEPT = _CURRENT | _REPORTED | _GONE
_NUMBERS, _OLDEST = 5, 4


class Reported(NamedTuple):
    """A child's latest report; `current` if it was made in this run of the node.

    It is `gone` if it says that nothing of the placement is there.

    `said` is its summary without the oldest receipt, which is `oldest_ms`.
    """

    answered: int
    epoch: int
    revision: int
    generation: int
    oldest_ms: int
    current: bool
    said: Summary | None
    gone: bool = False


class Counted(NamedTuple):
    """What a child counts for now: a summary without its oldest receipt, and if that counts, too.

    One that `blocks` keeps the whole from being complete, and is named.
    """

    summary: Summary
    dated: bool = False
    blocks: bool = False


NOTHING = Reported(0, 0, 0, 0, 0, current=False, said=None)


class Shapes:
    """One object for equal summaries; those that nobody said for long are forgotten."""

    def __init__(self) -> None:
        self._known: dict[object, Summary] = {}
        self._before: dict[object, Summary] = {}

    def shared(self, summary: Summary) -> Summary:
        """The summary without its oldest receipt, as an object that all who say the same share."""
        counts = (summary.states, summary.health, summary.arms)
        rest = (summary.exceptions, summary.complete, summary.blocking)
        key = (*[frozenset(count.items()) for count in counts], *rest)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= SHAPES_MAX:
                self._before, self._known = self._known, {}
            known = self._before.get(key) or replace(summary, oldest_ms=0)
            self._known[key] = known
        return known


class _Block:
    """The rows of some children."""

    __slots__ = ("counted", "flags", "numbers", "said", "sum")

    def __init__(self) -> None:
        self.flags = array("H")
        self.numbers = array("q")
        self.said: list[Summary | None] = []
        self.counted: list[Summary | None] = []
        self.sum: Summary | None = EMPTY

    def reach(self, at: int) -> None:
        """Make room for the row."""
        lacking = at + 1 - len(self.flags)
        if lacking > 0:
            self.flags.extend([0] * lacking)
            self.numbers.extend([0] * (_NUMBERS * lacking))
            self.said.extend([None] * lacking)
            self.counted.extend([None] * lacking)


class Fold:
    """The rows of all children, by their places; `prefix` makes a child's name its path."""

    __slots__ = ("_blocks", "_prefix", "_results", "_stale", "_total", "open")

    def __init__(self, prefix: str) -> None:
        self.open = 0
        """How many children keep the whole from being complete, or were not looked at anew."""
        self._prefix = prefix
        self._blocks: dict[int, _Block] = {}
        self._stale: dict[int, None] = {}
        self._results: dict[int, Results] = {}
        self._total: Summary | None = EMPTY

    def reported(self, place: int) -> Reported:
        """What a child said last; NOTHING if it said nothing, or has no part in this."""
        number, at = divmod(place, BLOCK_CHILDREN)
        block = self._blocks.get(number)
        if block is None or at >= len(block.flags) or not block.flags[at] & _REPORTED:
            return NOTHING
        start = at * _NUMBERS
        answered, epoch, revision, generation, oldest = block.numbers[start : start + _NUMBERS]
        current, gone = bool(block.flags[at] & _CURRENT), bool(block.flags[at] & _GONE)
        said = block.said[at]
        return Reported(answered, epoch, revision, generation, oldest, current, said, gone)

    def stands(self, place: int) -> bool:
        """Whether a child has a row: it counts, or was to be looked at."""
        number, at = divmod(place, BLOCK_CHILDREN)
        block = self._blocks.get(number)
        return block is not None and at < len(block.flags) and block.flags[at] != 0

    def report(self, place: int, said: Reported) -> None:
        """Keep what a child said; what it counts for is not changed by it."""
        block, at = self._row(place)
        start, flags = at * _NUMBERS, block.flags[at] & ~(_CURRENT | _GONE) | _REPORTED
        flags |= said.gone and _GONE
        if block.numbers[start + _OLDEST] != said.oldest_ms:
            flags |= _MOVED
        numbers = (said.answered, said.epoch, said.revision, said.generation, said.oldest_ms)
        block.numbers[start : start + _NUMBERS] = array("q", numbers)
        block.said[at] = said.said
        block.flags[at] = flags | _CURRENT if said.current else flags

    def stale(self, place: int) -> None:
        """Look at a child anew when the whole is asked for next."""
        block, at = self._row(place)
        flags = block.flags[at]
        if not flags & _STALE:
            self._stale[place] = None
            self.open += not flags & _OPEN
            block.flags[at] = flags | _STALE | _OPEN

    def take_stale(self) -> list[int]:
        """The places that `count` is to be called for; none are left."""
        taken, self._stale = list(self._stale), {}
        return taken

    def count(self, place: int, counted: Counted | None) -> bool:
        """Set what a child counts for; without anything the row goes. Whether it is another."""
        block, at = self._row(place)
        flags = block.flags[at]
        if flags & _STALE:
            self._stale.pop(place, None)
        if counted is None:
            self.open -= bool(flags & _OPEN)
            changed = bool(flags & _COUNTS)
            block.flags[at], block.said[at], block.counted[at] = 0, None, None
            self._results.pop(place, None)
        else:
            now = flags & _KEPT | _COUNTS
            now |= (counted.dated and _DATED) | (counted.blocks and _BLOCKS)
            now |= _OPEN if counted.blocks or not counted.summary.complete else 0
            self.open += bool(now & _OPEN) - bool(flags & _OPEN)
            mask = _COUNTS | _BLOCKS | _DATED
            moved = bool(flags & _MOVED and now & _DATED)
            changed = moved or now & mask != flags & mask or block.counted[at] != counted.summary
            block.flags[at], block.counted[at] = now, counted.summary
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

    def results(self) -> Iterator[ObjectResult]:
        """All children's results."""
        for parts in self._results.values():
            for listed in parts.values():
                yield from listed

    def counting(self, names: Sequence[str]) -> Iterator[tuple[str, Summary]]:
        """Each child that counts for something, by name, and for what."""
        for number, block in self._blocks.items():
            for at, summary in enumerate(block.counted):
                if summary is not None:
                    name = names[number * BLOCK_CHILDREN + at]
                    yield name, self._whole(block, at, summary, name)

    def total(self, names: Sequence[str]) -> Summary:
        """The fold over all children."""
        if self._total is None:
            for number, block in self._blocks.items():
                if block.sum is None:
                    block.sum = self._sum(block, number * BLOCK_CHILDREN, names)
            self._total = merge_all(b.sum for b in self._blocks.values() if b.sum is not None)
        return self._total

    def _row(self, place: int) -> tuple[_Block, int]:
        number, at = divmod(place, BLOCK_CHILDREN)
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = _Block()
        block.reach(at)
        return block, at

    def _whole(self, block: _Block, at: int, summary: Summary, name: str) -> Summary:
        flags = block.flags[at]
        oldest = block.numbers[at * _NUMBERS + _OLDEST] if flags & _DATED else 0
        if flags & _BLOCKS:
            blocking = (f"{self._prefix}{name}",)
            return replace(summary, oldest_ms=oldest, complete=False, blocking=blocking)
        return replace(summary, oldest_ms=oldest)

    def _sum(self, block: _Block, first: int, names: Sequence[str]) -> Summary:
        """The fold over a block: equal summaries are counted, then added once."""
        same: dict[int, tuple[Summary, int]] = {}
        alone: list[Summary] = []
        oldest = 0
        for at, summary in enumerate(block.counted):
            if summary is None:
                continue
            flags = block.flags[at]
            if flags & _BLOCKS:
                alone.append(self._whole(block, at, summary, names[first + at]))
                continue
            if flags & _DATED:
                dated = block.numbers[at * _NUMBERS + _OLDEST]
                oldest = min(oldest, dated) if oldest and dated else oldest or dated
            known = same.get(id(summary))
            same[id(summary)] = (summary, known[1] + 1 if known else 1)
        together = [times(summary, count) for summary, count in same.values()]
        total = merge_all((*together, *alone))
        if oldest and (not total.oldest_ms or oldest < total.oldest_ms):
            return replace(total, oldest_ms=oldest)
        return total
