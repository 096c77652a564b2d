"""A tree of a centre and one edge on a real API server; the edge is `leafcast join`, as shipped.

The centre runs in this process, on spaces of its own: what the API server uses, the edge asks for.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks.counts import is_synced
from benchmarks.kube_bed import KubeBed, kube_bed
from benchmarks.report import children_of, cpu_seconds, resident_mb
from controllers.issuing.nodes import add_node
from leafcast.ask.session import USER_MANAGER
from leafcast.centre.centre import Centre, CentreOptions, running
from leafcast.centre.inventory import edge_objects
from leafcast.data_dir import DataDir
from leafcast.join.folder import GRANT_FILE
from leafcast.join.kept_grant import KeptGrant, write_grant
from relay.adapters.clock import SystemDice
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.core.view import NodeView
from relay.shell.driver import Driver
from relay.space_port import Space
from relay.syncer.pending import REQUESTS_MAX
from schemas.enrolment.tokens import Token
from schemas.values.groups import API_PLACEMENT
from schemas.values.identity import MailKey, NodePath, mail_key
from tests.memory_tree import config_map, placement

EDGE = NodePath(("edge",))
TEXT_BYTES = 1_000


class EdgeTree:
    """The tree; the edge's process is started and ended as often as one likes."""

    def __init__(self, bed: KubeBed, centre: Centre, folder: Path) -> None:
        self.bed = bed
        self.space = bed.space(EDGE.name)
        self._centre = centre
        self._folder = folder
        self._edge_folder, self._token_file = folder / "edge", folder / "edge.join"
        self.process: Process | None = None

    @property
    def relay(self) -> Driver:
        """The centre's."""
        driver = self._centre.nodes[NodePath()].driver
        assert driver is not None
        return driver

    @property
    def workloads(self) -> Space:
        return running(self._centre.workloads)

    async def register(self) -> None:
        """Have the centre know the edge, and write what it would be granted by a token."""
        centre = self._centre
        made = await add_node(centre.issuer(), EDGE, SystemDice().entropy(32), new_user_nkey)
        for obj in edge_objects(EDGE):
            await centre.inventory_space().apply(obj, USER_MANAGER)
        token = Token(bytes(16), centre.tree_id(), bytes(16), EDGE)
        grant = KeptGrant(
            tree=centre.tree_id(),
            path=EDGE,
            relay=False,
            parents=centre.nodes[NodePath()].hosted.leaf_urls,
            seed=made.seed,
            roots=centre.roots(),
            token=token.token_id,
        )
        self._edge_folder.mkdir()
        write_grant(self._edge_folder / GRANT_FILE, grant)
        self._token_file.write_text(f"{grant.parents[0]} {token.text}\n")

    async def join(self) -> None:
        """Start the edge's process."""
        self.process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "leafcast", "join", str(self._token_file)),
            *("--data-dir", str(self._edge_folder)),
            *("--kubeconfig", str(self.bed.servers[EDGE.name].kubeconfig)),
            stdin=DEVNULL,
            stdout=DEVNULL,
        )

    async def leave(self) -> None:
        """End it in good order."""
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
            await self.process.wait()

    def pids(self) -> tuple[int, int]:
        """Of the edge's process, and of its nats-server."""
        assert self.process is not None
        below = children_of(self.process.pid).items()
        return self.process.pid, next(pid for pid, words in below if "nats-server" in words)

    def used(self) -> dict[str, float]:
        """Processor seconds until now, by who used them."""
        relay, server = self.pids()
        return {
            "the edge's API server": self.bed.used(EDGE.name),
            "its etcd": self.bed.etcd_used(),
            "the edge: leafcast join": cpu_seconds(relay),
            "the edge's nats-server": cpu_seconds(server),
            "this process: the centre, and the bare loop": cpu_seconds(os.getpid()),
        }

    def resident_mb(self) -> tuple[float, float]:
        """Of the edge's process, and of its nats-server."""
        relay, server = self.pids()
        return resident_mb(relay), resident_mb(server)

    async def key(self, name: str) -> MailKey:
        return mail_key(API_PLACEMENT, await self.workloads.identity(), "", name)

    async def until_synced(self, name: str) -> None:
        """Wait until the centre knows that the edge has all of a placement."""
        key = await self.key(name)

        def synced(node: NodeView) -> bool:
            return key in node.records and is_synced(node.count(key), 1)

        await self.relay.until(synced)


@asynccontextmanager
async def edge_tree(folder: Path) -> AsyncIterator[EdgeTree]:
    """The tree runs, its edge not yet."""
    async with kube_bed(folder / "kube", [EDGE.name]) as bed, asyncio.TaskGroup() as group:
        centre = Centre(DataDir(folder / "tree"), CentreOptions(temporary=True))
        task = group.create_task(centre.run())
        await centre.up.wait()
        tree = EdgeTree(bed, centre, folder)
        await tree.register()
        try:
            yield tree
        finally:
            await tree.leave()
            task.cancel()


def config_maps(namespace: str, count: int, said: str = "first") -> Iterator[dict[str, Any]]:
    """So many ConfigMaps of a kilobyte."""
    for number in range(count):
        text = f"{said} {number} ".ljust(TEXT_BYTES, ".")
        yield config_map(f"c{number:04}", namespace, text=text)


def placement_of(namespace: str) -> dict[str, Any]:
    """A placement of all ConfigMaps of a namespace, named as that is."""
    clause = {"resources": ["configmaps"], "namespaces": [namespace]}
    return placement(namespace, namespace, downsync=[clause])


async def apply_all(
    space: Space, objects: Iterable[dict[str, Any]], manager: str, at_once: int = REQUESTS_MAX
) -> None:
    """Server-side apply of all of them; so many at once, else as many as a syncer."""
    waiting = iter(objects)

    async def work() -> None:
        for obj in waiting:
            await space.apply(obj, manager)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(work())
