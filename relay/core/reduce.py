"""The fold on the way up: an associative, commutative merge with an identity, in blocks.

Keep-sets are the k least under an order that merging cannot change, so a sum in a kept entry is
exact: whoever dropped an entry held k smaller ones, and so the merge drops it, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from schemas.objects import ObjectKey
from schemas.reports import (
    ARM_OLDER,
    BLOCKING_MAX,
    EXCEPTIONS_MAX,
    ExceptionSample,
    ObjectResult,
    Summary,
)

EMPTY = Summary()


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
    """The last known summary of a subtree that is silent: counted, its health as last known."""
    total = summary.destinations
    states = {"unreachable": total} if total else {}
    return replace(summary, states=states, complete=True, blocking=())


def older(summary: Summary) -> Summary:
    """A summary made of an older generation of the placement."""
    total = summary.destinations
    return replace(summary, arms={ARM_OLDER: total} if total else {})


def merge_results(results: Iterable[ObjectResult]) -> dict[ObjectKey, ObjectResult]:
    """Per object the exact state while one destination holds it, else only how many do."""
    merged: dict[ObjectKey, ObjectResult] = {}
    for result in results:
        held = merged.get(result.key)
        if held is None or not held.count:
            merged[result.key] = result
        elif result.count:
            merged[result.key] = ObjectResult(result.key, held.count + result.count)
    return merged


class BlockFold:
    """The fold over many children's summaries, so that one change costs about √n merges.

    Children keep their place; blocks are merged again only when one of theirs changed.
    """

    def __init__(self) -> None:
        self._summaries: dict[str, Summary] = {}
        self._block_of: dict[str, int] = {}
        self._blocks: list[dict[str, Summary]] = []
        self._folded: list[Summary | None] = []
        self._total: Summary | None = EMPTY

    def put(self, child: str, summary: Summary | None) -> None:
        """Set a child's summary, or take the child out."""
        if self._summaries.get(child) is summary:
            return
        block = self._place(child)
        self._folded[block] = None
        self._total = None
        if summary is None:
            self._summaries.pop(child, None)
            self._blocks[block].pop(child, None)
            self._block_of.pop(child, None)
        else:
            self._summaries[child] = summary
            self._blocks[block][child] = summary

    def total(self) -> Summary:
        """The fold over all children."""
        if self._total is None:
            for at, folded in enumerate(self._folded):
                if folded is None:
                    self._folded[at] = merge_all(self._blocks[at].values())
            self._total = merge_all(part for part in self._folded if part is not None)
        return self._total

    def _place(self, child: str) -> int:
        if child in self._block_of:
            return self._block_of[child]
        size = max(8, math.isqrt(len(self._summaries)))
        if not self._blocks or len(self._blocks[-1]) >= size:
            self._blocks.append({})
            self._folded.append(None)
        self._block_of[child] = len(self._blocks) - 1
        return self._block_of[child]


def _add(counts: dict[str, int], more: Mapping[str, int]) -> None:
    for key, count in more.items():
        if count:
            counts[key] = counts.get(key, 0) + count


def _keep(samples: dict[tuple[int, str, str], ExceptionSample], sample: ExceptionSample) -> None:
    key = (sample.severity, sample.object, sample.reason)
    held = samples.get(key)
    if held is None:
        samples[key] = sample
    else:
        path = min(held.path, sample.path)
        samples[key] = replace(held, count=held.count + sample.count, path=path)
