"""Each CustomTransform says in its status what is wrong with it, and who else has its kind."""

from __future__ import annotations

from controllers.core.transforms import TRANSFORMS
from controllers.placement_translator import PlacementTranslator
from controllers.status_writing import write_status
from controllers.work_queue import WorkQueue
from relay.ports import Space
from schemas.objects import ObjectKey


class TransformStatuses:
    """Writes into one workload description space what is known of its CustomTransforms."""

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
        """Bring the statuses of these up to date; those to be tried again."""
        return [name for name in sorted(names) if not await self._write(name)]

    async def _write(self, name: str) -> bool:
        workloads, key = self._translator.workloads, ObjectKey(*TRANSFORMS, "", name)
        obj = workloads.transforms.objects.get(name)
        if obj is None:
            return True
        status = workloads.transforms.status(name, workloads.missing.served)
        return await write_status(self._space, key, obj, status)
