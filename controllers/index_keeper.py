"""The index is renewed at each change, gathered to one a second, and at least every 10 minutes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from controllers.issuing import Issuer
from relay.core.tombstones import EVERY_SECONDS
from relay.ports import Clock

INDEX_GATHER_SECONDS = 1.0
INDEX_AFTER_SECONDS = 0.1
"""How long the index stands back after a change, so that the deltas it lists go first."""
INDEX_MAX_AGE_SECONDS = 600.0


class IndexKeeper:
    """Issues the index; at its start only if the ledger's is old, or a crash left it incomplete.

    It lets go of what the ledger holds no more, and `swept` hears of that, now and then.
    """

    def __init__(self, issuer: Issuer, clock: Clock) -> None:
        self._issuer = issuer
        self._clock = clock
        self._due = asyncio.Event()
        self._sweep_at = clock.now().seconds + EVERY_SECONDS
        self.swept: Callable[[], None] = lambda: None

    def renew(self) -> None:
        """Placements changed."""
        self._due.set()

    async def run(self) -> None:
        age = self._issuer.index_age_seconds()
        left = 0.0 if age is None else INDEX_MAX_AGE_SECONDS - age
        while True:
            if left > 0 and not self._due.is_set():
                await self._wait(left)
            self._due.clear()
            await self._issuer.issue_index()
            self._sweep()
            left = INDEX_MAX_AGE_SECONDS
            await self._clock.sleep(INDEX_GATHER_SECONDS)

    def _sweep(self) -> None:
        now = self._clock.now().seconds
        if now >= self._sweep_at:
            self._sweep_at = now + EVERY_SECONDS
            self._issuer.forget_old()
            self.swept()

    async def _wait(self, seconds: float) -> None:
        async with asyncio.TaskGroup() as group:
            ageing = group.create_task(self._age(seconds))
            await self._due.wait()
            changed = not ageing.done()
            ageing.cancel()
        if changed:
            await self._clock.sleep(INDEX_AFTER_SECONDS)

    async def _age(self, seconds: float) -> None:
        await self._clock.sleep(seconds)
        self._due.set()
