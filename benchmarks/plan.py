"""A plan over very many destinations: how often it looks at each profile, time and memory.

The states are made without a tree: one placement of ten objects, a Location for each hundred
destinations. Of three changes each row is told: an object is another everywhere, one that each
destination customizes is another, and Locations lose their label, so that who is there loses all.
"""

from __future__ import annotations

import sys
import time
import tracemalloc
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from benchmarks.report import Report
from controllers.core.planning.plan import Plan, plan
from controllers.core.planning.states import Delivery, PlannedState
from schemas.content import blobs
from schemas.content.manifest import TEMPLATE, ManifestEntry
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.records.records import (
    API_LOCATION,
    API_SYNC_TARGET,
    OVER_LOCATION,
    Alternative,
    LocationRecord,
    Profile,
    Record,
    Source,
)
from schemas.values.codec import address, canonical
from schemas.values.groups import API_PLACEMENT
from schemas.values.identity import DestinationId, MailKey, NodePath

DESTINATIONS, PER_LOCATION, OBJECTS = 100_000, 100, 10
PASSES_MAX = 3
PLACEMENT = Source(API_PLACEMENT, "wds", "", "shop")
TEMPLATE_NAME = "greeting"
R = TypeVar("R", bound=Record)


class Counted(Mapping[MailKey, R]):
    """Records that count how often one of them is looked at."""

    def __init__(self, records: Mapping[MailKey, R]) -> None:
        self.looks = 0
        self._records = records

    def __getitem__(self, key: MailKey) -> R:
        self.looks += 1
        return self._records[key]

    def __iter__(self) -> Iterator[MailKey]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)


def inventory(count: int) -> tuple[dict[MailKey, Profile], dict[MailKey, LocationRecord]]:
    profiles, locations = {}, {}
    for at in range(count):
        area = at // PER_LOCATION
        source = Source(API_SYNC_TARGET, "inv", "", f"s-{at}")
        path = NodePath.parse(f"/r-{area % 100}/a-{area}/s-{at}")
        labels = {"area": f"a-{area}", "id": f"s-{at}"}
        profiles[source.key] = Profile(
            source, at, "", "", DestinationId(f"d-{at}"), path, labels, {}, {}
        )
    for area in range((count + PER_LOCATION - 1) // PER_LOCATION):
        source = Source(API_LOCATION, "inv", "", f"a-{area}")
        selector = LabelSelector.from_kubernetes({"matchLabels": {"area": f"a-{area}"}})
        locations[source.key] = LocationRecord(
            source, area, "", "", {"open": "yes", "region": f"r-{area % 100}"}, {}, selector
        )
    return profiles, locations


def objects(version: str) -> tuple[dict[ObjectKey, ManifestEntry], dict[Any, bytes]]:
    """ConfigMaps, one of which each destination customizes; of these `version` is said."""
    entries, contents = {}, {}
    for at in range(OBJECTS):
        template = at == 0
        name = TEMPLATE_NAME if template else f"c-{at}"
        said = {"control.kubestellar.io/expand-templates": "true"} if template else {}
        metadata = {"name": name, "namespace": "shop", "annotations": said}
        text = f"{version} at {{{{ .clusterName }}}} in {{{{ .region }}}}" if template else version
        obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": text}}
        plain = canonical(obj)
        kind = blobs.TEMPLATE if template else blobs.OBJECT
        key = ObjectKey("", "configmaps", "shop", name)
        where = address(kind, plain)
        contents[where] = plain
        flags = TEMPLATE if template else 0
        entries[key] = ManifestEntry(
            *("", "configmaps", "shop", name, where, len(plain), "wds"),
            revision=1,
            flags=flags,
        )
    return entries, contents


def states(count: int) -> tuple[PlannedState, dict[Any, bytes], dict[str, PlannedState]]:
    profiles, locations = inventory(count)
    selector = LabelSelector.from_kubernetes({"matchLabels": {"open": "yes"}})
    alternatives = (Alternative(OVER_LOCATION, selector),)
    (old, contents), (new, later) = objects("1"), objects("2")
    delivery = Delivery("shop", PLACEMENT.key, alternatives, old)
    before = PlannedState({PLACEMENT.key: delivery}, profiles, locations)
    greeting = next(key for key in old if key.name == TEMPLATE_NAME)
    plain = next(key for key in old if key.name != TEMPLATE_NAME)

    def with_objects(*keys: ObjectKey) -> PlannedState:
        entries = {**old, **{key: new[key] for key in keys}}
        return replace(before, placements={PLACEMENT.key: replace(delivery, entries=entries)})

    closed = dict(locations)
    for key in list(locations)[:10]:
        closed[key] = replace_labels(locations[key])
    changes = {
        "an object": with_objects(plain),
        "a customized object": with_objects(greeting),
        "ten Locations": replace(before, locations=closed),
    }
    return before, {**contents, **later}, changes


def replace_labels(location: LocationRecord) -> LocationRecord:
    return LocationRecord(
        *(location.source, 0, "", "", {"open": "no"}, {}, location.instance_selector)
    )


def told(made: Plan) -> int:
    return sum(1 for _ in made.rows())


def main(count: int = DESTINATIONS) -> None:
    report = Report(
        "plan",
        f"a plan over {count} destinations, each row told; seconds of processor time",
        ("change", "rows", "passes", "seconds to the counts", "seconds to the last row"),
    )
    before, contents, changes = states(count)
    most = 0.0
    for name, after in changes.items():
        profiles = Counted(before.profiles)
        began = time.process_time()
        made = plan(replace(before, profiles=profiles), replace(after, profiles=profiles), contents)
        counted = time.process_time() - began
        rows = told(made)
        ended = time.process_time() - began
        passes = profiles.looks / count
        most = max(most, passes)
        report.row(name, rows, passes, counted, ended)
    mib = memory(before, changes["an object"], contents)
    report.note(f"an object: {mib:.0f} MiB at the most, beside the states")
    report.goal("passes over the profiles", most, PASSES_MAX)
    report.finish()


def memory(before: PlannedState, after: PlannedState, contents: Mapping[Any, bytes]) -> float:
    """MiB at the most, beside the states themselves."""
    tracemalloc.start()
    try:
        made = plan(before, after, contents)
        assert made.destinations
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
