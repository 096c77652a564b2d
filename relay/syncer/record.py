"""The record of what a syncer applied: known at once, and kept in DONE soon after.

What somebody waits for is written at once, with all that is new; all else is gathered for a moment.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping
from contextlib import suppress

from relay.ports import Bus, BusBroken, Clock
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import Done
from schemas.values.identity import short_key

BATCHES_AT_ONCE = 2
"""So that what comes meanwhile waits for one answer, and is written together."""
GATHER_SECONDS = 0.05
LAST_SECONDS_MAX = 2.0


class AppliedObjects:
    """What was applied, by object; `keep` writes what is new, in order for each object."""

    def __init__(self, store: Bus, clock: Clock) -> None:
        self.held: dict[ObjectKey, Done] = {}
        self.loaded = False
        # Whether the space is to be asked for what else was applied.
        self.is_partial = False
        self._store = store
        self._clock = clock
        self._unkept: dict[ObjectKey, Done | None] = {}
        self._writing: dict[ObjectKey, Done | None] = {}
        self._changed = asyncio.Event()
        self._due = asyncio.Event()
        self._batches = 0
        self._wrote: dict[ObjectKey, asyncio.Event] = {}

    @property
    def kept(self) -> bool:
        """Whether DONE says all that is held here."""
        return not self._unkept and not self._writing

    async def load(self) -> None:
        """Read what DONE holds; raises BusBroken."""
        self.held.update({done.key: done for done in await self._store.load_done()})
        self.is_partial = not self.held or await self._store.done_is_partial()
        self.loaded = True

    def put(self, done: Done) -> None:
        """Hold this from now on."""
        if self.held.get(done.key) != done:
            self.held[done.key] = done
            self._unkept[done.key] = done
            self._changed.set()

    async def complete(self, found: Iterable[Done]) -> None:
        """Hold what was found in the space, too, where nothing is held yet; raises BusBroken."""
        lost = [done for done in found if done.key not in self.held]
        for done in lost:
            self.put(done)
        if await self._store.done_is_partial():
            for done in lost:
                await self.stored(done.key)
            await self._store.complete_done()
        self.is_partial = False

    def erase(self, key: ObjectKey) -> None:
        """Hold nothing about the object from now on."""
        self.held.pop(key, None)
        self._unkept[key] = None
        self._changed.set()

    async def stored(self, key: ObjectKey) -> None:
        """Wait until DONE says what is held about the object."""
        while key in self._unkept or key in self._writing:
            self._due.set()
            await self._wrote.setdefault(key, asyncio.Event()).wait()

    async def keep(self) -> None:
        """Write to DONE until cancelled, then the rest; raises BusBroken in a group."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._gather())
                while True:
                    await self._due.wait()
                    self._due.clear()
                    if self._batches < BATCHES_AT_ONCE and (batch := self._take_idle()):
                        self._batches += 1
                        self._writing.update(batch)
                        group.create_task(self._write(batch))
        except asyncio.CancelledError:
            await self._keep_rest()
            raise

    def _take_idle(self) -> dict[ObjectKey, Done | None]:
        """Take what is new of those that are not being written."""
        idle = [key for key in self._unkept if key not in self._writing]
        return {key: self._unkept.pop(key) for key in idle}

    async def _keep_rest(self) -> None:
        """Who stops in good order asks its space for nothing again; that is all that it spares."""
        rest = self._writing | self._unkept
        with suppress(BusBroken, TimeoutError):
            async with asyncio.timeout(LAST_SECONDS_MAX):
                await self._store.store_done({_done_key(key): done for key, done in rest.items()})

    async def _gather(self) -> None:
        """Have written what nobody waits for, but not each by itself."""
        while True:
            await self._changed.wait()
            await self._clock.sleep(GATHER_SECONDS)
            self._changed.clear()
            self._due.set()

    async def _write(self, batch: Mapping[ObjectKey, Done | None]) -> None:
        await self._store.store_done({_done_key(key): done for key, done in batch.items()})
        self._batches -= 1
        for key in batch:
            del self._writing[key]
            if key not in self._unkept and (wrote := self._wrote.pop(key, None)):
                wrote.set()
        if any(key in self._wrote for key in self._unkept):
            self._due.set()
        elif self._unkept:
            self._changed.set()


def _done_key(key: ObjectKey) -> str:
    """The slot of an object in DONE: one subject token."""
    parts = "\0".join((key.group, key.resource, key.namespace, key.name))
    return short_key(hashlib.sha256(parts.encode()).digest()[:20])
