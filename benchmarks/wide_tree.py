"""A wide tree on real servers: a centre and its regions here, their edges sharing processes."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from controllers.centre import Controllers
from controllers.issuing.keys import load_or_make_keys
from controllers.issuing.nodes import add_node, enrol_nodes
from leafcast.node.freed_memory import search_rarely
from leafcast.node.options import NodeEnvironment, NodeIdentity, ParentAccess
from leafcast.node.runtime import NodeRuntime
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.server import nats_config
from relay.adapters.server.durability import DEFAULT_STORE, StoreSettings
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.nats_config import ParentRemote
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.adapters.spaces.simulated_cluster import Settings
from relay.core.view import NodeView
from relay.ports import BusBroken, first_of
from relay.shell.driver import Driver
from relay.space_errors import SpaceError
from relay.space_port import Space
from schemas.reports.reports import Count
from schemas.values.groups import API_PLACEMENT
from schemas.values.identity import MailKey, NodePath, mail_key
from tests.doubles.memory_space import MemorySpace
from tests.namespaces import apply_in_namespaces

JOIN_SECONDS = 900.0
"""A quiet machine needs a tenth of it for 8,000 edges; beyond it something is wrong."""
RETRY_SECONDS = 1.0
MANAGER = "benchmark"
GROUP, VERSION = "edge.kubestellar.io", "v2alpha1"


class WideTree:
    """`regions` relays below a centre, each with `edges` edges that share one process."""

    def __init__(
        self,
        folder: Path,
        regions: int,
        edges: int,
        startup_seconds: tuple[float, float] = Settings().startup_seconds,
        store: StoreSettings = DEFAULT_STORE,
    ) -> None:
        self.folder = folder
        self._store = store
        # How long what the clusters run takes to start.
        self.startup_seconds = startup_seconds
        self.regions = [NodePath((f"r{n}",)) for n in range(regions)]
        self.edges = {
            region: [region.child(f"s{n}") for n in range(edges)] for region in self.regions
        }
        self.clock, self.dice = SystemClock(), SystemDice()
        self.keys = load_or_make_keys(folder / "keys", self.dice)
        self.nodes: dict[NodePath, NodeRuntime] = {}
        self.processes: dict[str, Process] = {}
        self.inventory = MemorySpace(self.clock, self.dice)
        self.workloads: Space
        self.controllers: Controllers
        self.world: NodeEnvironment
        self._stack = AsyncExitStack()
        self._patched = ExitStack()

    @property
    def everywhere(self) -> int:
        return sum(map(len, self.edges.values()))

    @property
    def centre(self) -> Driver:
        driver = self.nodes[NodePath()].driver
        assert driver is not None
        return driver

    async def placement_key(self, name: str) -> MailKey:
        return mail_key(API_PLACEMENT, await self.workloads.identity(), "", name)

    async def apply(self, *objects: dict[str, Any]) -> None:
        """Apply the objects, again if the centre's server is too busy to answer in time."""
        async with asyncio.timeout(JOIN_SECONDS):
            while True:
                try:
                    return await apply_in_namespaces(self.workloads, objects, MANAGER)
                except SpaceError as error:
                    say(f"waits for the centre's space: {error}")
                    await asyncio.sleep(RETRY_SECONDS)

    async def until(self, name: str, met: Callable[[Count], bool], seconds: float = 300) -> Count:
        key = await self.placement_key(name)

        def holds(node: NodeView) -> bool:
            return key in node.records and met(node.count(key))

        try:
            async with asyncio.timeout(seconds):
                await self.centre.until(holds)
        except TimeoutError:
            raise AssertionError(f"{name} stays at {self.centre.node.count(key)}") from None
        return self.centre.node.count(key)

    async def start(self, group: asyncio.TaskGroup, guard: ProcessGuard) -> list[asyncio.Task[Any]]:
        self._patched.enter_context(clients_let_in())
        roots = self.keys.roots
        world = self.world = NodeEnvironment(
            guard, self.clock, self.dice, self.keys.tree, roots, self._store
        )
        tasks = await self.start_centre(group)
        tasks += [await self._start_region(world, region, group) for region in self.regions]
        seeds = await self._register()
        for region in self.regions:
            await self._until_known(region)
        for region in self.regions:
            self.processes[str(region)] = await self._start_edges(region, seeds)
        for region in self.regions:
            await self._until_joined(region)
        search_rarely()
        return tasks

    async def _until_known(self, region: NodePath) -> None:
        """Wait until a region lets all its children in; raises AssertionError if it takes too long.

        A nats-server 2.15.1 that reloads for new accounts while clients come may crash.
        """
        runtime, wanted = self.nodes[region], len(self.edges[region])
        driver = await runtime.running()

        def lets_in(node: NodeView) -> bool:
            return len(node.children()) == len(runtime.hosted.known.nkeys) == wanted

        try:
            async with asyncio.timeout(JOIN_SECONDS):
                await driver.until(lets_in)
        except TimeoutError:
            known = len(driver.node.children())
            said = f"{region} has {known} of {wanted} children after {JOIN_SECONDS:g} s"
            raise AssertionError(said) from None

    async def _until_joined(self, region: NodePath) -> None:
        """Wait until a region's edges are in session; raises AssertionError with what they said."""
        output = self.processes[str(region)].stdout
        assert output is not None
        said = b"0"
        try:
            async with asyncio.timeout(JOIN_SECONDS):
                while (line := await output.readline()) not in (b"ready\n", b""):
                    said = line
        except TimeoutError:
            line = b""
        if not line:
            joined = said.decode().strip()
            raise AssertionError(f"{joined} of {len(self.edges[region])} edges of {region} joined")

    async def start_centre(self, group: asyncio.TaskGroup) -> list[asyncio.Task[Any]]:
        """Start the centre on what its folder holds; nothing of an earlier run is used again."""
        centre = NodeRuntime(self.world, NodeIdentity(NodePath(), self.folder / "centre"))
        self.nodes[NodePath()] = centre
        tasks = [group.create_task(centre.run())]
        await centre.running()
        self.workloads = await self.workload_space(self._stack)
        await self._open_controllers(centre)
        tasks.append(group.create_task(self._control(centre)))
        return tasks

    async def _open_controllers(self, centre: NodeRuntime) -> None:
        while True:
            relay = await centre.running()
            try:
                self.controllers = await Controllers.open(
                    relay.publisher,
                    self.workloads,
                    self.inventory,
                    self.clock,
                    self.dice,
                    self.folder / "keys",
                )
            except (BusBroken, SpaceError) as error:
                say(f"waits for the centre's relay: {error}")
                await asyncio.sleep(RETRY_SECONDS)
            else:
                return

    async def _control(self, centre: NodeRuntime) -> None:
        """Run the controllers; they begin anew with each run of the centre's relay."""
        while True:
            try:
                await self.controllers.run()
            except* (BusBroken, SpaceError) as broken:
                say(f"the centre's controllers begin again: {first_of(broken)}")
            await asyncio.sleep(RETRY_SECONDS)
            await self._open_controllers(centre)

    async def workload_space(self, stack: AsyncExitStack) -> Space:
        """Where the centre's workloads lie: on its own server."""
        return await self.nodes[NodePath()].hosted.space("workloads", stack)

    async def stop_centre(self, tasks: Sequence[asyncio.Task[Any]]) -> None:
        """End what `start_centre` started: controllers, connections, then relay and server."""
        node, controllers = tasks
        controllers.cancel()
        await asyncio.wait([controllers])
        await self._stack.aclose()
        self._stack = AsyncExitStack()
        node.cancel()
        await asyncio.wait([node])

    async def stop(self, tasks: Sequence[asyncio.Task[Any]]) -> None:
        for process in self.processes.values():
            process.kill()
            await process.wait()
        for task in tasks[:1:-1]:
            task.cancel()
            await asyncio.wait([task])
        await self.stop_centre(tasks[:2])
        self._patched.close()

    async def _start_region(
        self, world: NodeEnvironment, region: NodePath, group: asyncio.TaskGroup
    ) -> asyncio.Task[None]:
        issuer = self.controllers.issuer
        made = await add_node(issuer, region, self.dice.entropy(32), new_user_nkey)
        await self.centre.until(lambda node: region.name in node.children())
        link = ParentRemote((self.nodes[NodePath()].server.leaf_url,), made.seed)
        runtime = self.nodes[region] = NodeRuntime(
            world, NodeIdentity(region, self.folder / region.name), ParentAccess(link)
        )
        task = group.create_task(runtime.run())
        driver = await runtime.running()
        await driver.until(lambda node: node.ready)
        return task

    async def _register(self) -> dict[str, str]:
        """All edges' node records at once, and their inventory; their seeds by path."""
        nkeys: dict[NodePath, str] = {}
        seeds: dict[str, str] = {}
        edges = [edge for region in self.regions for edge in self.edges[region]]
        for path in edges:
            seeds[str(path)], nkey = new_user_nkey(self.dice.entropy(32))
            nkeys[path] = nkey
        await enrol_nodes(self.controllers.issuer, nkeys)
        for obj in (*map(_target, edges), *map(_location, self.regions)):
            await self.inventory.apply(obj, MANAGER)
        return seeds

    async def _start_edges(self, region: NodePath, seeds: dict[str, str]) -> Process:
        said = {
            "url": self.nodes[region].server.url,
            "tree": self.keys.tree,
            "root": self.keys.ring.roots[0].key_id,
            "root_key": self.keys.ring.roots[0].public_key.hex(),
            "startup_seconds": self.startup_seconds,
            "edges": {str(edge): seeds[str(edge)] for edge in self.edges[region]},
        }
        file = self.edges_file(region)
        file.write_text(json.dumps(said))
        command = [sys.executable, "-m", "benchmarks.shared_edges", str(file)]
        return await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)

    async def cluster_writes(self) -> int:
        """How often the edges' clusters were written to."""
        return await self._said_to_edges("")

    async def flip(self, *, ready: bool) -> None:
        """Have all objects of the edges that have a status be ready, or not."""
        await self._said_to_edges(f"flip {ready}")

    async def _said_to_edges(self, line: str) -> int:
        """The sum of what the processes of edges answer."""
        for process in self.processes.values():
            assert process.stdin is not None
            process.stdin.write(f"{line}\n".encode())
        total = 0
        for process in self.processes.values():
            assert process.stdout is not None
            total += int(await process.stdout.readline())
        return total

    def server(self, path: NodePath) -> EmbeddedServer:
        """A node's own server."""
        server = self.nodes[path].server
        assert isinstance(server, EmbeddedServer)
        return server

    def folder_of(self, path: NodePath) -> Path:
        """Where a node keeps what is its own."""
        return self.folder / (path.name or "centre")

    def edges_file(self, region: NodePath) -> Path:
        """What the process of a region's edges was told."""
        return self.folder / f"{region.name}.json"

    def pids(self) -> dict[str, int]:
        """Every process of the tree by name."""
        servers = {f"nats-server {path}": self.server(path).pid for path in self.nodes}
        shared = {f"edges of {name}": process.pid for name, process in self.processes.items()}
        return {"centre and regions": os.getpid(), **servers, **shared}


