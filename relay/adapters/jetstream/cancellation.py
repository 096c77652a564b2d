"""A cancellation that comes together with an answer or a failure is not lost, whatever the Python.

`asyncio.wait_for` of 3.11 returns the answer and forgets the cancellation (mended in 3.12, cpython
issue 86296), and nats-py waits that way for everything. A task group, up to 3.12, raises what its
tasks failed with and forgets it, too: whoever handles that runs on for ever. So this package has
both keep it there.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from types import TracebackType
from typing import Self, TypeVar

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


class TaskGroup(asyncio.TaskGroup):
    """Raises CancelledError if it was cancelled from outside, also if a task of it failed.

    The library's cancels its own task when another one fails, and takes that back only if it was
    still in its block then: so that is taken back here, or the task counts as cancelled for ever.
    """

    _parent_cancel_requested: bool

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self._cancelled_before = _current_task().cancelling()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        is_taken_back = self._parent_cancel_requested
        try:
            await super().__aexit__(kind, error, trace)
        except BaseExceptionGroup as failed:
            task = _current_task()
            if self._parent_cancel_requested and not is_taken_back:
                task.uncancel()
            if task.cancelling() > self._cancelled_before:
                raise asyncio.CancelledError from failed
            raise


def _current_task() -> asyncio.Task[object]:
    task = asyncio.current_task()
    assert task is not None, "a group of tasks is made in a task"
    return task


def install() -> None:
    """Put both in place where the interpreter needs them; again is harmless."""
    if sys.version_info < (3, 12):
        asyncio.wait_for = wait_for  # type: ignore[assignment] # the overloads for futures
    if sys.version_info < (3, 13):
        asyncio.TaskGroup = TaskGroup  # type: ignore[misc]
