"""Each StatusCollector says in its status what is wrong with it."""

from __future__ import annotations

from controllers.core.collectors import COLLECTORS
from controllers.placement_translator import PlacementTranslator
from controllers.status_writing import write_status
from controllers.work_queue import ALL, WorkQueue
from relay.ports import Space
from schemas.objects import ObjectKey


class CollectorErrors:
    """Writes the statuses of the StatusCollectors of one workload description space."""

    def __init__(
        self, space: Space, queue: WorkQueue[str], translator: PlacementTranslator
    ) -> None:
        self._space = space
        self._queue = queue
        self._translator = translator

    async def run(self) -> None:
        """Reconcile until cancelled."""
        await self._queue.work(self.reconcile)

    async def reconcile(self, names: frozenset[str]) -> list[str]:
        """Say what is wrong with these; those to be tried again."""
        collectors = self._translator.workloads.collectors
        if ALL in names:
            names = names - {ALL} | collectors.objects.keys()
        return [name for name in sorted(names) if not await self._write(name)]

    async def _write(self, name: str) -> bool:
        collectors = self._translator.workloads.collectors
        obj = collectors.objects.get(name)
        if obj is None:
            return True
        status: dict[str, object] = {"errors": list(collectors.invalid.get(name, ()))}
        if generation := obj["metadata"].get("generation"):
            status["observedGeneration"] = generation
        return await write_status(self._space, ObjectKey(*COLLECTORS, "", name), obj, status)
