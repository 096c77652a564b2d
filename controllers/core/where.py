"""Where a placement turned out to go: pairs of a Location that it selects and a SyncTarget there.

For display. What is delivered, and to whom, each relay decides for itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from schemas.api import GROUP, VERSION, Destination, Location, SyncTarget
from schemas.selectors import IN, LabelSelector

DESTINATIONS_MAX = 1000
NOTE = "leafcast.io/note"
SLICE = "SinglePlacementSlice"


class Inventory:
    """The SyncTargets and Locations of one inventory space, found by their labels."""

    def __init__(self) -> None:
        self.locations: dict[str, Location] = {}
        self._targets: dict[str, SyncTarget] = {}
        self._labelled: dict[tuple[str, str], dict[str, SyncTarget]] = defaultdict(dict)

    def put_target(self, target: SyncTarget) -> None:
        self.remove_target(target.name)
        self._targets[target.name] = target
        for label in target.metadata.labels.items():
            self._labelled[label][target.name] = target

    def remove_target(self, name: str) -> None:
        held = self._targets.pop(name, None)
        for label in held.metadata.labels.items() if held else ():
            named = self._labelled[label]
            del named[name]
            if not named:
                del self._labelled[label]

    def pairs(self, selectors: Sequence[LabelSelector], space: str) -> Iterator[Destination]:
        """The pairs, in the order of names; `space` is the inventory space's identity."""
        for name in sorted(self.locations):
            location = self.locations[name]
            if not any(item.matches(location.metadata.labels) for item in selectors):
                continue
            for target in self._at(location.spec.instance_selector):
                yield Destination(
                    cluster=space,
                    location_name=name,
                    sync_target_name=target.name,
                    sync_target_uid=target.metadata.uid,
                )

    def _at(self, selector: LabelSelector | None) -> list[SyncTarget]:
        """The SyncTargets that an instanceSelector chooses; the nil one chooses none."""
        if selector is None:
            return []
        candidates = self._targets
        for item in selector.requirements:
            if item.operator == IN and len(item.values) == 1:
                named = self._labelled.get((item.key, item.values[0]), {})
                candidates = min(candidates, named, key=len)
        found = (candidates[name] for name in sorted(candidates))
        return [target for target in found if selector.matches(target.metadata.labels)]


def slice_of(placement: Mapping[str, Any], pairs: Iterable[Destination]) -> dict[str, Any]:
    """The SinglePlacementSlice of a placement: its pairs, or a note that they are too many."""
    listed = list(islice(pairs, DESTINATIONS_MAX + 1))
    name = placement["metadata"]["name"]
    owner = {
        "apiVersion": placement["apiVersion"],
        "kind": placement["kind"],
        "name": name,
        "uid": placement["metadata"].get("uid", ""),
    }
    metadata: dict[str, Any] = {"name": name, "ownerReferences": [owner]}
    if len(listed) > DESTINATIONS_MAX:
        listed = []
        note = f"more than {DESTINATIONS_MAX} destinations: they are counted in the status of the "
        note += f"EdgePlacement, and listed by `leafcast status {name} --destinations`"
        metadata["annotations"] = {NOTE: note}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": SLICE,
        "metadata": metadata,
        "destinations": [pair.to_mapping() for pair in listed],
    }


def is_of_placement(found: Mapping[str, Any]) -> bool:
    """Whether a slice was made for an EdgePlacement, and so goes with it."""
    owners = found["metadata"].get("ownerReferences") or ()
    return any(owner.get("kind") == "EdgePlacement" for owner in owners)


def says_the_same(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a slice says all that it should, and no note that it should not."""
    one, other = found["metadata"], wanted["metadata"]
    return bool(
        found.get("destinations", []) == wanted["destinations"]
        and one.get("ownerReferences") == other["ownerReferences"]
        and (one.get("annotations") or {}).get(NOTE) == other.get("annotations", {}).get(NOTE)
    )
