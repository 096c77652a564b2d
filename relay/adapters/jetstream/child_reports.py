"""What the children say, out of STAT into the lane of each: one that floods waits for itself only.

All are read by one consumer. A child that fills its lane much faster than the others is passed over
there, and read by a consumer of its own from that message on, as fast as the node takes what it
says; nothing of it is lost. When that one has caught up, the child is read with the others again.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.periodic_yield import PeriodicYield
from relay.adapters.jetstream.records import reported
from relay.adapters.jetstream.stream_reader import Stored, StreamReader
from relay.inbox import FromChild, Inbox
from relay.ports import Clock
from schemas import subjects
from schemas.identity import NodePath

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Apart:
    """A child that is read by itself; `passed_over` is the last message of it that others saw."""

    passed_over: int
    caught_up: asyncio.Event


class ChildReports:
    """Reads reports and hellos of all children."""

    def __init__(self, connection: Connection, clock: Clock, path: NodePath, inbox: Inbox) -> None:
        self._connection = connection
        self._clock = clock
        self._path = path
        self._inbox = inbox
        # Up to where STAT was filled when the bus was started.
        self.former = 0
        self._apart: dict[str, _Apart] = {}
        self._yield = PeriodicYield()

    async def run(self) -> None:
        """Read without end."""
        async with asyncio.TaskGroup() as group:

            async def take(stored: Stored) -> None:
                await self._take(stored, group)

            await StreamReader(self._connection, self._clock, "STAT").follow(take)

    async def _take(self, stored: Stored, group: asyncio.TaskGroup) -> None:
        await self._yield.next()
        apart = self._apart.get(self._child_of(stored.subject)) if self._apart else None
        if apart is not None:
            # Unread: what others say waits behind it, and there may be thousands in a second.
            apart.passed_over = stored.sequence
            return
        for event in reported(stored, self.former):
            await self._take_event(event, stored, group)

    def _child_of(self, subject: str) -> str:
        return subject[len(self._path.prefix) + 1 :].partition(".")[0]

    async def _take_event(self, event: FromChild, stored: Stored, group: asyncio.TaskGroup) -> None:
        apart = self._apart.get(event.child)
        if apart is not None:
            apart.passed_over = stored.sequence
        elif not self._inbox.offer(event):
            if not self._inbox.hogged_by(event.child):
                await self._inbox.put_from_child(event)
                return
            logger.info("%s: %s says more than is taken", self._path, event.child)
            self._apart[event.child] = _Apart(stored.sequence, asyncio.Event())
            name = f"reports:{self._path.child(event.child)}"
            group.create_task(self._read_apart(event.child, stored.sequence), name=name)

    async def _read_apart(self, child: str, first: int) -> None:
        apart = self._apart[child]
        path = self._path.child(child)
        filters = [subjects.stat(path, "*"), subjects.node_self(path)]

        async def take(stored: Stored) -> None:
            await self._yield.next()
            if self._apart.get(child) is not apart:
                return
            for event in reported(stored, self.former):
                await self._inbox.put_from_child(event)
            # Whatever follows the last one passed over is still to come to the common reader.
            if stored.sequence >= apart.passed_over:
                del self._apart[child]
                apart.caught_up.set()

        reader = StreamReader(self._connection, self._clock, "STAT", filters=filters, first=first)
        following = asyncio.get_running_loop().create_task(reader.follow(take))
        try:
            await apart.caught_up.wait()
        finally:
            following.cancel()
            await asyncio.wait([following])
