"""What `apply --place` writes beside the objects: a placement that names just them."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from leafcast.changes.forms import Placing
from leafcast.changes.placements_by_names import (
    SelectsOtherwise,
    Treatment,
    is_much,
    placeable,
    placement_of,
    treatments_in,
)
from leafcast.manifest_sources import BadManifests
from relay.space_port import Object, Space
from schemas.objects.objects import ObjectKey
from schemas.records.placements import EDGE_PLACEMENTS, placement_key
from schemas.values.wording import many, some_of

PLACING_MANAGER = "leafcast-place"
"""Whose fields the clauses and destinations are that `--place` writes; others' stay."""
NAMED_MAX = 3


async def placement_wanted(
    workloads: Space, placing: Placing, objects: Mapping[ObjectKey, Mapping[str, Any]]
) -> Object:
    """The EdgePlacement of these objects, treated as the one that is there treats them.

    Raises BadManifests if it cannot be made, or if much would leave it that nobody gave up.
    """
    key = placement_key(EDGE_PLACEMENTS.named(placing.name))
    if key in objects:
        raise _refused(placing, "it is in the files itself; leave --place out, or say another name")
    named = placeable(objects)
    if not named:
        raise _refused(placing, "nothing in the files can be sent; add a workload to them")
    before = await workloads.get(key)
    treatments = _treatments(placing, before)
    leaving = treatments.keys() - named
    if is_much(leaving, treatments.keys()) and not placing.prune_all:
        raise _refused(
            placing,
            f"{_told(leaving)} of {len(treatments):,} are in the files no more; they would leave "
            "it, and every edge; if that is meant, say --prune-all",
        )
    return placement_of(placing.name, named, _locations(placing, before), treatments)


def notes_on(
    placing: Placing, before: Mapping[str, Any] | None, after: Mapping[str, Any]
) -> list[str]:
    """What is to be known of the placement that was written."""
    if before is None:
        everywhere = (
            f"Note: epl/{placing.name} goes to every destination; "
            "say --where, as in --where env=prod, if it is to go to some"
        )
        return [everywhere] if placing.where is None else []
    leaving = _treatments(placing, before).keys() - _treatments(placing, after).keys()
    if not leaving:
        return []
    they = "it stays" if len(leaving) == 1 else "they stay"
    left = (
        f"Note: {_told(leaving)} left epl/{placing.name}, being in the files no more; "
        f"{they} at the centre until deleted there"
    )
    return [left]


def _told(keys: Set[ObjectKey]) -> str:
    titles = [
        f"{key.namespace}/{key.resource}/{key.name}"
        if key.namespace
        else f"{key.resource}/{key.name}"
        for key in sorted(keys)
    ]
    return f"{many(len(titles), 'object')} ({some_of(titles, NAMED_MAX)})"


def _treatments(
    placing: Placing, placement: Mapping[str, Any] | None
) -> dict[ObjectKey, Treatment]:
    try:
        return {} if placement is None else treatments_in(placement)
    except SelectsOtherwise as error:
        raise _refused(
            placing,
            f"it selects objects otherwise than by names ({error.field}), so what is in "
            "the files would not be all of it; say another name, or delete that placement first",
        ) from None


def _locations(placing: Placing, before: Mapping[str, Any] | None) -> list[Any]:
    if placing.where is not None:
        return [placing.where.to_kubernetes()]
    return [{}] if before is None else list(before.get("spec", {}).get("locationSelectors") or ())


def _refused(placing: Placing, why: str) -> BadManifests:
    return BadManifests([f"--place {placing.name}: {why}"])
