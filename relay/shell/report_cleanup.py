"""Erases children's reports that are not to be kept: behind the node's back, a few at a time.

However much junk a child says, nothing else waits for its removal; what another child left waits
for as much of it as is erased in the same time.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable

from relay.core.effects import DropReport
from relay.ports import Bus
from relay.waiting import SpareTime

AT_ONCE = 16
ROUNDS = 20
"""Of all others, between those: erasing is in no hurry, and a flood makes much of it."""
OF_CHILD_MAX, WAITING_MAX = 8 * 1024, 64 * 1024
"""Of more of a child, or of all, the oldest are forgotten, of all those of whoever left most; they
come again at the next start."""


class ReportCleanup:
    """Of each slot the last word on what to erase, by turns of the children."""

    def __init__(self, bus: Bus, used: Callable[[], float] = time.thread_time) -> None:
        """`used` is the processor's time, by which it tells whether others are at work."""
        self._bus = bus
        # By child, whose turn it is first.
        self._waiting: OrderedDict[str, OrderedDict[str, DropReport]] = OrderedDict()
        self._count = 0
        self._news = asyncio.Event()
        self._spare_time = SpareTime(used)

    def add(self, drop: DropReport) -> None:
        slots = self._waiting.setdefault(drop.child, OrderedDict())
        if slots.pop(drop.key, None) is None:
            self._count += 1
        slots[drop.key] = drop
        if len(slots) > OF_CHILD_MAX:
            self._take(drop.child)
        elif self._count > WAITING_MAX:
            self._take(max(self._waiting, key=lambda child: len(self._waiting[child])))
        self._news.set()

    def _take(self, child: str) -> DropReport:
        """The oldest of a child's."""
        slots = self._waiting[child]
        self._count -= 1
        _, drop = slots.popitem(last=False)
        if not slots:
            del self._waiting[child]
        return drop

    def _next(self) -> list[DropReport]:
        """The next few, one of each child in turn."""
        drops: list[DropReport] = []
        while self._waiting and len(drops) < AT_ONCE:
            child = next(iter(self._waiting))
            self._waiting.move_to_end(child)
            drops.append(self._take(child))
        return drops

    async def run(self) -> None:
        """Erase without end."""
        while True:
            await self._news.wait()
            self._news.clear()
            while drops := self._next():
                await self._bus.drop_reports(drops)
                await self._spare_time.wait(ROUNDS)
