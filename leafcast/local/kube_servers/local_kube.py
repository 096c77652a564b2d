"""All API servers of a folder: their etcd, what acts beside them, and one kubeconfig for all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from leafcast.local.kube_servers.api_server import ApiServer
from leafcast.local.kube_servers.binaries import API_SERVER, ETCD, KubeHost
from leafcast.local.kube_servers.controllers import ClusterControllers
from leafcast.local.kube_servers.etcd import Etcd
from leafcast.local.kube_servers.kubeconfig import write_kubeconfig
from relay.adapters.server.logged_process import LoggedProcess, ServerFailed

PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 0.25, 30.0
HEALTHY_SECONDS = 60.0

log = logging.getLogger(__name__)


@dataclass(slots=True)
class LocalKube:
    """An etcd, and the API servers that are added."""

    _folder: Path
    _host: KubeHost
    etcd: Etcd
    servers: dict[str, ApiServer] = field(default_factory=dict, init=False)
    controllers: dict[str, ClusterControllers] = field(default_factory=dict, init=False)

    @property
    def kubeconfig(self) -> Path:
        return self._folder / "kubeconfig"

    def add(self, name: str, *, workloads: bool | None = None) -> ApiServer:
        """An API server, not started yet. `workloads`: see ClusterControllers; None has none."""
        server = self.servers[name] = ApiServer(self._folder / name, self.etcd, self._host)
        if workloads is not None:
            self.controllers[name] = ClusterControllers(server, self._host, workloads=workloads)
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
            began = self._host.clock.now().seconds
            ended = await _first_ended([its for its in processes() if its is not None])
            if self._host.clock.now().seconds - began > HEALTHY_SECONDS:
                pause = PAUSE_SECONDS_MIN
            log.warning("%s ended; it is started again in %.1f s", ended.name, pause)
            await self._host.clock.sleep(pause)
            pause = min(2 * pause, PAUSE_SECONDS_MAX)
            try:
                await start()
            except (ServerFailed, OSError) as error:
                log.warning("it cannot be started: %s", error)


@asynccontextmanager
async def local_kube(
    folder: Path, host: KubeHost, *, durable: bool = True
) -> AsyncIterator[LocalKube]:
    """With a running etcd; it, and all API servers that are added, end with the block."""
    host.binaries.need(ETCD, API_SERVER)
    kube = LocalKube(folder, host, Etcd(folder / "etcd", host, durable=durable))
    try:
        await kube.etcd.start()
        yield kube
    finally:
        try:
            async with asyncio.TaskGroup() as group:
                for name in kube.servers:
                    group.create_task(kube.stop(name))
        finally:
            await kube.etcd.stop()


async def _first_ended(processes: list[LoggedProcess]) -> LoggedProcess:
    async with asyncio.TaskGroup() as group:
        waits = {group.create_task(its.ended.wait()): its for its in processes}
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
    return waits[done.pop()]
