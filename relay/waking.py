"""Waiting for whatever comes first: that something happens, or that it is time."""

from __future__ import annotations

import asyncio

from relay.ports import Clock


async def until_due(wake: asyncio.Event, clock: Clock, due: float | None) -> None:
    """Wait until something happens or the monotonic second is there; without one, for the first."""
    if due is None:
        await wake.wait()
        return
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(wake.wait())
        timer = group.create_task(clock.sleep(max(due - clock.now().seconds, 0)))
        await asyncio.wait((waiting, timer), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        timer.cancel()
