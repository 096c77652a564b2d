"""An event loop in virtual time: code that awaits runs on it as it is, and a seed is one schedule.

Time passes only when nothing is ready, and goes at once to where the next timer is due. Which of
the callbacks that are ready runs next is drawn. There are no sockets and no threads: what would run
in a thread runs at once, and all else that a loop offers is refused.
"""

from __future__ import annotations

import asyncio
import itertools
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from heapq import heappop, heappush
from random import Random
from typing import Any, TypeVar

T = TypeVar("T")
TURNS_MAX = 1_000_000
"""How many callbacks may run at one moment: who needs more never lets time pass."""


PROCESS: ContextVar[object] = ContextVar("PROCESS", default=None)
"""Of which process a task is, and all that it begins; such a process can be stopped."""


class Deadlock(AssertionError):
    """Somebody is waited for, nothing is ready, and no timer is set."""


class Livelock(AssertionError):
    """So many callbacks run at one moment that time stands still."""


class NumberedTask(asyncio.Task[T]):
    """A task whose hash is its number.

    `asyncio` keeps tasks in sets: by their addresses these would be gone through in another order
    in each process.
    """

    def __init__(self, number: int, coro: Coroutine[Any, Any, T], **options: Any) -> None:
        self._number = number
        super().__init__(coro, **options)

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class VirtualLoop(asyncio.AbstractEventLoop):
    """A loop without I/O whose clock is stepped, in seconds since it was made.

    `schedule` draws which callback is next; without it the first one is, as in other loops.
    """

    def __init__(self, schedule: Random | None = None) -> None:
        self._schedule = schedule
        self._now = 0.0
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = itertools.count(1)
        self._tasks: dict[NumberedTask[Any], None] = {}
        self._failures: list[BaseException] = []
        # Of processes that are stopped, what they are to go on with.
        self._stopped: dict[object, list[asyncio.Handle]] = {}
        self._closed = False

    # Running.

    def run_until_complete(self, future: Any) -> Any:
        """The result of a coroutine; raises Deadlock if nothing can bring it any more."""
        awaited = asyncio.ensure_future(future, loop=self)
        while True:
            self.run_ready()
            if awaited.done():
                return awaited.result()
            due = self.next_due()
            if due is None:
                raise Deadlock(f"{awaited!r} waits, nothing is ready, and no timer is set")
            self.step_to(due)

    def run_until(self, time: float) -> None:
        """Let time pass up to a moment, and do all that is due till then."""
        while True:
            self.run_ready()
            due = self.next_due()
            if due is None or due > time:
                break
            self.step_to(due)
        self.step_to(time)

    def run_ready(self, awaited: asyncio.Future[Any] | None = None) -> None:
        """Run what is ready, and what becomes so by it; time stands still meanwhile.

        No further than up to where what is awaited is done. Raises Livelock, and whatever a
        callback raised.
        """
        ready, turns = self._ready, 0
        with self._running():
            while ready and (awaited is None or not awaited.done()):
                turns += 1
                if turns > TURNS_MAX:
                    raise Livelock(f"more than {TURNS_MAX} callbacks at {self._now} s")
                handle = self._next()
                if handle.cancelled() or (self._stopped and self._puts_off(handle)):
                    continue
                handle._run()
                if self._failures:
                    raise self._failures.pop()

    def stop_process(self, process: object) -> None:
        """Have nothing of a process run, from its next await on; its timers go on."""
        self._stopped.setdefault(process, [])

    def go_on(self, process: object) -> None:
        """Have a process that was stopped go on, with all that came meanwhile."""
        self._ready.extend(self._stopped.pop(process, ()))

    def is_stopped(self, process: object) -> bool:
        return process in self._stopped

    def _puts_off(self, handle: asyncio.Handle) -> bool:
        context: Context = handle._context  # type: ignore[attr-defined]
        put_off = self._stopped.get(context.get(PROCESS))
        if put_off is not None:
            put_off.append(handle)
        return put_off is not None

    def next_due(self) -> float | None:
        """When the next timer is due; None if there is none."""
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heappop(timers)
        return timers[0][0] if timers else None

    def step_to(self, time: float) -> None:
        """Set the clock ahead; what is due then becomes ready."""
        self._now = max(self._now, time)
        timers = self._timers
        while timers and timers[0][0] <= self._now:
            handle = heappop(timers)[2]
            if not handle.cancelled():
                self._ready.append(handle)

    def begin(self, coro: Coroutine[Any, Any, T], name: str = "") -> asyncio.Task[T]:
        """A task that has run up to where it first waits; not to be called in a task."""
        task = self.create_task(coro, name=name or None)
        first = self._ready.pop()
        with self._running():
            first._run()
        return task

    @contextmanager
    def _running(self) -> Iterator[None]:
        before = events._get_running_loop()
        events._set_running_loop(self)
        try:
            yield
        finally:
            events._set_running_loop(before)

    def _next(self) -> asyncio.Handle:
        ready, schedule = self._ready, self._schedule
        count = len(ready)
        if schedule is None or count == 1:
            return ready.popleft()
        at = int(schedule.random() * count)
        ready.rotate(-at)
        handle = ready.popleft()
        ready.rotate(at)
        return handle

    # What asyncio and those who await ask of a loop.

    def time(self) -> float:
        return self._now

    def call_soon(
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heappush(self._timers, (when, next(self._numbers), handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        number = next(self._numbers)
        name = name or f"task {number}"
        task = NumberedTask(number, coro, loop=self, name=name, context=context)
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)
        return task

    def run_in_executor(
        self, _executor: object, function: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """Run it now: there are no threads, and none is awaited longer than another."""
        done = self.create_future()
        try:
            done.set_result(function(*args))
        except Exception as error:  # noqa: BLE001 - whoever awaits it is told
            done.set_exception(error)
        return done

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """What a callback raises ends the run; what nobody asked a task for does not."""
        error = context.get("exception")
        if error is not None and "handle" in context:
            self._failures.append(error)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return events._get_running_loop() is self

    def is_closed(self) -> bool:
        return self._closed

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is passed over when it is due."""

    def close(self) -> None:
        """Cancel all tasks, and wait until they have ended; what they raise is not told."""
        for process in list(self._stopped):
            self.go_on(process)
        while self._tasks:
            for task in list(self._tasks):
                task.cancel()
            self.run_ready()
        self._closed = True