@asynccontextmanager
async def wide_tree(
    folder: Path,
    regions: int,
    edges: int,
    startup_seconds: tuple[float, float] = Settings().startup_seconds,
    store: StoreSettings = DEFAULT_STORE,
) -> AsyncIterator[WideTree]:
    async with ProcessGuard() as guard, asyncio.TaskGroup() as group:
        tree = WideTree(folder, regions, edges, startup_seconds, store)
        tasks = await tree.start(group, guard)
        try:
            yield tree
        finally:
            await tree.stop(tasks)


def say(what: str) -> None:
    """Tell whoever watches what the benchmark waits for."""
    print(what, file=sys.stderr, flush=True)


@contextmanager
def clients_let_in() -> Iterator[None]:
    """Edges here are clients of their region's server; real ones come in over leaf links only."""
    whole = nats_config._template

    def template(name: str) -> str:
        text = whole(name).replace("[ LEAFNODE,", "[ STANDARD, LEAFNODE,")
        # Of a link the server judges a subject before its mapping, of a client after it.
        return text.replace('deny: [ "up.split.>" ]', "deny: []")

    setattr(nats_config, "_template", template)  # noqa: B010 - as a test would
    try:
        yield
    finally:
        setattr(nats_config, "_template", whole)  # noqa: B010


def _target(path: NodePath) -> dict[str, Any]:
    name = "-".join(path.names)
    metadata = {
        "name": name,
        "labels": {"id": name, "region": path.names[0]},
        "annotations": {"leafcast.io/path": str(path)},
    }
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "SyncTarget",
        "metadata": metadata,
        "spec": {},
    }


def _location(region: NodePath) -> dict[str, Any]:
    resource = {"group": GROUP, "version": VERSION, "resource": "synctargets"}
    labels = {"region": region.name}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "Location",
        "metadata": {"name": region.name, "labels": labels},
        "spec": {"resource": resource, "instanceSelector": {"matchLabels": labels}},
    }
