"""A queue that is paused: one timer for it, and none once its run has ended."""

import asyncio

import pytest

from controllers.work_queue import WorkQueue
from relay.adapters.clock import SystemClock
from relay.space_errors import SpaceError


async def test_pauses_that_follow_each_other_leave_no_timers_behind():
    queue = WorkQueue[str](SystemClock())
    taken = asyncio.Queue()

    async def reconcile(items):
        taken.put_nowait(items)
        return ()

    async with asyncio.TaskGroup() as group:
        working = group.create_task(queue.work(reconcile))
        await asyncio.sleep(0)
        for _ in range(50):
            queue.pause("a")
            queue.pause("b")
            queue.resume("a")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert sum(task.get_name() == "hold" for task in asyncio.all_tasks()) == 1
        queue.add(["x"])
        assert taken.empty()
        queue.resume("b")
        assert await taken.get() == frozenset({"x"})
        working.cancel()


async def test_who_pauses_a_queue_whose_run_has_ended_holds_nothing():
    queue = WorkQueue[str](SystemClock())

    async def breaks(_items):
        raise SpaceError("ServiceUnavailable", "the disk is full")

    queue.add({"x"})
    with pytest.raises(ExceptionGroup, match="TaskGroup"):
        await queue.work(breaks)
    queue.pause("batch")
    queue.add_later("y", 60.0)
    assert await asyncio.wait_for(queue.take(), 10) == {"y"}
