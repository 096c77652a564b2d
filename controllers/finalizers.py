"""A placement that was issued stays to be seen until its deletion is in the ledger.

Without this, one that is deleted while the centre is away is only missing from a list, which proves
nothing. An embedded space tells every deletion, and needs none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from controllers.core.workloads import placement_key
from controllers.following import RETRY_SECONDS, Gathering
from controllers.placement_translator import PlacementTranslator
from controllers.ports import FinalizingSpace
from relay.ports import Clock, Conflict, SpaceError

FINALIZER = "leafcast.io/placement"
MANAGER = "leafcast-finalizer"
_NOT_FOUND = "NotFound"


class Finalizers:
    """Sets and releases the finalizer of one workload description space's placements."""

    def __init__(
        self, space: FinalizingSpace, clock: Clock, translator: PlacementTranslator
    ) -> None:
        self._space = space
        self._clock = clock
        self._translator = translator
        self._waiting: Gathering[str] = Gathering(clock)

    def look(self, names: Iterable[str]) -> None:
        """Look again at these placements: what is in the ledger of them may be another."""
        self._waiting.add(names)

    async def run(self) -> None:
        """Settle until cancelled."""
        while True:
            names = await self._waiting.take()
            again = [name for name in sorted(names) if not await self._settle(name)]
            if again:
                await self._clock.sleep(RETRY_SECONDS)
                self._waiting.add(again)

    async def _settle(self, name: str) -> bool:
        """Bring one placement's finalizer up to date; False if that is to be tried again."""
        workloads, in_force = self._translator.workloads, self._translator.in_force(name)
        obj, leaving = workloads.objects.get(name), workloads.leaving.get(name)
        try:
            if obj is not None and in_force and not _has(obj):
                await self._space.apply(_wish(obj), MANAGER)
            if leaving is not None and not in_force and self._translator.known and _has(leaving):
                uid = leaving["metadata"].get("uid", "")
                await self._space.release(placement_key(name), FINALIZER, uid)
        except SpaceError as error:
            # A conflict is with another version of it, of which we are told.
            return isinstance(error, Conflict) or error.reason == _NOT_FOUND
        return True


def _wish(obj: Mapping[str, Any]) -> dict[str, Any]:
    """With its UID: an apply would make anew what was deleted meanwhile."""
    metadata = {"name": obj["metadata"]["name"], "uid": obj["metadata"].get("uid", "")}
    said = {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    return {**said, "metadata": {**metadata, "finalizers": [FINALIZER]}}


def _has(obj: Mapping[str, Any]) -> bool:
    return FINALIZER in (obj["metadata"].get("finalizers") or ())
