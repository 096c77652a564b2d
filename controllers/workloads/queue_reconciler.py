"""What works beside a placement translator: on one queue each, key by key."""

from __future__ import annotations

from collections.abc import Collection
from typing import Generic, TypeVar

from controllers.work_queue import WorkQueue
from controllers.workloads.placement_translator import PlacementTranslator
from schemas.objects.objects import ObjectKey

T = TypeVar("T", str, ObjectKey)


class QueueReconciler(Generic[T]):
    """Reconciles the keys of a queue of one workload description space."""

    def __init__(self, translator: PlacementTranslator, queue: WorkQueue[T]) -> None:
        self._translator = translator
        self._queue: WorkQueue[T] = queue
        self._relay, self._space, self._clock = translator.relay, translator.space, translator.clock

    async def run(self) -> None:
        """Reconcile until cancelled; raises BusBroken."""
        await self._queue.work(self.reconcile)

    async def reconcile(self, keys: frozenset[T]) -> Collection[T]:
        """Bring what these name up to date; those to be tried again."""
        return [key for key in sorted(keys) if not await self._settle(key)]

    async def _settle(self, key: T) -> bool:
        """Bring what one key names up to date; False if that is to be tried again."""
        raise NotImplementedError
