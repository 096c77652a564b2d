"""What it costs to know who is meant: memory, and time for a changed placement or destination."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from benchmarks.reduction import live_mb
from benchmarks.report import Report, middle, percentile, resident_mb
from relay.core.audience import Audience
from schemas.objects.selectors import LabelSelector, Requirement
from schemas.records.records import (
    API_LOCATION,
    API_SYNC_TARGET,
    OVER_LOCATION,
    OVER_SYNC_TARGET,
    Alternative,
    LocationRecord,
    Profile,
    Source,
)
from schemas.values.identity import DestinationId, MailKey, NodePath

DESTINATIONS, CHILDREN, PLACEMENTS, MANY_PLACEMENTS = 1_000_000, 500, 1000, 10_000
REGIONS, MODELS, LOCATIONS, ROUNDS = 50, 400, 200, 200
DELTA_GOAL_MS, MEMORY_GOAL_MB, DESTINATION_GOAL_MS = 5, 2000, 3


def labels_of(number: int, model: int) -> dict[str, str]:
    """Two labels of its own, and four that it shares with many."""
    return {
        "kubernetes.io/hostname": f"host-{number:07}",
        "leafcast.io/store": f"store-{number:07}",
        "topology.kubernetes.io/region": f"region-{number % REGIONS:02}",
        "model": f"model-{model:03}",
        "env": ("prod", "prod", "prod", "staging", "dev")[number % 5],
        "tier": f"tier-{number // 7 % 4}",
    }


def profile(number: int, model: int, children: int) -> Profile:
    source = Source(API_SYNC_TARGET, "inventory", "", f"target-{number:07}")
    path = NodePath((f"r{number % children:03}", f"e{number:07}"))
    who = DestinationId(f"inventory-mb-{number}")
    return Profile(source, 1, "", "", who, path, labels_of(number, model), {}, {})


def profile_key(number: int) -> MailKey:
    return MailKey(f"{number:032}")


def location(number: int, zone: int) -> LocationRecord:
    """The Location of the destinations of two models."""
    source = Source(API_LOCATION, "inventory", "", f"location-{number}")
    selector = _all_of(
        Requirement("model", "In", (f"model-{2 * number:03}", f"model-{2 * number + 1:03}"))
    )
    return LocationRecord(source, 1, "", "", {"zone": f"z{zone}"}, {}, selector)


def alternatives(number: int) -> tuple[Alternative, ...]:
    """Where-alternatives of many kinds; no two numbers have the same."""
    region = Requirement("topology.kubernetes.io/region", "In", (f"region-{number % REGIONS:02}",))
    model = Requirement("model", "In", (f"model-{number // 4 % MODELS:03}",))
    unlike = Requirement("leafcast.io/store", "NotIn", (f"store-{number:07}",))
    kinds = (
        (region, Requirement("env", "In", ("prod",)), unlike),
        (model, Requirement("tier", "NotIn", (f"tier-{number % 3}",)), unlike),
        (Requirement("env", "In", ("prod", "dev")), region, model, unlike),
        (
            Requirement("kubernetes.io/hostname", "Exists"),
            Requirement("env", "In", ("dev",)),
            unlike,
        ),
    )
    if number % 10 == 9:
        zone = Requirement("zone", "In", (f"z{number // 10 % 20}",))
        other = Requirement("other", "NotIn", (f"v{number}",))
        return (Alternative(OVER_LOCATION, _all_of(zone, other)),)
    # Every hundredth means nearly all.
    chosen = (unlike,) if number % 100 == 0 else kinds[number % 40 // 10]
    return (Alternative(OVER_SYNC_TARGET, _all_of(*chosen), "inventory"),)


def _all_of(*requirements: Requirement) -> LabelSelector:
    return LabelSelector(requirements)


def load(destinations: int, children: int) -> tuple[Audience, float]:
    """All profiles and Locations, and the seconds that it took to take them in."""
    audience, taken = Audience(NodePath()), 0.0
    for at in range(LOCATIONS):
        audience.put_location(MailKey(f"location-{at:023}"), location(at, at % 20))
    for number in range(destinations):
        one, key = profile(number, number // 3 % MODELS, children), profile_key(number)
        began = time.process_time()
        audience.put_profile(key, one)
        taken += time.process_time() - began
    return audience, taken


def place(audience: Audience, first: int, last: int) -> float:
    """Put placements in force; the seconds until all are counted and drained."""
    began = time.process_time()
    for number in range(first, last):
        audience.put_placement(MailKey(f"placement-{number:022}"), alternatives(number))
    drained = audience.drain()
    assert drained
    return time.process_time() - began


class Changes:
    """Changes of one kind after the other, each timed with all that is drained after it."""

    def __init__(self, audience: Audience, report: Report, destinations: int) -> None:
        self._audience = audience
        self._report = report
        self._destinations = destinations

    def measure(self, what: str, rounds: int, change: Callable[[int], None]) -> float:
        """Add a row; returns milliseconds of processor time, p99."""
        taken, drained = [], 0
        for at in range(rounds):
            began = time.process_time()
            change(at)
            children = self._audience.drain().values()
            taken.append((time.process_time() - began) * 1000)
            drained += sum(map(len, children))
        slowest = percentile(taken, 0.99)
        self._report.row(what, middle(taken), slowest, drained / rounds)
        return slowest

    def placement(self, at: int) -> None:
        key = MailKey(f"placement-{at * 5:022}")
        self._audience.put_placement(key, alternatives(at * 5 + PLACEMENTS * 50 + 10))

    def wide_placement(self, at: int) -> None:
        key = MailKey(f"placement-{at * 5 + 1:022}")
        self._audience.put_placement(key, alternatives(at * 100 + PLACEMENTS * 100))

    def destination(self, at: int, model: int) -> None:
        number = at * (self._destinations // ROUNDS)
        changed = profile(number, (at + model) % MODELS, CHILDREN)
        self._audience.put_profile(profile_key(number), changed)

    def location(self, at: int) -> None:
        key = MailKey(f"location-{at:023}")
        self._audience.put_location(key, location(at, (at + 1) % 20))


def main(destinations: int = DESTINATIONS) -> None:
    report = Report(
        "audience",
        f"Audience of {destinations:,} destinations behind {CHILDREN} children (CPU)",
        ("a change of", "ms, middle", "ms, p99", "children drained"),
    )
    before = live_mb()
    audience, taken = load(destinations, CHILDREN)
    loaded = live_mb()
    report.note(f"{destinations / taken:,.0f} profiles taken in a second, 6 labels each")
    seconds = place(audience, 0, PLACEMENTS)
    report.note(f"{PLACEMENTS:,} placements counted from nothing in {seconds:.1f} s")
    changes = Changes(audience, report, destinations)
    changes.measure(f"one of {PLACEMENTS:,} placements", ROUNDS, changes.placement)
    slowest = changes.measure("the same, to nearly all", ROUNDS, changes.wide_placement)
    report.goal("a placement changes, ms (p99)", slowest, DELTA_GOAL_MS)
    changes.measure(
        f"a destination, {PLACEMENTS:,} placements", ROUNDS, lambda at: changes.destination(at, 1)
    )
    full = resident_mb(os.getpid())
    seconds = place(audience, PLACEMENTS, MANY_PLACEMENTS)
    report.note(f"{MANY_PLACEMENTS - PLACEMENTS:,} more placements counted in {seconds:.1f} s")
    slowest = changes.measure(
        f"a destination, {MANY_PLACEMENTS:,} placements",
        ROUNDS,
        lambda at: changes.destination(at, 2),
    )
    report.goal("a destination changes, ms (p99)", slowest, DESTINATION_GOAL_MS)
    held = destinations // LOCATIONS
    changes.measure(f"a Location of {held:,} destinations", ROUNDS // 10, changes.location)
    report.note(
        f"memory: {before:,.0f} MB before, {loaded:,.0f} with profiles, {full:,.0f} with "
        f"{PLACEMENTS:,} placements, {resident_mb(os.getpid()):,.0f} with {MANY_PLACEMENTS:,}"
    )
    report.goal("resident MB, the whole process", full, MEMORY_GOAL_MB)
    report.finish()


if __name__ == "__main__":
    main()
