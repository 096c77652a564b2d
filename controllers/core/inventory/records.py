"""The inventory as records: SyncTargets become profiles, Locations become location records.

A path has one claimant: of two SyncTargets the older one, by creation time, then by name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from controllers.core.conditions import condition
from controllers.core.ledger.ledger import Draft
from schemas.api.inventory import Location, SyncTarget
from schemas.api.shared import Condition
from schemas.objects.objects import LAST_APPLIED
from schemas.records.maintenance import in_force
from schemas.records.records import (
    API_LOCATION,
    API_SYNC_TARGET,
    LocationRecord,
    Profile,
    Source,
)
from schemas.values.groups import PATH_ANNOTATION
from schemas.values.identity import NodePath, destination_id
from schemas.values.wire import replace

REGISTERED = "Registered"


def register(
    space: str,
    targets: Iterable[SyncTarget],
    is_node: Callable[[NodePath], bool],
    properties: Callable[[str], Mapping[str, str]] = lambda _: {},
    boxes: Callable[[NodePath], tuple[bytes, bytes]] = lambda _: (b"", b""),
    now_ms: int = 0,
) -> tuple[list[Draft], dict[str, Condition]]:
    """The profiles of the SyncTargets that have a place, and a condition for each one by name.

    In `boxes` are the fleet keys for who hangs at a path, and the public keys they are sealed to.
    A maintenance that is over is not told of.

    One may be registered before its node is: it has its place, and is told what is missing.
    """
    drafts, conditions = list[Draft](), dict[str, Condition]()
    claims: dict[NodePath, list[SyncTarget]] = defaultdict(list)
    for target in targets:
        if target.path is None:
            message = (
                f'SyncTarget "{target.name}" has no annotation {PATH_ANNOTATION}; '
                "set it to the place in the tree, as in /emea/store-1"
            )
            conditions[target.name] = condition(REGISTERED, "False", "NoPath", message)
        else:
            claims[target.path].append(target)
    for path, claimants in claims.items():
        first, *others = sorted(claimants, key=_age)
        profile = _profile(space, first, path, properties(first.name), boxes(path))
        said = in_force(profile.annotations, now_ms)
        drafts.append(Draft("profile", replace(profile, annotations=said)))
        message = f'destination "{first.name}" hangs at {path}'
        conditions[first.name] = condition(REGISTERED, "True", "Registered", message)
        if not is_node(path):
            message = (
                f'SyncTarget "{first.name}" hangs at {path}, which is no node of the tree: nothing '
                f"reaches it; run `leafcast node add {path}`, or correct {PATH_ANNOTATION}"
            )
            conditions[first.name] = condition(REGISTERED, "False", "NoNode", message)
        for other in others:
            message = (
                f'SyncTargets "{first.name}" and "{other.name}" both claim {path} by '
                f'{PATH_ANNOTATION}; the older one, "{first.name}", has it; give "{other.name}" a '
                "path of its own"
            )
            conditions[other.name] = condition(REGISTERED, "False", "PathTaken", message)
    return drafts, conditions


def location_draft(space: str, location: Location) -> Draft:
    """The record of a Location."""
    record = LocationRecord(
        source=Source(API_LOCATION, space, "", location.name),
        generation=0,
        term="",
        trace="",
        labels=dict(location.metadata.labels),
        annotations=_annotations(location.metadata.annotations),
        instance_selector=location.spec.instance_selector,
    )
    return Draft("location", record)


def _profile(
    space: str,
    target: SyncTarget,
    path: NodePath,
    properties: Mapping[str, str],
    boxes: tuple[bytes, bytes],
) -> Profile:
    public_key, fleet_key = boxes
    return Profile(
        source=Source(API_SYNC_TARGET, space, "", target.name),
        generation=0,
        term="",
        trace="",
        destination=destination_id(space, target.metadata.uid),
        path=path,
        labels=dict(target.metadata.labels),
        annotations=_annotations(target.metadata.annotations),
        properties=dict(properties),
        public_key=public_key,
        fleet_key=fleet_key,
    )


def _age(target: SyncTarget) -> tuple[str, str]:
    extra = target.metadata.model_extra or {}
    return (str(extra.get("creationTimestamp", "")), target.name)


def _annotations(given: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in given.items() if key != LAST_APPLIED}
