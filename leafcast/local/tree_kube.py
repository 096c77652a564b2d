"""The API servers of a tree on this machine: one for the centre and, if wanted, for each site.

The centre's runs no controllers but those that keep house, so that what people write there stays as
they wrote it; a site's has all of them, and Pods that are Ready without a kubelet.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

from leafcast.data_dir import DataDir
from leafcast.local.kube_servers.api_server import ApiServer
from leafcast.local.kube_servers.binaries import (
    API_SERVER,
    CONTROLLER_MANAGER,
    ETCD,
    KWOK,
    SCHEDULER,
    Binaries,
    KubeHost,
    find_binaries,
)
from leafcast.local.kube_servers.local_kube import LocalKube, local_kube
from leafcast.local.views import TreeShape
from leafcast.space_settings import SpaceSetting
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.logged_process import ServerFailed
from relay.ports import Clock, Dice
from schemas.values.identity import NodePath
from schemas.values.wording import many

CENTRE, ALL = "centre", "all"
CHOICES = (CENTRE, ALL)
STARTING_AT_ONCE = 2
"""Each takes a processor for seconds: more of them at once are all later."""
INSTALLER = "leafcast-install"
ESTABLISHED_SECONDS, LOOK_SECONDS = 30.0, 0.1
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def binaries_for(which: str) -> Binaries:
    """The programs that are needed; raises BinariesMissing, which says how to get them."""
    binaries = find_binaries()
    binaries.need(ETCD, API_SERVER, CONTROLLER_MANAGER)
    if which == ALL:
        binaries.need(SCHEDULER, KWOK)
    return binaries


def contexts(shape: TreeShape, which: str) -> dict[NodePath, str]:
    """The nodes that have an API server, the centre first, and the name of each one's context."""
    paths = [NodePath(), *(shape.edges() if which == ALL else ())]
    return {path: "-".join(path.names) or CENTRE for path in paths}


def kubeconfig(place: DataDir) -> Path:
    """The file with a context for each API server of the tree."""
    return place.folder / "kube" / "kubeconfig"


def hub(place: DataDir) -> SpaceSetting:
    """The API server of the centre, as its space."""
    return SpaceSetting("kubeconfig", str(kubeconfig(place)), CENTRE)


class TreeKube:
    """Runs the API servers of a tree; `contexts` says which."""

    def __init__(
        self, place: DataDir, shape: TreeShape, which: str, clock: Clock, dice: Dice
    ) -> None:
        self.contexts = contexts(shape, which)
        self.kubeconfig = kubeconfig(place)
        self._binaries = binaries_for(which)
        self._clock = clock
        self._dice = dice

    @property
    def spaces(self) -> dict[NodePath, SpaceSetting]:
        """The space of each node that has an API server."""
        file = str(self.kubeconfig)
        return {
            path: SpaceSetting("kubeconfig", file, name) for path, name in self.contexts.items()
        }

    @asynccontextmanager
    async def running(self, progress: Callable[[str], None]) -> AsyncIterator[None]:
        """From here on they are ready, and started again if they end; raises ServerFailed."""
        async with (
            ProcessGuard() as guard,
            local_kube(
                self.kubeconfig.parent, KubeHost(self._binaries, guard, self._clock, self._dice)
            ) as kube,
        ):
            await self._start(kube, progress)
            kube.write_kubeconfig(self.contexts.values())
            await self._define(kube.servers[self.contexts[NodePath()]])
            async with asyncio.TaskGroup() as group:
                keepers = [group.create_task(kube.keep(name)) for name in kube.servers]
                keepers.append(group.create_task(kube.keep_etcd()))
                try:
                    yield
                finally:
                    for keeper in keepers:
                        keeper.cancel()

    async def _start(self, kube: LocalKube, progress: Callable[[str], None]) -> None:
        turn = asyncio.Semaphore(STARTING_AT_ONCE)
        ready = 0

        async def start(name: str) -> None:
            nonlocal ready
            async with turn:
                await kube.start(name)
            ready += 1
            progress(f"{ready} of {many(len(self.contexts), 'API server')} ready")

        async with asyncio.TaskGroup() as group:
            for path, name in self.contexts.items():
                kube.add(name, workloads=not path.is_root)
                group.create_task(start(name))

    async def _define(self, centre: ApiServer) -> None:
        """Define our kinds there, and wait until they are served."""
        # Here, as every `leafcast up` would build the models of our kinds, which takes 0.1 s.
        from schemas.crds.definitions import custom_resource_definitions  # noqa: PLC0415

        definitions = custom_resource_definitions()
        for definition in definitions:
            name = definition["metadata"]["name"]
            path = f"{_DEFINITIONS}/{name}"
            wish = f"{path}?fieldManager={INSTALLER}&force=true"
            form = "application/apply-patch+yaml"
            status, said = await centre.request("PATCH", wish, definition, form=form)
            if status not in {HTTPStatus.OK, HTTPStatus.CREATED}:
                raise ServerFailed(f"{centre.url} does not take {name}: {_message(said)}", [])
        until = self._clock.now().seconds + ESTABLISHED_SECONDS
        for definition in definitions:
            name = definition["metadata"]["name"]
            while not _established((await centre.request("GET", f"{_DEFINITIONS}/{name}"))[1]):
                if self._clock.now().seconds > until:
                    raise ServerFailed(f"{centre.url} does not serve {name}", [])
                await self._clock.sleep(LOOK_SECONDS)


def _established(definition: Any) -> bool:
    conditions = definition.get("status", {}).get("conditions", ())
    return any((its["type"], its["status"]) == ("Established", "True") for its in conditions)


def _message(said: Any) -> str:
    return str(said.get("message", said)) if isinstance(said, dict) else str(said)
