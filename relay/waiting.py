"""Waiting: for the first or for all, in turns with others, or until these have nothing to do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar

from relay.ports import Clock, first_of


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


async def happens(event: asyncio.Event, seconds: float | None) -> bool:
    """Wait for an event, so many seconds at most; whether it happened."""
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


T = TypeVar("T")
R = TypeVar("R")


@asynccontextmanager
async def work_group() -> AsyncIterator[asyncio.TaskGroup]:
    """A group of tasks that raises what broke first, and no group of that."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as broken:
        raise first_of(broken) from None


AT_ONCE = 16


async def some_at_once(
    items: Sequence[T], work: Callable[[T], Awaitable[R]], most: int = AT_ONCE
) -> list[R]:
    """Work on all of them, so many at a time; the results in the items' order.

    Raises what the work raises, and begins no more then.
    """
    waiting = iter(enumerate(items))
    results: dict[int, R] = {}

    async def worker() -> None:
        for number, item in waiting:
            results[number] = await work(item)

    async with work_group() as group:
        for _ in range(min(most, len(items))):
            group.create_task(worker())
    return [results[number] for number in range(len(items))]


TURN_SECONDS = 0.01


async def in_turns(items: Iterable[T], clock: Clock) -> AsyncGenerator[T, None]:
    """Each of these; whenever a turn is over all else goes first."""
    ends = clock.now().seconds + TURN_SECONDS
    for item in items:
        if clock.now().seconds >= ends:
            await asyncio.sleep(0)  # noqa: TID251 - no decision hangs on it
            ends = clock.now().seconds + TURN_SECONDS
        yield item


IDLE_SECONDS = 0.00015
"""A round in which nobody did anything costs less of the processor."""
IDLE_MAX_SECONDS = 0.001
"""The same on a slow machine, where it is told by the shortest round seen."""
ROUND_TURNS = 3
"""Turns of the loop until what came by a socket has reached whoever waits for it."""


class SpareTime:
    """Tells by the processor's time whether others have something to do."""

    def __init__(self, used: Callable[[], float] = time.thread_time) -> None:
        self._used = used
        self._shortest = IDLE_MAX_SECONDS

    async def round_of_others(self) -> bool:
        """Let all who are ready have a turn; whether nobody had anything to do in it."""
        began = self._used()
        for _ in range(ROUND_TURNS):
            await asyncio.sleep(0)  # noqa: TID251 - no decision hangs on it
        took = self._used() - began
        self._shortest = min(self._shortest, took)
        return took < max(IDLE_SECONDS, min(2 * self._shortest, IDLE_MAX_SECONDS))

    async def wait(self, rounds: int) -> None:
        """Wait until nobody else has anything to do, or others had so many rounds."""
        for _ in range(rounds):
            if await self.round_of_others():
                return
