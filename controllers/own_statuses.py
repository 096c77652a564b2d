"""Objects that are read at the centre alone say in their own status what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable

from controllers.core.workloads.own_statuses import own_status
from controllers.core.workloads.space import Workloads
from controllers.status_writing import write_status
from controllers.work_queue import WorkQueue
from relay.ports import Clock, Space
from schemas.objects.objects import ObjectKey


class OwnStatuses:
    """Writes these statuses into one workload description space."""

    def __init__(
        self,
        space: Space,
        clock: Clock,
        queue: WorkQueue[ObjectKey],
        workloads: Callable[[], Workloads],
    ) -> None:
        """`workloads` are those that are known now: after a start they are others."""
        self._space = space
        self._clock = clock
        self._queue = queue
        self._workloads = workloads

    async def run(self) -> None:
        """Reconcile until cancelled."""
        await self._queue.work(self.reconcile)

    async def reconcile(self, keys: frozenset[ObjectKey]) -> list[ObjectKey]:
        """Bring the statuses of these up to date; those to be tried again."""
        return [key for key in sorted(keys) if not await self._write(key)]

    async def _write(self, key: ObjectKey) -> bool:
        found = own_status(self._workloads(), key, self._clock.now().wall_ms)
        return found is None or await write_status(self._space, key, *found)
