"""Erases children's reports that are not to be kept: behind the node's back, a few at a time.

However much junk a child says, nothing else waits for its removal.
"""

from __future__ import annotations

import asyncio
from itertools import islice

from relay.core.effects import DropReport
from relay.ports import Bus
from relay.spare_time import SpareTime

AT_ONCE = 16
ROUNDS = 20
"""Of all others, between those: erasing is in no hurry, and a flood makes much of it."""
WAITING_MAX = 64 * 1024
"""Of more the oldest are forgotten; they come again at the next start."""


class ReportCleanup:
    """Of each slot the last word on what to erase."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._waiting: dict[tuple[str, str], DropReport] = {}
        self._news = asyncio.Event()
        self._spare_time = SpareTime()

    def add(self, drop: DropReport) -> None:
        slot = (drop.child, drop.key)
        self._waiting.pop(slot, None)
        self._waiting[slot] = drop
        if len(self._waiting) > WAITING_MAX:
            del self._waiting[next(iter(self._waiting))]
        self._news.set()

    async def run(self) -> None:
        """Erase without end."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._waiting:
                slots = list(islice(self._waiting, AT_ONCE))
                await self._bus.drop_reports([self._waiting.pop(slot) for slot in slots])
                await self._spare_time.wait(ROUNDS)
