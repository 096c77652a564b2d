"""Real API servers for benchmarks: a centre with our kinds, and clusters; nothing else on them.

No controllers run beside them, so that what they use is what they are asked to do. One etcd serves
all; like everything else on the machine's disk it does not wait for it here.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks.report import cpu_seconds, resident_mb
from leafcast.data_dir import DataDir
from leafcast.local.kube_servers.api_server import ApiServer
from leafcast.local.kube_servers.binaries import (
    API_SERVER,
    ETCD,
    BinariesMissing,
    KubeHost,
    find_binaries,
)
from leafcast.local.kube_servers.local_kube import LocalKube, local_kube
from leafcast.space_settings import CentreSpaces, SpaceSetting
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.kubernetes.kubeconfig import Kubeconfig
from relay.adapters.kubernetes.space import KubernetesSpace
from relay.adapters.server.guard import ProcessGuard
from relay.space_port import Object
from schemas.crds.definitions import custom_resource_definitions
from tests.namespaces import namespace_object

CENTRE = "centre"
MANAGER = "benchmark"
SERVED_SECONDS = 30.0
NAMESPACE, ASIDE = "shop", "aside"
"""Where placements select objects, and where bare writes go: no placement selects those."""
_REQUESTS = re.compile(
    r'^apiserver_request_total\{.*resource="(?P<resource>[^"]*)".*subresource="(?P<part>[^"]*)".*verb="(?P<verb>[A-Z]+)".*\}'
    r" (?P<count>\S+)$",
    re.MULTILINE,
)
_WRITES = frozenset({"APPLY", "PATCH", "POST", "PUT", "DELETE", "DELETECOLLECTION"})
_OWN = frozenset({"leases", "flowschemas", "prioritylevelconfigurations"})
"""What an API server keeps writing for itself."""


class KubeBed:
    """An etcd and API servers on it, by name; opened by `kube_bed`."""

    def __init__(self, kube: LocalKube, stack: AsyncExitStack) -> None:
        self._kube = kube
        self._stack = stack

    @property
    def servers(self) -> Mapping[str, ApiServer]:
        return self._kube.servers

    def setting(self, name: str) -> SpaceSetting:
        """A server as configuration names it."""
        return SpaceSetting("kubeconfig", str(self.servers[name].kubeconfig))

    def space(self, name: str) -> KubernetesSpace:
        """A client of its own, with connections of its own, until the bed ends."""
        source = Kubeconfig(str(self.servers[name].kubeconfig), "")
        space = KubernetesSpace(source, SystemClock(), SystemDice())
        self._stack.push_async_callback(space.close)
        return space

    def be_centre_of(self, folder: Path) -> None:
        """Have the tree of this data directory lie on the server of the centre."""
        spaces = (self.setting(CENTRE),)
        folder.mkdir(parents=True, exist_ok=True)
        DataDir(folder).write_spaces(CentreSpaces(spaces, spaces))

    def used(self, name: str) -> float:
        """Processor seconds of an API server until now."""
        process = self.servers[name].process
        assert process is not None
        return cpu_seconds(process.pid)

    def resident_mb(self, name: str) -> float:
        process = self.servers[name].process
        assert process is not None
        return resident_mb(process.pid)

    async def writes(self, name: str) -> Counter[str]:
        """Requests to write that an API server has answered, by verb and resource."""
        _, said = await self.servers[name].request("GET", "/metrics")
        found: Counter[str] = Counter()
        for one in _REQUESTS.finditer(said):
            if one["verb"] in _WRITES and one["resource"] not in _OWN:
                part = f"/{one['part']}" if one["part"] else ""
                found[f"{one['verb']} {one['resource']}{part}"] += int(float(one["count"]))
        return found

    def etcd_used(self) -> float:
        """Processor seconds of the one etcd until now."""
        assert self._kube.etcd.process is not None
        return cpu_seconds(self._kube.etcd.process.pid)


@asynccontextmanager
async def kube_bed(folder: Path, names: Iterable[str]) -> AsyncIterator[KubeBed]:
    """API servers that are ready, and end with the block; each has the Namespaces to write to."""
    async with AsyncExitStack() as stack:
        guard = await stack.enter_async_context(ProcessGuard())
        host = KubeHost(find_binaries(), guard, SystemClock(), SystemDice())
        kube = await stack.enter_async_context(local_kube(folder, host, durable=False))
        bed = KubeBed(kube, stack)
        for name in names:
            kube.add(name)
            await kube.start(name)
            for namespace in (NAMESPACE, ASIDE):
                await bed.space(name).apply(namespace_object(namespace), MANAGER)
        if CENTRE in bed.servers:
            await _define(bed.space(CENTRE))
        yield bed


async def _define(space: KubernetesSpace) -> None:
    """Define our kinds, and wait until they are served."""
    definitions: list[Object] = list(custom_resource_definitions())
    for definition in definitions:
        await space.apply(definition, MANAGER)
    wanted = {definition["spec"]["names"]["plural"] for definition in definitions}
    async with asyncio.timeout(SERVED_SECONDS):
        while not wanted <= {kind.resource for kind in await space.kinds()}:
            await asyncio.sleep(0.2)


def run(name: str, work: Coroutine[Any, Any, None]) -> None:
    """Run a benchmark; where there is no API server to run, say so and how to get one."""
    try:
        find_binaries().need(ETCD, API_SERVER)
    except BinariesMissing as missing:
        work.close()
        print(f"\n{name}: NOT RUN: {missing}", file=sys.stderr)
        return
    asyncio.run(work)
