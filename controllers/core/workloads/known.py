"""Whether what was written just now is known already: by the versions of objects, and no clock."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from controllers.core.rollout.rollouts import ROLLOUTS
from controllers.core.workloads.space import CONTROL_KINDS, Workloads
from schemas.objects.objects import ObjectKey
from schemas.records.placements import KINDS, placement_at

_PLACEMENTS = frozenset((kind.group, kind.resource) for kind in KINDS)


def knows(
    workloads: Workloads, followed: AbstractSet[tuple[str, str]], written: Mapping[ObjectKey, str]
) -> bool:
    """Whether each of these is known, at the version with which it was written or a later one.

    What no placement may select is not `followed`, and need not be known.
    """
    asked = followed - (CONTROL_KINDS - _PLACEMENTS - {ROLLOUTS})
    return all(
        _version_of(workloads, key) >= _number(version)
        for key, version in written.items()
        if key.group_resource in asked
    )


def _version_of(workloads: Workloads, key: ObjectKey) -> int:
    """The version of an object that is known; 0 if it is not."""
    name = placement_at(key)
    if key.group_resource == ROLLOUTS:
        held = workloads.rollouts.objects.get(key.name)
    elif name is None:
        held = workloads.resolver.objects.get(key)
    else:
        held = workloads.objects.get(name)
    return _number(str(held["metadata"].get("resourceVersion") or "")) if held else 0


def _number(version: str) -> int:
    number = version.partition(".")[0]
    return int(number) if number.isascii() and number.isdigit() else 0
