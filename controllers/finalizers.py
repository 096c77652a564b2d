"""A placement that was issued stays to be seen until no snapshot lists it any more.

Without this, one that is deleted while the centre is away is only missing from a list, which proves
nothing. An embedded space tells every deletion, and needs none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controllers.placement_translator import PlacementTranslator
from controllers.ports import FinalizingSpace
from controllers.work_queue import WorkQueue
from relay.ports import NOT_FOUND, Conflict, SpaceError
from schemas.records.placements import placement_key

FINALIZER = "leafcast.io/placement"
MANAGER = "leafcast-finalizer"


class Finalizers:
    """Sets and releases the finalizer of one workload description space's placements."""

    def __init__(
        self, space: FinalizingSpace, queue: WorkQueue[str], translator: PlacementTranslator
    ) -> None:
        self._space = space
        self._queue = queue
        self._translator = translator

    async def run(self) -> None:
        """Reconcile until cancelled."""
        await self._queue.work(self.reconcile)

    async def reconcile(self, names: frozenset[str]) -> list[str]:
        """Bring the finalizers of these placements up to date; those to be tried again."""
        return [name for name in sorted(names) if not await self._settle(name)]

    async def _settle(self, name: str) -> bool:
        """Bring one placement's finalizer up to date; False if that is to be tried again."""
        workloads, kept = self._translator.workloads, self._translator.is_kept(name)
        obj, leaving = workloads.objects.get(name), workloads.leaving.get(name)
        try:
            if obj is not None and kept and not _has(obj):
                await self._space.apply(_wish(obj), MANAGER)
            # What went with the definition of its kind is held, and the definition waits for it.
            lets_go = not kept or workloads.is_undefined(name)
            if leaving is not None and lets_go and self._translator.known and _has(leaving):
                uid = leaving["metadata"].get("uid", "")
                await self._space.release(placement_key(name), FINALIZER, uid)
        except SpaceError as error:
            # A conflict is with another version of it, of which we are told.
            return isinstance(error, Conflict) or error.reason == NOT_FOUND
        return True


def _wish(obj: Mapping[str, Any]) -> dict[str, Any]:
    """With its UID: an apply would make anew what was deleted meanwhile."""
    metadata = {"name": obj["metadata"]["name"], "uid": obj["metadata"].get("uid", "")}
    said = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    return {**said, "metadata": {**metadata, "finalizers": [FINALIZER]}}


def _has(obj: Mapping[str, Any]) -> bool:
    return FINALIZER in (obj["metadata"].get("finalizers") or ())
