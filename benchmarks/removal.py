"""What it costs to weigh a removal: processor time of the decision on ten thousand copies.

The centre's own decisions are made without a tree: one placement of ten objects at a thousand
destinations. Its selector is typed wrong, or the Location of all of them loses its label, so that
ten thousand copies would go; both are held. Beside them an object's change that takes nothing, with
weighing and with it left out.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

from benchmarks.plan import inventory
from benchmarks.report import Report
from controllers.core.inventory.label_brakes import LabelBrakes
from controllers.core.inventory.registry import Registry
from controllers.core.ledger.weighing import Confirmations
from controllers.core.translation.placements import Placements
from controllers.core.translation.work import Work
from schemas.objects.objects import ObjectKey
from schemas.records.records import Record
from schemas.values import wire
from schemas.values.groups import GROUP, VERSION
from schemas.values.identity import MailKey, TreeId

DESTINATIONS, OBJECTS, TIMES = 1_000, 10, 30
MORE_AT_MOST = 1.03
SPACE, TREE = "inv", TreeId("t" * 26)
EPL = ObjectKey(GROUP, "edgeplacements", "", "shop")
PLACE = ObjectKey(GROUP, "locations", "", "all")

Object = dict[str, Any]


class Scene:
    """A centre that has delivered the placement everywhere."""

    def __init__(self, destinations: int = DESTINATIONS) -> None:
        profiles, _ = inventory(destinations)
        self.ledger: dict[MailKey, Record] = dict(profiles)
        self.brakes = LabelBrakes(self.ledger, Confirmations())
        self.placements = Placements("wds", {}, self.ledger, brakes=self.brakes)
        self.registry = Registry(
            SPACE, TREE, self.ledger, frozenset({SPACE}), None, (self.brakes, self)
        )
        place = self.registry.put(PLACE, location(open="yes"))
        self.registry.known = True
        self._issue(self.registry.next(place, 0).drafts)
        objects = {key: config for at in range(OBJECTS) for key, config in [config_map(at, "1")]}
        self.settle(self.placements.listed({EPL: placement("yes"), **objects}))

    def objects_of(self, _placement: MailKey) -> Any:
        return self.placements.entries("shop").keys()

    def grace_of(self, _placement: MailKey) -> float | None:
        return None

    def brakes_changed(self, _placements: Any) -> None:
        """Nobody is to be told."""

    def settle(self, names: Any) -> list[Work]:
        works = self.placements.next(names)
        drafts = [work.draft for work in works if work.draft is not None]
        self.placements.issued(works, self._issue(drafts))
        return works

    def _issue(self, drafts: Any) -> list[Record]:
        records = [wire.replace(draft.record, generation=1) for draft in drafts]
        self.ledger.update((record.source.key, record) for record in records)
        self.brakes.changed(records)
        return records


def placement(open_: str) -> Object:
    selector = {"matchLabels": {"open": open_}}
    spec = {"locationSelectors": [selector], "downsync": [{"namespaces": ["shop"]}]}
    return _object("EdgePlacement", "shop", spec=spec)


def location(**labels: str) -> Object:
    resource = {"group": GROUP, "version": VERSION, "resource": "synctargets"}
    spec = {"resource": resource, "instanceSelector": {}}
    return _object("Location", "all", spec=spec, labels=labels)


def config_map(at: int, value: str) -> tuple[ObjectKey, Object]:
    name = f"c{at}"
    metadata = {"name": name, "namespace": "shop"}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"v": value}}
    return ObjectKey("", "configmaps", "shop", name), obj


def _object(
    kind: str, name: str, *, spec: Mapping[str, Any], labels: Mapping[str, str] | None = None
) -> Object:
    metadata = {"name": name, "labels": dict(labels or {})}
    return {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": metadata, "spec": spec}


def _milliseconds(work: Callable[[], object]) -> float:
    """Processor time of one call."""
    gc.collect()
    began = time.process_time()
    work()
    return (time.process_time() - began) * 1000


def typed_wrong() -> float:
    """The placement's selector names a label that nobody has."""
    scene = Scene()
    names = scene.placements.put(EPL, placement("yse"))
    spent = _milliseconds(lambda: scene.placements.next(names))
    assert "10,000 copies" in scene.placements.held["shop"]
    return spent


def unlabelled() -> float:
    """The Location of all of them loses its label."""
    scene = Scene()
    keys = scene.registry.put(PLACE, location())
    spent = _milliseconds(lambda: scene.registry.next(keys, 0))
    assert [loss.copies for loss, _ in scene.brakes.brake.held.values()] == [10_000]
    return spent


def changes() -> tuple[float, float]:
    """A thousand changes of an object that take nothing: weighed, and with that left out."""
    scene = Scene()
    spent: tuple[list[float], list[float]] = ([], [])
    weigh = scene.placements._weigh
    for turn in range(2 * TIMES):
        weighed = turn % 2 == 0
        left_out: Any = weigh if weighed else lambda *_: (frozenset(), ())
        scene.placements._weigh = left_out  # type: ignore[method-assign]

        def hundred(turn: int = turn) -> None:
            for at in range(100):
                key, obj = config_map(at % OBJECTS, f"{turn}-{at}")
                scene.settle(scene.placements.put(key, obj))

        spent[0 if weighed else 1].append(_milliseconds(hundred))
    return min(spent[0]) / 100, min(spent[1]) / 100


def main() -> None:
    report = Report(
        "removal",
        f"A removal of {DESTINATIONS * OBJECTS:,} copies weighed",
        ("decision", "processor time, ms (median)"),
    )
    for what, measure in (
        ("a placement's selector typed wrong, held", typed_wrong),
        ("a Location's label taken off, held", unlabelled),
    ):
        report.row(what, round(median(measure() for _ in range(TIMES)), 1))
    weighed, left_out = changes()
    report.row("an object's change that takes nothing, weighed", round(weighed, 3))
    report.row("the same, weighing left out", round(left_out, 3))
    report.goal("a change weighed : not weighed", round(weighed / left_out, 3), MORE_AT_MOST)
    report.finish()


if __name__ == "__main__":
    main()
