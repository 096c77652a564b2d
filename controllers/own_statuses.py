"""Objects of one kind say in their own status what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from controllers.status_writing import write_status
from controllers.work_queue import ALL, WorkQueue
from relay.ports import Space
from schemas.objects import ObjectKey

Objects = Mapping[str, Mapping[str, Any]]
"""By name; these kinds have no namespace."""


class OwnStatuses:
    """Writes the statuses of a kind into one workload description space."""

    def __init__(
        self,
        space: Space,
        queue: WorkQueue[str],
        kind: tuple[str, str],
        objects: Callable[[], Objects],
        status: Callable[[str], Mapping[str, Any]],
    ) -> None:
        """`kind` is group and resource; `status` says what that of an object is to be, by name.

        Both functions look at what is known now: after a start that is another value.
        """
        self._space = space
        self._queue = queue
        self._kind = kind
        self._objects = objects
        self._status = status

    async def run(self) -> None:
        """Reconcile until cancelled."""
        await self._queue.work(self.reconcile)

    async def reconcile(self, names: frozenset[str]) -> list[str]:
        """Bring the statuses of these up to date; those to be tried again."""
        objects = self._objects()
        if ALL in names:
            names = names - {ALL} | objects.keys()
        there = [(name, objects[name]) for name in sorted(names) if name in objects]
        return [name for name, obj in there if not await self._write(name, obj)]

    async def _write(self, name: str, obj: Mapping[str, Any]) -> bool:
        key = ObjectKey(*self._kind, "", name)
        return await write_status(self._space, key, obj, self._status(name))
