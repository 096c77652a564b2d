"""The fold on the way up: an associative, commutative merge with an identity.

Keep-sets are the k least under an order that merging cannot change, so a sum in a kept entry is
exact: whoever dropped an entry held k smaller ones, and so the merge drops it, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from schemas.objects import ObjectKey
from schemas.reports import (
    ARM_OLDER,
    BLOCKING_MAX,
    EXCEPTIONS_MAX,
    NEVER_JOINED,
    ExceptionSample,
    ObjectResult,
    State,
    Summary,
)
from schemas.wire import INT_MAX, replace

EMPTY = Summary()
COUNT_MAX = INT_MAX
"""Where sums stop, so that whatever a child counts, the sum can be said."""


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


def times(summary: Summary, count: int) -> Summary:
    """The summary of so many disjoint sets, at least one, of which each says the same."""
    if count == 1:
        return summary
    parts = (summary.states, summary.health, summary.arms)
    states, health, arms = ({k: min(n * count, COUNT_MAX) for k, n in p.items()} for p in parts)
    samples = tuple(replace(s, count=min(s.count * count, COUNT_MAX)) for s in summary.exceptions)
    return replace(summary, states=states, health=health, arms=arms, exceptions=samples)


def unreachable(summary: Summary) -> Summary:
    """What counts for a subtree that is silent: its destinations, of which nothing is known now.

    Who had never joined by then is as good as that still.
    """
    absent, total = summary.states.get(NEVER_JOINED, 0), min(summary.joined, COUNT_MAX)
    states, health = ({"unreachable": total}, {"unknown": total}) if total else ({}, {})
    if absent:
        states[NEVER_JOINED] = health[NEVER_JOINED] = absent
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
