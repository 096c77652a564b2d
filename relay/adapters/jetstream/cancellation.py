"""A cancellation that comes together with an answer or a failure is not lost, whatever the Python.

`asyncio.wait_for` of 3.11 returns the answer and forgets the cancellation (mended in 3.12, cpython
issue 86296), and nats-py waits that way for everything. A task group raises what its tasks failed
with: up to 3.12 it forgets the cancellation, and whoever handles the failure runs on for ever; from
3.13 on that comes at the next wait, too late for a timeout around the group, which then says the
failure. So this package has both tell of it at once.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")
_COMES_LATER = sys.version_info >= (3, 13)
"""Whether the library's own group keeps a cancellation, and has it come at the next wait."""


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
            if self._parent_cancel_requested and not is_taken_back and not _COMES_LATER:
                task.uncancel()
            if task.cancelling() > self._cancelled_before:
                await _cancelled(failed)
            raise


async def _cancelled(failed: BaseExceptionGroup[BaseException]) -> None:
    """Raise the cancellation; where it is to come at the next wait, this is that one."""
    if not _COMES_LATER:
        raise asyncio.CancelledError from failed
    try:
        await asyncio.sleep(0)  # noqa: TID251 - no time passes
    except asyncio.CancelledError as cancelled:
        raise cancelled from failed


def _current_task() -> asyncio.Task[object]:
    task = asyncio.current_task()
    assert task is not None, "a group of tasks is made in a task"
    return task


def install() -> None:
    """Put both in place where the interpreter needs them; again is harmless."""
    if sys.version_info < (3, 12):
        asyncio.wait_for = wait_for  # type: ignore[assignment] # the overloads for futures
    asyncio.TaskGroup = TaskGroup  # type: ignore[misc]
