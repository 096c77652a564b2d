"""Work that takes long, done in turns: between two of them all else goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable
from typing import TypeVar

from relay.ports import Clock

T = TypeVar("T")

TURN_SECONDS = 0.01


async def in_turns(items: Iterable[T], clock: Clock) -> AsyncGenerator[T, None]:
    """Each of these; whenever a turn is over all else goes first."""
    ends = clock.now().seconds + TURN_SECONDS
    for item in items:
        if clock.now().seconds >= ends:
            await asyncio.sleep(0)  # noqa: TID251 - no decision hangs on it
            ends = clock.now().seconds + TURN_SECONDS
        yield item
