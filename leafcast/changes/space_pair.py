"""The two spaces in which people write at the centre."""

from __future__ import annotations

from dataclasses import dataclass

from leafcast.ask.session import in_inventory
from relay.space_port import Space
from schemas.objects.objects import ObjectKey


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
