"""A loop on which time leaps to where the next timer is due, while nothing else is waited for.

Who waits there for two seconds to pass has them at once, however busy the machine is. What runs in
threads takes the time that it takes, and so does what comes by a socket: while a loop has either,
no time leaps.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest

from relay.adapters.clock import SystemClock
from relay.core.instant import Instant


class _Leaps(selectors.DefaultSelector):
    """Waits for files; where there are none but the loop's own, the time for it has passed."""

    def __init__(self) -> None:
        super().__init__()
        self.leapt = 0.0
        self.threads = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found or timeout is None or timeout <= 0 or self.threads or len(self.get_map()) > 1:
            return found or super().select(timeout)
        self.leapt += timeout
        return found


class LeapingLoop(asyncio.SelectorEventLoop):
    """A loop whose time is the machine's, and the seconds that it leapt."""

    def __init__(self) -> None:
        self._leaps = _Leaps()
        super().__init__(self._leaps)

    @property
    def leapt(self) -> float:
        return self._leaps.leapt

    def time(self) -> float:
        return super().time() + self.leapt

    def run_in_executor(
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        running = super().run_in_executor(executor, func, *args)
        self._leaps.threads += 1
        running.add_done_callback(self._ended)
        return running

    def _ended(self, _future: asyncio.Future[Any]) -> None:
        self._leaps.threads -= 1

    async def shutdown_default_executor(self, *timeout: float | None) -> None:
        """Another thread waits for the end of its threads, from Python 3.12 on for a time."""
        self._leaps.threads += 1
        try:
            await super().shutdown_default_executor(*timeout)
        finally:
            self._leaps.threads -= 1


class LoopClock(SystemClock):
    """The machine's clock, which leaps with the loop on which it is asked."""

    _leapt = 0.0

    def now(self) -> Instant:
        with suppress(RuntimeError):  # In a thread it is as late as it was when it began.
            self._leapt = getattr(asyncio.get_running_loop(), "leapt", 0.0)
        now = super().now()
        return Instant(now.seconds + self._leapt, now.wall_ms + int(self._leapt * 1000))


def loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Of a test that is marked `leaps` this loop; for `pytest_asyncio_loop_factories`."""
    if item.get_closest_marker("leaps"):
        return {"leaping": LeapingLoop}
    return {"real": asyncio.new_event_loop}
