"""The figures of a centre: of each placement what its status says, whatever the tree's size.

Nothing is counted anew for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, get_args

from controllers.centre import Controllers
from leafcast.metrics import catalogue as m
from leafcast.metrics.reading import MetricReading
from schemas.api.rollout_status import Phase, RolloutStatus
from schemas.records.placements import EDGE_PLACEMENTS, kind_of, short_title

PLACEMENTS_MAX = 2_000
"""Of one space: each is some thirty lines of an answer."""

STATES = {
    "synced": "synced",
    "pending": "pending",
    "waiting": "waiting",
    "failing": "failing",
    "frozen": "frozen",
    "unreachable": "unreachable",
}
"""From fields of a status to states of destinations that have joined."""
NEVER_JOINED, OTHER = "never joined", "other"
"""OTHER are those that a person works at, and those that let go of it."""


def centre_readings(controllers: Controllers) -> Iterator[MetricReading]:
    """All of them; spaces are named by their places in the configuration, from 1."""
    for number, one in enumerate(controllers.workload_spaces, 1):
        workloads = one.translator.workloads
        yield from placement_readings(str(number), workloads.objects)
        yield from rollout_readings(str(number), workloads.rollouts.states)
    for name, queue in controllers.queues():
        figures = queue.figures
        yield m.QUEUE_DEPTH.of(queue.depth, name)
        yield m.QUEUE_ADDS.of(figures.adds, name)
        yield m.QUEUE_RETRIES.of(figures.retries, name)
        yield m.QUEUE_WAITS.of(figures.waits, name)
        yield m.QUEUE_WORKS.of(figures.works, name)
        yield m.QUEUE_WORKING.of(queue.working_seconds, name)


def placement_readings(
    space: str, placements: Mapping[str, Mapping[str, Any]]
) -> Iterator[MetricReading]:
    """What the statuses of these placements say; of one without a status there is nothing."""
    yield m.PLACEMENTS.of(len(placements), space)
    statuses = {name: obj.get("status") or {} for name, obj in placements.items()}
    if statuses:
        complete = sum(bool(status.get("complete")) for status in statuses.values())
        yield m.COMPLETE.of(complete / len(statuses), space)
    for name in islice(sorted(statuses), PLACEMENTS_MAX):
        if statuses[name]:
            yield from _of_placement(space, _shown(name), statuses[name])


def rollout_readings(space: str, rollouts: Mapping[str, RolloutStatus]) -> Iterator[MetricReading]:
    """How far these Rollouts are."""
    for name, status in islice(sorted(rollouts.items()), PLACEMENTS_MAX):
        yield m.ROLLOUT_WAVE.of(status.wave, space, name)
        phases = {phase: phase == status.phase for phase in get_args(Phase)}
        yield from m.ROLLOUT_PHASE.states(phases, space, name)


def _shown(name: str) -> str:
    """`shop` of an EdgePlacement, `bp/shop` of a BindingPolicy: as commands take both."""
    return name if kind_of(name) is EDGE_PLACEMENTS else short_title(name)


def _of_placement(space: str, name: str, status: Mapping[str, Any]) -> Iterator[MetricReading]:
    states = {state: status.get(field, 0) for field, state in STATES.items()}
    states[OTHER] = max(status.get("destinations", 0) - sum(states.values()), 0)
    states[NEVER_JOINED] = status.get("neverJoined", 0)
    yield from m.DESTINATIONS.states(states, space, name)
    yield m.HEALTHY.of(status.get("healthy", 0), space, name)
    for condition in status.get("conditions", ()):
        said = str(condition["status"]).lower()
        known = {each: each == said for each in ("true", "false", "unknown")}
        yield from m.CONDITION.states(known, space, name, condition["type"])
    reasons = Counter(str(hold.get("reason", "")) for hold in status.get("held", ()))
    yield from m.HELD.states(reasons, space, name)
    yield m.REPAIRS.of((status.get("repairs") or {}).get("count", 0), space, name)
