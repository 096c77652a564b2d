"""Waiting for whatever comes first, and giving way to others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from relay.ports import Clock

T = TypeVar("T")

TURN_SECONDS = 0.01


async def in_turns(items: Iterable[T], clock: Clock) -> AsyncIterator[T]:
    """Each of these; whenever a turn is over all else goes first."""
    ends = clock.now().seconds + TURN_SECONDS
    for item in items:
        if clock.now().seconds >= ends:
            await asyncio.sleep(0)  # noqa: TID251 - no decision hangs on it
            ends = clock.now().seconds + TURN_SECONDS
        yield item


async def until_due(wake: asyncio.Event, clock: Clock, due: float | None) -> None:
    """Until something happens or the monotonic second is there; without one, only the first."""
    if due is None:
        await wake.wait()
        return
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(wake.wait())
        timer = group.create_task(clock.sleep(max(due - clock.now().seconds, 0)))
        await asyncio.wait((waiting, timer), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        timer.cancel()
