"""A process we started, whose words are read at once, so that it never waits for us."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from relay.adapters.server.guard import GuardLost, ProcessGuard
from relay.adapters.server.log_pipe import LogPipe

LOG_LINES_MAX = 200
STOP_SECONDS = 10.0
PORT_TAKEN = "address already in use"


class ServerFailed(RuntimeError):
    """A server did not do what it was started for; `log` is the last it said."""

    def __init__(self, what: str, log: list[str]) -> None:
        super().__init__("\n  ".join([what, *log[-20:]]))
        self.what = what
        self.log = log


class LoggedProcess:
    """A started process; `ready` is set once it says `says_ready`, `ended` when it is gone."""

    def __init__(
        self,
        guard: ProcessGuard,
        command: Sequence[str],
        *,
        name: str,
        cwd: Path,
        says_ready: str,
        env: Mapping[str, str] | None = None,
        whole: bool = False,
    ) -> None:
        """With `whole` it takes a socket as its error output: a message with breaks is one."""
        self.name = name
        self.ready = asyncio.Event()
        self.ended = asyncio.Event()
        self._says_ready = says_ready
        self._guard = guard
        self._log: deque[str] = deque(maxlen=LOG_LINES_MAX)
        self._loop = asyncio.get_running_loop()
        self._pipe = LogPipe(whole=whole)
        try:
            self._process = guard.spawn(
                command, cwd=cwd, stderr=self._pipe.theirs, env=env, keeps=self._pipe.ours_too
            )
        except BaseException:
            self._pipe.close()
            raise
        finally:
            self._pipe.handed_over()
        # A thread, because a busy event loop would fill the pipe and so stop the process.
        self._reader = threading.Thread(target=self._drain, name=f"log:{name}", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> list[str]:
        """The last lines it said."""
        return list(self._log)

    @property
    def port_taken(self) -> bool:
        """Whether it said that another listens on one of its ports."""
        return any(PORT_TAKEN in line for line in self.log)

    @property
    def killed(self) -> bool:
        """Whether a signal ended it, and not its own decision."""
        return (self._process.returncode or 0) < 0

    async def until_ready(self, seconds: float) -> bool:
        """Wait until it serves: False if it ended first; raises ServerFailed after `seconds`."""
        async with asyncio.TaskGroup() as group:
            ready = group.create_task(self.ready.wait())
            ended = group.create_task(self.ended.wait())
            await asyncio.wait((ready, ended), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            ready.cancel()
            ended.cancel()
        if not self.ready.is_set() and not self.ended.is_set():
            raise ServerFailed(f"{self.name} was not ready within {seconds:g} s", self.log)
        return not self.ended.is_set()

    async def stop(self) -> None:
        """Have it finish its writes and end; make it end if it takes too long."""
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_SECONDS):
                    self.signal(signal.SIGTERM)
                    await self.ended.wait()
        finally:
            await self.kill()

    async def kill(self) -> None:
        """Make it end at once."""
        self.signal(signal.SIGKILL)
        await self.ended.wait()
        self._reader.join()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if not self.ended.is_set():
            self._process.send_signal(number)

    def _take(self, message: str) -> None:
        """Keep what it says, and hear it, in the reading thread."""
        line = message.rstrip()
        self._log.append(line)
        self._hear(line)

    def _hear(self, line: str) -> None:
        if self._says_ready in line:
            self._tell(self.ready.set)

    def _drain(self) -> None:
        for message in self._pipe.messages():
            self._take(message.decode(errors="replace"))
        self._process.wait()
        self._tell(self._end)

    def _tell(self, what: Callable[[], object]) -> None:
        # The loop may be closed already, if the program is ending: then nobody waits.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(what)

    def _end(self) -> None:
        self.ended.set()
        # Without a guardian nobody is left who could take the number for it.
        with contextlib.suppress(GuardLost):
            self._guard.release(self._process.pid)
