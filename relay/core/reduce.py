"""The fold on the way up: an associative, commutative merge with an identity, in blocks.

Keep-sets are the k least under an order that merging cannot change, so a sum in a kept entry is
exact: whoever dropped an entry held k smaller ones, and so the merge drops it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from schemas.objects import ObjectKey
from schemas.reports import (
    ARM_OLDER,
    BLOCKING_MAX,
    EXCEPTIONS_MAX,
    ExceptionSample,
    ObjectResult,
    State,
    Summary,
)
from schemas.shape import INT_MAX

EMPTY = Summary()
COUNT_MAX = INT_MAX
"""Where sums stop, so that whatever a child counts, the sum can be said."""
BLOCK_CHILDREN = 45
"""About the square root of the most children a relay is made for, 2,000."""


def merge(first: Summary, second: Summary) -> Summary:
    """The summary of two disjoint sets of destinations."""
    return merge_all((first, second))


def merge_all(summaries: Iterable[Summary]) -> Summary:
    """The summary of disjoint sets; EMPTY of none."""
    states: dict[str, int] = {}
    health: dict[str, int] = {}
    arms: dict[str, int] = {}
    samples: dict[tuple[int, str, str], ExceptionSample] = {}
    blocking: set[str] = set()
    oldest, complete = 0, True
    for summary in summaries:
        _add(states, summary.states)
        _add(health, summary.health)
        _add(arms, summary.arms)
        for sample in summary.exceptions:
            _keep(samples, sample)
        blocking.update(summary.blocking)
        complete = complete and summary.complete
        if summary.oldest_ms and (not oldest or summary.oldest_ms < oldest):
            oldest = summary.oldest_ms
    worst = sorted(samples.values(), key=lambda sample: sample.rank)[:EXCEPTIONS_MAX]
    named = tuple(sorted(blocking)[:BLOCKING_MAX])
    return Summary(states, health, arms, tuple(worst), oldest, complete, named)


def unreachable(summary: Summary) -> Summary:
    """What counts for a subtree that is silent: its destinations, of which nothing is known now."""
    total = min(summary.destinations, COUNT_MAX)
    states, health = ({"unreachable": total}, {"unknown": total}) if total else ({}, {})
    return replace(summary, states=states, health=health, complete=True, blocking=())


def older(summary: Summary, state: State) -> Summary:
    """What counts of a summary of an older generation: who was synced then is in `state` now."""
    total = min(summary.destinations, COUNT_MAX)
    states = dict(summary.states)
    if former := states.pop("synced", 0):
        states[state] = min(states.get(state, 0) + former, COUNT_MAX)
    return replace(summary, states=states, arms={ARM_OLDER: total} if total else {})


def merge_results(results: Iterable[ObjectResult]) -> dict[ObjectKey, ObjectResult]:
    """Per object the exact state while one destination holds it, else only how many do."""
    merged: dict[ObjectKey, ObjectResult] = {}
    for result in results:
        held = merged.get(result.key)
        if not result.count:
            continue
        if held is None:
            merged[result.key] = result
        else:
            count = min(held.count + result.count, COUNT_MAX)
            merged[result.key] = ObjectResult(result.key, count)
    return merged


class Folded(Protocol):
    """Something that counts for a summary, or for nothing at the moment."""

    effective: Summary | None


Entry = TypeVar("Entry", bound=Folded)


class BlockFold(Generic[Entry]):
    """The fold over many children, so that one change costs about √n merges.

    Each child has its block by its place; a block is merged again only when one of its children
    changed. `place` gives each child a small number of its own.
    """

    def __init__(self, place: Callable[[str], int]) -> None:
        self._place = place
        self._blocks: dict[int, dict[str, Entry]] = {}
        self._folded: dict[int, Summary] = {}
        self._total: Summary | None = EMPTY

    def get(self, child: str) -> Entry | None:
        return self._blocks.get(self._place(child) // BLOCK_CHILDREN, {}).get(child)

    def put(self, child: str, entry: Entry | None) -> None:
        """Set a child's entry, or take the child out; also to say that the entry changed."""
        at = self._place(child) // BLOCK_CHILDREN
        block = self._blocks.setdefault(at, {})
        if entry is not None:
            block[child] = entry
        elif block.pop(child, None) is None:
            return
        self._folded.pop(at, None)
        self._total = None

    def entries(self) -> Iterator[tuple[str, Entry]]:
        for block in self._blocks.values():
            yield from block.items()

    def total(self) -> Summary:
        """The fold over all children."""
        if self._total is None:
            for at, block in self._blocks.items():
                if at not in self._folded:
                    self._folded[at] = merge_all(
                        entry.effective for entry in block.values() if entry.effective is not None
                    )
            self._total = merge_all(self._folded.values())
        return self._total


def _add(counts: dict[str, int], more: Mapping[str, int]) -> None:
    for key, count in more.items():
        if count:
            counts[key] = min(counts.get(key, 0) + count, COUNT_MAX)


def _keep(samples: dict[tuple[int, str, str], ExceptionSample], sample: ExceptionSample) -> None:
    key = (sample.severity, sample.object, sample.reason)
    held = samples.get(key)
    if held is None:
        samples[key] = sample
    else:
        path = min(held.path, sample.path)
        count = min(held.count + sample.count, COUNT_MAX)
        samples[key] = replace(held, count=count, path=path)
