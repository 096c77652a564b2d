"""What the event loop has to do besides: who is in no hurry lets all others go first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

IDLE_SECONDS = 0.00015
"""A round in which nobody did anything costs less of the processor, also on a slow machine."""
ROUND_TURNS = 3
"""Turns of the loop until what came by a socket has reached whoever waits for it."""


async def round_of_others(used: Callable[[], float] = time.thread_time) -> float:
    """Let all who are ready have a turn; the time of the processor that they took."""
    began = used()
    for _ in range(ROUND_TURNS):
        await asyncio.sleep(0)  # noqa: TID251 - no decision hangs on it
    return used() - began


def is_idle(took: float) -> bool:
    """Whether nobody had anything to do in a round that took so long."""
    return took < IDLE_SECONDS


async def spare_time(rounds: int) -> None:
    """Wait until nobody else has anything to do, or others had so many rounds."""
    for _ in range(rounds):
        if is_idle(await round_of_others()):
            return
