"""All API servers of a folder: their etcd, what acts beside them, and one kubeconfig for all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from leafcast.local.kube_servers.api_server import ApiServer
from leafcast.local.kube_servers.binaries import API_SERVER, ETCD, Binaries
from leafcast.local.kube_servers.controllers import ClusterControllers
from leafcast.local.kube_servers.etcd import Etcd
from leafcast.local.kube_servers.kubeconfig import write_kubeconfig
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.logged_process import LoggedProcess, ServerFailed
from relay.ports import Clock, Dice

PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.25, 30.0
HEALTHY_SECONDS = 60.0

log = logging.getLogger(__name__)


class LocalKube:
    """An etcd from `async with` on, and the API servers that are added; all end with the block."""

    def __init__(
        self,
        folder: Path,
        binaries: Binaries,
        guard: ProcessGuard,
        *,
        clock: Clock,
        dice: Dice,
        durable: bool = True,
    ) -> None:
        self.servers: dict[str, ApiServer] = {}
        self.controllers: dict[str, ClusterControllers] = {}
        self.etcd = Etcd(folder / "etcd", binaries, guard, dice, durable=durable)
        self.kubeconfig = folder / "kubeconfig"
        self._folder = folder
        self._binaries = binaries
        self._guard = guard
        self._clock = clock
        self._dice = dice

    async def __aenter__(self) -> Self:
        self._binaries.need(ETCD, API_SERVER)
        try:
            await self.etcd.start()
        except BaseException:
            await self.etcd.stop()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for name in self.servers:
                    group.create_task(self.stop(name))
        finally:
            await self.etcd.stop()

    def add(self, name: str, *, workloads: bool | None = None) -> ApiServer:
        """An API server, not started yet. `workloads`: see ClusterControllers; None has none."""
        server = self.servers[name] = ApiServer(
            self._folder / name,
            name,
            self.etcd,
            self._binaries,
            self._guard,
            clock=self._clock,
            dice=self._dice,
        )
        if workloads is not None:
            self.controllers[name] = ClusterControllers(
                server, self._binaries, self._guard, workloads=workloads
            )
        return server

    async def start(self, name: str) -> None:
        """Start an API server and what is beside it; raises BinariesMissing or ServerFailed."""
        await self.servers[name].start()
        if controllers := self.controllers.get(name):
            await controllers.start()

    async def stop(self, name: str) -> None:
        """Stop them."""
        if controllers := self.controllers.get(name):
            await controllers.stop()
        await self.servers[name].stop()

    def write_kubeconfig(self, names: Iterable[str]) -> Path:
        """Write one kubeconfig with a context for each of these, the first in use."""
        write_kubeconfig(self.kubeconfig, [self.servers[name].access() for name in names])
        return self.kubeconfig

    async def keep(self, name: str) -> None:
        """Start what ended by itself again, sooner or later; until cancelled."""
        async with asyncio.TaskGroup() as group:
            server = self.servers[name]
            group.create_task(self._keep(lambda: [server.process], server.start))
            if controllers := self.controllers.get(name):
                group.create_task(
                    self._keep(lambda: [*controllers.processes.values()], controllers.start)
                )

    async def keep_etcd(self) -> None:
        """As `keep`, for the etcd."""
        await self._keep(lambda: [self.etcd.process], self.etcd.start)

    async def _keep(
        self,
        processes: Callable[[], list[LoggedProcess | None]],
        start: Callable[[], Awaitable[None]],
    ) -> None:
        pause = PAUSE_SECONDS_MIN
        while True:
            began = self._clock.now().seconds
            ended = await _first_ended([its for its in processes() if its is not None])
            if self._clock.now().seconds - began > HEALTHY_SECONDS:
                pause = PAUSE_SECONDS_MIN
            log.warning("%s ended; it is started again in %.1f s", ended.name, pause)
            await self._clock.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)
            try:
                await start()
            except (ServerFailed, OSError) as error:
                log.warning("it cannot be started: %s", error)


async def _first_ended(processes: list[LoggedProcess]) -> LoggedProcess:
    async with asyncio.TaskGroup() as group:
        waits = {group.create_task(its.ended.wait()): its for its in processes}
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
    return waits[done.pop()]
