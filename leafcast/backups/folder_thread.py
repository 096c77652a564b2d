"""A thread of its own for a folder of backups: a disk that hangs takes no other one with it.

Threads that are shared would run out one by one, and whatever needs one would hang, too. This one
also keeps no process from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class FolderThread:
    """Works off what is begun, one after the other; there is a thread only while there is work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: deque[Callable[[], None]] = deque()
        self._works = False

    def begin(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> asyncio.Future[R]:
        """Have this done after all that was begun before; what comes of it, if anyone waits.

        Whoever waits may give up: what was not reached by then is not done.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()

        def job() -> None:
            if future.cancelled():
                return
            try:
                result = work(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - it is for who waits
                answer: Callable[[], None] = partial(future.set_exception, error)
            else:
                answer = partial(future.set_result, result)
            # The program may have ended meanwhile.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(lambda: None if future.done() else answer())

        with self._lock:
            self._jobs.append(job)
            begins, self._works = not self._works, True
        if begins:
            threading.Thread(target=self._work_off, name="backups", daemon=True).start()
        return future

    async def run(self, work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Have this done, and wait for it; raises what it raises."""
        return await self.begin(work, *args, **kwargs)

    def _work_off(self) -> None:
        while True:
            with self._lock:
                if not self._jobs:
                    self._works = False
                    return
                job = self._jobs.popleft()
            job()
