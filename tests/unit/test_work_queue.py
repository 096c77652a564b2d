"""A queue that is paused again and again keeps one timer for it."""

import asyncio

from controllers.work_queue import WorkQueue
from relay.adapters.clock import SystemClock


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
