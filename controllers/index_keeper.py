"""The index is renewed at each change, gathered to one a second, and at least every 10 minutes."""

from __future__ import annotations

import asyncio

from controllers.issuing import Issuer
from relay.ports import Clock

INDEX_GATHER_SECONDS = 1.0
INDEX_MAX_AGE_SECONDS = 600.0


class IndexKeeper:
    """Issues the index; the first time at its start, for what a crash may have left unlisted."""

    def __init__(self, issuer: Issuer, clock: Clock) -> None:
        self._issuer = issuer
        self._clock = clock
        self._due = asyncio.Event()
        self._due.set()

    def renew(self) -> None:
        """Placements changed."""
        self._due.set()

    async def run(self) -> None:
        while True:
            await self._wait()
            self._due.clear()
            await self._issuer.issue_index()
            await self._clock.sleep(INDEX_GATHER_SECONDS)

    async def _wait(self) -> None:
        async with asyncio.TaskGroup() as group:
            ageing = group.create_task(self._age())
            await self._due.wait()
            ageing.cancel()

    async def _age(self) -> None:
        await self._clock.sleep(INDEX_MAX_AGE_SECONDS)
        self._due.set()
