"""Placements that would wait for each other, and second Rollouts of one: refused, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from leafcast.changes.space_pair import listed
from relay.space_port import Space
from schemas.objects.annotations import DEPENDS_ON
from schemas.objects.objects import Object, ObjectKey
from schemas.records.placements import KINDS, PlacementKind
from schemas.records.placing import dependencies_of, reached
from schemas.values.groups import ROLLOUTS

ObjectsByKey = Mapping[ObjectKey, Object]


async def second_rollouts(space: Space, wished: ObjectsByKey) -> list[tuple[ObjectKey, str]]:
    """Rollouts among these of a placement that has another one, and why they are refused."""
    ours = {key: obj for key, obj in wished.items() if key.group_resource == ROLLOUTS}
    if not ours:
        return []
    return list(_second(await listed(space, ROLLOUTS) | ours, ours))


def _second(known: ObjectsByKey, wished: Iterable[ObjectKey]) -> Iterator[tuple[ObjectKey, str]]:
    for key in wished:
        mine = _placement(known[key])
        others = [each.name for each in known if each != key and _placement(known[each]) == mine]
        if others:
            kind, name = mine
            said = f'spec.placement: {kind} "{name}" has Rollout "{min(others)}" already'
            yield key, f"{said}; change that one, or delete it first"


def _placement(obj: Mapping[str, Any]) -> tuple[str, str]:
    placement = (obj.get("spec") or {}).get("placement") or {}
    return str(placement.get("kind") or "EdgePlacement"), str(placement.get("name"))


async def circles(space: Space, wished: ObjectsByKey) -> list[tuple[ObjectKey, str]]:
    """Placements among these that would wait for themselves by way of others, and why not."""
    found = []
    for kind in KINDS:
        ours = {k: obj for k, obj in wished.items() if k.group_resource == _name(kind)}
        if any(_waits_for(obj) for obj in ours.values()):
            known = await listed(space, _name(kind)) | ours
            named = {key.name: _waits_for(obj) for key, obj in known.items()}
            found += [(key, said) for key in ours if (said := _circle(key.name, named))]
    return found


def _circle(name: str, named: Mapping[str, tuple[str, ...]]) -> str:
    ahead = reached(named, name)
    if name not in ahead:
        return ""
    members = sorted(other for other in ahead if name in reached(named, other))
    path = f"metadata.annotations[{DEPENDS_ON}]"
    return f"{path}: {', '.join(members)} would wait for each other; take one out of the circle"


def _waits_for(obj: Mapping[str, Any]) -> tuple[str, ...]:
    annotations = (obj.get("metadata") or {}).get("annotations") or {}
    return dependencies_of({DEPENDS_ON: str(annotations.get(DEPENDS_ON) or "")})


def _name(kind: PlacementKind) -> tuple[str, str]:
    return kind.group, kind.resource
