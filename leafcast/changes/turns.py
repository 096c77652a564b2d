"""Work on many things, some at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from relay.ports import first_of

AT_ONCE = 16

T = TypeVar("T")
R = TypeVar("R")


async def in_turns(
    items: Sequence[T], work: Callable[[T], Awaitable[R]], at_once: int = AT_ONCE
) -> list[R]:
    """Work on all of them, so many at a time; the results in the items' order.

    Raises what the work raises, and begins no more then.
    """
    waiting = iter(enumerate(items))
    results: dict[int, R] = {}

    async def worker() -> None:
        for number, item in waiting:
            results[number] = await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(at_once, len(items))):
                group.create_task(worker())
    except BaseExceptionGroup as failed:
        raise first_of(failed) from None
    return [results[number] for number in range(len(items))]
