"""A placement has one Rollout: a second one is refused before anything is changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from leafcast.changes.space_pair import listed
from relay.space_port import Space
from schemas.objects.objects import ObjectKey
from schemas.values.groups import DENATURED_GROUP

ROLLOUTS = (DENATURED_GROUP, "rollouts")


async def second_rollouts(
    space: Space, wished: Mapping[ObjectKey, Mapping[str, Any]]
) -> list[tuple[ObjectKey, str]]:
    """Rollouts among these of a placement that has another one, and why they are refused."""
    ours = {key: obj for key, obj in wished.items() if key.group_resource == ROLLOUTS}
    if not ours:
        return []
    return list(_second(await listed(space, ROLLOUTS) | ours, ours))


def _second(
    known: Mapping[ObjectKey, Mapping[str, Any]], wished: Iterable[ObjectKey]
) -> Iterator[tuple[ObjectKey, str]]:
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
