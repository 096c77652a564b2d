"""A cancellation that comes together with an answer is not lost, on Python 3.11 either.

There `asyncio.wait_for` returns the answer and forgets the cancellation (mended in 3.12, cpython
issue 86296), and nats-py waits that way for everything: a task cancelled at that moment runs on for
ever. So below 3.12 this package has `asyncio.wait_for` behave as it does from 3.12 on.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def wait_for(what: Awaitable[T], timeout: float | None) -> T:  # noqa: ASYNC109 - the signature it stands in for
    """The awaitable's value; raises TimeoutError, and cancels what it waited for, after `timeout`.

    Anything awaitable is awaited in the caller's own task, so that a cancellation meets the caller.
    """
    if timeout is not None and timeout <= 0:
        # A timeout that is over still gives what is there already.
        waited = asyncio.ensure_future(what)
        if waited.done():
            return waited.result()
        what = waited
    async with asyncio.timeout(timeout):
        return await what


def install() -> None:
    """Put it in place where the interpreter needs it; again is harmless."""
    if sys.version_info < (3, 12):
        asyncio.wait_for = wait_for  # type: ignore[assignment] # the overloads for futures
