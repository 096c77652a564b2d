"""A placement that was issued stays to be seen until no snapshot lists it any more.

Without this, one that is deleted while the centre is away is only missing from a list, which proves
nothing. An embedded space tells every deletion, and needs none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controllers.work_queue import WorkQueue
from controllers.workloads.placement_translator import PlacementTranslator
from controllers.workloads.queue_reconciler import QueueReconciler
from relay.space_errors import NOT_FOUND, Conflict, SpaceError
from relay.space_port import FinalizingSpace
from schemas.records.placements import placement_key

FINALIZER = "leafcast.io/placement"
MANAGER = "leafcast-finalizer"


class Finalizers(QueueReconciler[str]):
    """Sets and releases the finalizer of one workload description space's placements."""

    def __init__(
        self, translator: PlacementTranslator, queue: WorkQueue[str], space: FinalizingSpace
    ) -> None:
        super().__init__(translator, queue)
        self._finalizing = space

    async def _settle(self, key: str) -> bool:
        workloads, kept = self._translator.workloads, self._translator.is_kept(key)
        obj, leaving = workloads.objects.get(key), workloads.leaving.get(key)
        try:
            if obj is not None and kept and not _has(obj):
                await self._space.apply(_wish(obj), MANAGER)
            # What went with the definition of its kind is held, and the definition waits for it.
            lets_go = not kept or workloads.is_undefined(key)
            lets_go = lets_go and self._translator.placements.known
            if leaving is not None and lets_go and _has(leaving):
                uid = leaving["metadata"].get("uid", "")
                await self._finalizing.release(placement_key(key), FINALIZER, uid)
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
