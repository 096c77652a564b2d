"""Each placement has an object that lists where it goes, for display; delivery never waits.

That is its SinglePlacementSlice, and of a BindingPolicy its Binding, with the objects in force.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from controllers.core.inventory.where import binding_of, is_of_placement, is_up_to_date, slice_of
from controllers.placement_translator import PlacementTranslator
from controllers.work_queue import ALL, WorkQueue
from relay.ports import Clock, Space, SpaceError
from schemas.api import BindingPolicy, Destination, SyncTarget
from schemas.objects.selectors import LabelSelector
from schemas.records.placements import result_key

MANAGER = "leafcast-where"
PAUSE_SECONDS = 0.2


class InventoryView(Protocol):
    """What Locations and SyncTargets there are."""

    @property
    def known(self) -> bool:
        """Whether that is all."""
        ...

    def pairs(self, selectors: Sequence[LabelSelector]) -> Iterator[Destination]:
        """The pairs of a Location that one of the selectors matches and a SyncTarget there."""
        ...

    def targets(self, selectors: Sequence[LabelSelector]) -> Iterator[SyncTarget]:
        """The SyncTargets that one of the selectors matches, some of them several times."""
        ...


class WhereResolver:
    """Keeps the slices of one workload description space, over all inventory spaces."""

    def __init__(
        self,
        space: Space,
        clock: Clock,
        queue: WorkQueue[str],
        translator: PlacementTranslator,
        inventories: InventoryView,
    ) -> None:
        self._space = space
        self._clock = clock
        self._queue = queue
        self._translator = translator
        self._inventories = inventories

    async def run(self) -> None:
        """Reconcile until cancelled."""
        await self._queue.work(self.reconcile)

    async def reconcile(self, names: frozenset[str]) -> list[str]:
        """Bring the slices of these placements up to date; those to be tried again."""
        if ALL in names:
            names = names - {ALL} | self._translator.workloads.objects.keys()
        again = [name for name in sorted(names) if not await self._resolve(name)]
        # No one waits for what is only shown; a rest keeps it from the way of what is sent.
        await self._clock.sleep(PAUSE_SECONDS)
        return again

    async def _resolve(self, name: str) -> bool:
        """Bring a slice up to date; False if that is to be tried again."""
        workloads = self._translator.workloads
        if not self._inventories.known:
            return True
        held = workloads.resolver.objects.get(result_key(name))
        placement = workloads.objects.get(name)
        try:
            if placement is None:
                gone = not self._translator.placements.in_force(name)
                if gone and held is not None and is_of_placement(held):
                    await self._space.delete(result_key(name), held["metadata"]["uid"])
            elif name in workloads.placements:
                wanted = self._wanted(name, placement)
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
