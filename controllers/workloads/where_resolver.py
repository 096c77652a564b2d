"""Each placement has an object that lists where it goes, for display; delivery never waits.

That is its SinglePlacementSlice, and of a BindingPolicy its Binding, with the objects in force.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from controllers.core.inventory.where import binding_of, is_of_placement, is_up_to_date, slice_of
from controllers.inventory.inventories import Inventories
from controllers.work_queue import ALL, WorkQueue
from controllers.workloads.placement_translator import PlacementTranslator
from controllers.workloads.queue_reconciler import QueueReconciler
from relay.space_errors import SpaceError
from schemas.api.policy import BindingPolicy
from schemas.records.placements import result_key

MANAGER = "leafcast-where"
PAUSE_SECONDS = 0.2


class WhereResolver(QueueReconciler[str]):
    """Keeps the slices of one workload description space, over all inventory spaces."""

    def __init__(
        self, translator: PlacementTranslator, queue: WorkQueue[str], inventories: Inventories
    ) -> None:
        super().__init__(translator, queue)
        self._inventories = inventories

    async def reconcile(self, keys: frozenset[str]) -> Collection[str]:
        """Bring the slices of these placements up to date; those to be tried again."""
        if ALL in keys:
            keys = keys - {ALL} | self._translator.workloads.objects.keys()
        again = await super().reconcile(keys)
        # No one waits for what is only shown; a rest keeps it from the way of what is sent.
        await self._clock.sleep(PAUSE_SECONDS)
        return again

    async def _settle(self, key: str) -> bool:
        workloads = self._translator.workloads
        if not self._inventories.known:
            return True
        held = workloads.resolver.objects.get(result_key(key))
        placement = workloads.objects.get(key)
        try:
            if placement is None:
                gone = not self._translator.placements.in_force(key)
                if gone and held is not None and is_of_placement(held):
                    await self._space.delete(result_key(key), held["metadata"]["uid"])
            elif key in workloads.placements:
                wanted = self._wanted(key, placement)
                if held is None or not is_up_to_date(held, wanted):
                    await self._space.apply(wanted, MANAGER)
        except SpaceError:
            return False
        return True

    def _wanted(self, name: str, placement: Mapping[str, Any]) -> dict[str, Any]:
        workloads = self._translator.workloads
        parsed = workloads.placements[name]
        if not isinstance(parsed, BindingPolicy):
            return slice_of(placement, self._inventories.pairs(parsed.spec.location_selectors))
        targets = self._inventories.targets(parsed.spec.cluster_selectors)
        return binding_of(
            placement,
            self._translator.placements.entries(name),
            workloads.resolver.objects,
            (target.name for target in targets),
        )
