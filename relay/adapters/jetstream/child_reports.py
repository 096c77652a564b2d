"""What the children say, out of STAT into the lane of each: one that floods waits for itself only.

All are read by one consumer. A child that says much more than the others, or fills its lane, is
read by a consumer of its own from that message on, as fast as the node takes what it says. The
server leaves it out for the common one, so reading its flood takes no time from reading others.
Nothing is lost. When it has been calm for a while, it is read with the others again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence

from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.loudness import LOUD_WORDS, Loudness
from relay.adapters.jetstream.periodic_yield import PeriodicYield
from relay.adapters.jetstream.read_places import ReadPlaces
from relay.adapters.jetstream.records import reported
from relay.adapters.jetstream.stream_reader import Stored, StreamReader, Take
from relay.ports import Clock
from relay.shell.inbox import FromChild, Inbox
from schemas.values import subjects
from schemas.values.identity import NodePath

CALM_SECONDS = 5.0
"""Who said little for so long is read with the others again."""
GROUP_MAX = 500
"""So many children share a consumer that knows their names: of thousands a server takes seconds."""
APART_MAX = 32
"""So many are read by themselves because of a full lane; who fills one then is waited for."""

logger = logging.getLogger(__name__)


class ChildReportsReader:
    """Reads reports and hellos of all children."""

    def __init__(self, connection: Connection, clock: Clock, path: NodePath, inbox: Inbox) -> None:
        self._connection = connection
        self._clock = clock
        self._path = path
        self._inbox = inbox
        # Up to where STAT was filled when the bus was started.
        self.former = 0
        # Who may say something: the common consumer leaves out all others while one is apart.
        self._children: set[str] = set()
        self._loudness = Loudness()
        # Who is read by itself, with the number of its words that were read so.
        self._apart: dict[str, int] = {}
        self._places = ReadPlaces()
        self._regroup = asyncio.Event()
        self._yield = PeriodicYield()

    def heard_before(self, names: Iterable[str], last: int) -> None:
        """What STAT tells at the start: of whom there is a hello, and where it ends."""
        self.former = last
        self._children |= {*names}

    def joined(self, name: str) -> None:
        """Somebody is a child now."""
        if name not in self._children:
            self._children.add(name)
            if self._apart:
                # What it said meanwhile nobody has read.
                self._regroup.set()

    def left(self, name: str) -> None:
        """Somebody is a child no more."""
        self._children.discard(name)

    async def run(self) -> None:
        """Read without end."""
        async with asyncio.TaskGroup() as group:

            async def take(stored: Stored) -> None:
                await self._take(stored, group)

            while True:
                self._regroup.clear()
                await self._read_together(take)

    async def _read_together(self, take: Take) -> None:
        """Read all who are not apart, until they are others."""
        readers = [(names, self._reader(names)) for names in self._groups()]
        async with asyncio.TaskGroup() as group:
            following = [group.create_task(reader.follow(take)) for _, reader in readers]
            await self._regroup.wait()
            for task in following:
                task.cancel()
        for names, reader in readers:
            self._places.read(reader.next_sequence, names)

    def _groups(self) -> list[list[str] | None]:
        """Who shares a consumer: all, by one that knows no names, or all but who is apart."""
        if not self._apart:
            return [None]
        names = sorted(self._children - self._apart.keys())
        return [names[at : at + GROUP_MAX] for at in range(0, len(names), GROUP_MAX)]

    def _reader(self, names: Sequence[str] | None) -> StreamReader:
        filters = [subject for name in names or () for subject in self._said_by(name)]
        first = self._places.first(names)
        return StreamReader(self._connection, self._clock, "STAT", filters=filters, first=first)

    def _said_by(self, name: str) -> tuple[str, str]:
        path = self._path.child(name)
        return subjects.stat(path, "*"), subjects.node_self(path)

    async def _take(self, stored: Stored, group: asyncio.TaskGroup) -> None:
        await self._yield.next()
        child = self._child_of(stored.subject)
        if child == subjects.FENCE_KEY:
            return
        if child in self._apart or stored.sequence < self._places.of(child):
            return
        if self._loudness.heard(child, len(stored.data), self._clock.now().seconds):
            self._part(child, stored.sequence, group)
            return
        for event in reported(stored, self.former):
            if not await self._put(event):
                self._part(child, stored.sequence, group)
                return

    async def _put(self, event: FromChild) -> bool:
        """Put a word into its lane; False if that is full, and its child can be read by itself."""
        if self._inbox.offer(event):
            return True
        if self._inbox.is_full_of(event.child) and len(self._apart) < APART_MAX:
            return False
        await self._inbox.put_from_child(event)
        return True

    def _child_of(self, subject: str) -> str:
        return subject[len(self._path.prefix) + 1 :].partition(".")[0]

    def _part(self, child: str, first: int, group: asyncio.TaskGroup) -> None:
        logger.info("%s: %s says more than is taken", self._path, child)
        self._apart[child] = 0
        self._places.goes_on(child, first)
        name = f"reports:{self._path.child(child)}"
        group.create_task(self._read_apart(child), name=name)
        self._regroup.set()

    async def _read_apart(self, child: str) -> None:
        reader = self._reader([child])

        async def take(stored: Stored) -> None:
            await self._yield.next()
            self._apart[child] += 1
            for event in reported(stored, self.former):
                await self._inbox.put_after_former(event)

        async with asyncio.TaskGroup() as group:
            following = group.create_task(reader.follow(take))
            calm = False
            while not calm:
                before = self._apart[child]
                await self._clock.sleep(CALM_SECONDS)
                calm = not reader.taking and self._apart[child] - before < LOUD_WORDS
            following.cancel()
        del self._apart[child]
        self._places.goes_on(child, reader.next_sequence)
        self._regroup.set()
