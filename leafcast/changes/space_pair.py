"""The two spaces in which people write at the centre, and what lies in them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leafcast.ask.session import in_inventory
from relay.space_errors import SpaceError
from relay.space_port import Space
from schemas.objects.objects import ObjectKey


async def listed(space: Space, kind: tuple[str, str]) -> dict[ObjectKey, Mapping[str, Any]]:
    """The cluster-scoped objects of a kind, by key; none where the kind is not served."""
    try:
        listing = await space.list(*kind)
    except SpaceError:
        # The batch may bring its definition; if not, the writing of its objects says why.
        return {}
    return {ObjectKey(*kind, "", obj["metadata"]["name"]): obj for obj in listing.objects}


@dataclass(frozen=True, slots=True)
class SpacePair:
    """The centre's first space of workloads, and its first inventory."""

    workloads: Space
    inventory: Space

    def space_for(self, key: ObjectKey) -> Space:
        """Where an object lies.

        Locations, SyncTargets and what says their properties lie in the inventory, all else beside.
        """
        return self.inventory if in_inventory(key) else self.workloads
