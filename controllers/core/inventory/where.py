"""Where a placement turned out to go: a SinglePlacementSlice, and of a BindingPolicy a Binding.

A slice lists pairs of a Location that is selected and a SyncTarget there. For display: what is
delivered, and to whom, each relay decides for itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from schemas.api.inventory import Location, SyncTarget
from schemas.api.placement import Destination
from schemas.content.manifest import CREATE_ONLY, WANT_MULTI, WANT_SINGLETON, ManifestEntry
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import IN, LabelSelector
from schemas.records.placements import KINDS
from schemas.values.groups import CONTROL_GROUP, CONTROL_VERSION, GROUP, NOTE, VERSION

DESTINATIONS_MAX = 1000
OBJECTS_MAX = 1000
SLICE, BINDING = "SinglePlacementSlice", "Binding"
_MODULATIONS = (
    (CREATE_ONLY, "createOnly"),
    (WANT_SINGLETON, "wantSingletonReportedState"),
    (WANT_MULTI, "wantMultiWECReportedState"),
)
_OWNERS = frozenset(kind.kind for kind in KINDS)


class InventoryIndex:
    """The SyncTargets and Locations of one inventory space, found by their labels."""

    def __init__(self, space: str) -> None:
        # The inventory space's identity.
        self._space = space
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

    def pairs(self, selectors: Sequence[LabelSelector]) -> Iterator[Destination]:
        """The pairs of a Location that one of the selectors matches and a SyncTarget there."""
        for name in sorted(self.locations):
            location = self.locations[name]
            if not any(item.matches(location.metadata.labels) for item in selectors):
                continue
            for target in self._at(location.spec.instance_selector):
                yield Destination(
                    cluster=self._space,
                    location_name=name,
                    sync_target_name=target.name,
                    sync_target_uid=target.metadata.uid,
                )

    def targets(self, selectors: Sequence[LabelSelector]) -> Iterator[SyncTarget]:
        """The SyncTargets that one of the selectors matches, some of them several times."""
        for selector in selectors:
            yield from self._at(selector)

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
    notes = []
    if len(listed) > DESTINATIONS_MAX:
        notes, listed = [_too_many_destinations("EdgePlacement", "", placement)], []
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": SLICE,
        "metadata": _metadata(placement, notes),
        "destinations": [pair.to_mapping() for pair in listed],
    }


def binding_of(
    policy: Mapping[str, Any],
    entries: Mapping[ObjectKey, ManifestEntry],
    objects: Mapping[ObjectKey, Mapping[str, Any]],
    targets: Iterable[str],
) -> dict[str, Any]:
    """The Binding of a BindingPolicy: the objects in force and the SyncTargets, by name.

    Where there are too many of either, a note says so. `objects` tell the API versions.
    """
    names = set[str]()
    for name in targets:
        names.add(name)
        if len(names) > DESTINATIONS_MAX:
            break
    notes, workload = [], {"clusterScope": list[Any](), "namespaceScope": list[Any]()}
    if len(names) > DESTINATIONS_MAX:
        notes.append(_too_many_destinations("BindingPolicy", "bp/", policy))
        names.clear()
    if len(entries) > OBJECTS_MAX:
        notes.append(
            f"more than {OBJECTS_MAX} objects: they are counted in the status of the BindingPolicy"
        )
    for key in sorted(entries) if len(entries) <= OBJECTS_MAX else ():
        scope = "namespaceScope" if key.namespace else "clusterScope"
        workload[scope].append(_bound(key, entries[key], objects.get(key, {})))
    return {
        "apiVersion": f"{CONTROL_GROUP}/{CONTROL_VERSION}",
        "kind": BINDING,
        "metadata": _metadata(policy, notes, controller=True),
        "spec": {
            "workload": {scope: listed for scope, listed in workload.items() if listed},
            "destinations": [{"clusterId": name} for name in sorted(names)],
        },
    }


def _bound(key: ObjectKey, entry: ManifestEntry, obj: Mapping[str, Any]) -> dict[str, Any]:
    """One object of a Binding, of the version whose content is in force."""
    named = {"namespace": key.namespace} if key.namespace else {}
    return {
        "group": key.group,
        "version": str(obj.get("apiVersion", "")).rpartition("/")[2],
        "resource": key.resource,
        **named,
        "name": key.name,
        "resourceVersion": str(entry.revision),
        **{name: True for flag, name in _MODULATIONS if entry.flags & flag},
    }


def _metadata(
    placement: Mapping[str, Any], notes: Sequence[str], *, controller: bool = False
) -> dict[str, Any]:
    """That it goes with the placement, and is named as it is."""
    name = placement["metadata"]["name"]
    owner = {
        "apiVersion": placement["apiVersion"],
        "kind": placement["kind"],
        "name": name,
        "uid": placement["metadata"].get("uid", ""),
    }
    if controller:
        owner |= {"controller": True, "blockOwnerDeletion": False}
    metadata: dict[str, Any] = {"name": name, "ownerReferences": [owner]}
    if notes:
        metadata["annotations"] = {NOTE: "; ".join(notes)}
    return metadata


def _too_many_destinations(kind: str, prefix: str, placement: Mapping[str, Any]) -> str:
    name = placement["metadata"]["name"]
    return (
        f"more than {DESTINATIONS_MAX} destinations: they are counted in the status of the "
        f"{kind}, and listed by `leafcast status {prefix}{name} --destinations`"
    )


def is_of_placement(found: Mapping[str, Any]) -> bool:
    """Whether a slice or a Binding was made for a placement, and so goes with it."""
    owners = found["metadata"].get("ownerReferences") or ()
    return any(owner.get("kind") in _OWNERS for owner in owners)


def is_up_to_date(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether it says all that it should, and no note that it should not."""
    one, other = found["metadata"], wanted["metadata"]
    said = ("destinations", "spec")
    return bool(
        all(found.get(field) == wanted.get(field) for field in said)
        and one.get("ownerReferences") == other["ownerReferences"]
        and (one.get("annotations") or {}).get(NOTE) == other.get("annotations", {}).get(NOTE)
    )
