"""The fold on the way up: an associative, commutative merge with an identity.

Keep-sets are the k least under an order that merging cannot change, so a sum in a kept entry is
exact: whoever dropped an entry held k smaller ones, and so the merge drops it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from schemas.objects.objects import ObjectKey
from schemas.reports.reports import (
    ARM_OLDER,
    ARM_OTHER,
    ARM_WORDS,
    ARMS_MAX,
    CELL_FORMER,
    CELL_OTHER,
    CELLS_MAX,
    COUNT_MAX,
    EXCEPTIONS_MAX,
    KEPT_COPIES_MAX,
    REPAIRS_MAX,
    Cell,
    ExceptionSample,
    ObjectResult,
    RepairSample,
    State,
    Summary,
    newest_repairs,
)
from schemas.values.wire import replace

EMPTY = Summary()


def merge(first: Summary, second: Summary) -> Summary:
    """The summary of two disjoint sets of destinations."""
    return merge_all((first, second))


def merge_all(summaries: Iterable[Summary]) -> Summary:
    """The summary of disjoint sets; EMPTY of none."""
    states: dict[str, int] = {}
    health: dict[str, int] = {}
    arms: dict[str, int] = {}
    cells: dict[str, int] = {}
    samples: dict[tuple[int, str, str], ExceptionSample] = {}
    kept: dict[tuple[int, str, str], ExceptionSample] = {}
    repairs: list[RepairSample] = []
    oldest = kept_count = repaired = 0
    for summary in summaries:
        _add(states, summary.states)
        _add(health, summary.health)
        _add(arms, summary.arms)
        _add(cells, summary.cells)
        for sample in summary.exceptions:
            _keep(samples, sample)
        if summary.kept:
            kept_count = min(kept_count + summary.kept, COUNT_MAX)
            for sample in summary.kept_copies:
                _keep(kept, sample)
        if summary.repaired:
            repaired = min(repaired + summary.repaired, COUNT_MAX)
            repairs += summary.repairs
        if summary.oldest_ms and (not oldest or summary.oldest_ms < oldest):
            oldest = summary.oldest_ms
    return Summary(
        states,
        health,
        fit_arms(arms),
        _least(samples.values(), EXCEPTIONS_MAX),
        oldest,
        fit_cells(cells),
        kept_count,
        _least(kept.values(), KEPT_COPIES_MAX),
        repaired,
        newest_repairs(repairs),
    )


def fit_arms(arms: Mapping[str, int]) -> dict[str, int]:
    """The first ARMS_MAX arms, words before addresses; the rest are added up as `other`."""
    return _fitted(arms, ARMS_MAX, ARM_OTHER, lambda arm: (arm not in ARM_WORDS, arm))


def fit_cells(cells: Mapping[str, int]) -> dict[str, int]:
    """The first CELLS_MAX cells, the newest revision's before others; the rest are `other`."""
    return _fitted(cells, CELLS_MAX, CELL_OTHER, _cell_rank)


def _fitted(
    counts: Mapping[str, int], most: int, other: str, rank: Callable[[str], tuple[int, str]]
) -> dict[str, int]:
    if len(counts) < most:
        return dict(counts)
    ranked = sorted(counts.keys() - {other}, key=rank)
    fitted = {name: counts[name] for name in ranked[: most - 1]}
    rest = sum(counts[name] for name in ranked[most - 1 :]) + counts.get(other, 0)
    return fitted | ({other: min(rest, COUNT_MAX)} if rest else {})


def _cell_rank(text: str) -> tuple[int, str]:
    """An order that merging cannot change: the higher revision, then the text."""
    parsed = Cell.parse(text)
    revision = parsed.gate.partition(".")[0] if parsed is not None else ""
    return (-int(revision) if revision.isascii() and revision.isdecimal() else 0, text)


def repeated(summary: Summary, count: int) -> Summary:
    """The summary of so many disjoint sets, at least one, of which each says the same."""
    if count == 1:
        return summary
    parts = (summary.states, summary.health, summary.arms, summary.cells)
    states, health, arms, cells = (
        {k: min(n * count, COUNT_MAX) for k, n in p.items()} for p in parts
    )
    return replace(
        summary,
        states=states,
        health=health,
        arms=arms,
        exceptions=_times(summary.exceptions, count),
        cells=cells,
        kept=min(summary.kept * count, COUNT_MAX),
        kept_copies=_times(summary.kept_copies, count),
        repaired=min(summary.repaired * count, COUNT_MAX),
        repairs=newest_repairs(summary.repairs * min(count, REPAIRS_MAX)),
    )


def _times(samples: Iterable[ExceptionSample], count: int) -> tuple[ExceptionSample, ...]:
    return tuple(replace(s, count=min(s.count * count, COUNT_MAX)) for s in samples)


def as_older_generation(summary: Summary, state: State) -> Summary:
    """What counts of a summary of an older generation: who was synced then is in `state` now.

    Nobody is healthy in what is not there yet, and what was wrong with an object of the former may
    be so no more. In which wave of the present one they are, it does not say.
    """
    total = min(summary.destinations, COUNT_MAX)
    states, health = dict(summary.states), dict(summary.health)
    if former := states.pop("synced", 0):
        states[state] = min(states.get(state, 0) + former, COUNT_MAX)
    if well := health.pop("healthy", 0):
        now = "progressing" if state == "pending" else "unknown"
        health[now] = min(health.get(now, 0) + well, COUNT_MAX)
    arms = {ARM_OLDER: total} if total else {}
    told = tuple(it for it in summary.exceptions if state == "leaving" or not it.object)
    return replace(summary, states=states, health=health, arms=arms, exceptions=told, cells={})


def as_former_step(summary: Summary, arms: frozenset[str]) -> Summary:
    """What counts of a summary of a former step of the same rollout: all but the waves.

    It may be that the present step was not even sent there yet.
    """
    named: dict[str, int] = {}
    for arm, count in summary.arms.items():
        _add(named, {arm if arm in arms or arm in ARM_WORDS else ARM_OLDER: count})
    total = min(summary.destinations, COUNT_MAX)
    return replace(summary, arms=named, cells={CELL_FORMER: total} if total else {})


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


def _least(samples: Iterable[ExceptionSample], most: int) -> tuple[ExceptionSample, ...]:
    return tuple(sorted(samples, key=lambda sample: sample.rank)[:most])


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
