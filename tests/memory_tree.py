"""A whole tree in one process, on buses and spaces in memory, driven by the real parts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from controllers.centre import Controllers
from controllers.issuing.keys import load_or_make_keys
from controllers.issuing.nodes import add_node, nkeys_of, nodes
from leafcast.ask.client import CentreAsks
from leafcast.node.answers import AnsweringNode, answerers
from relay.adapters.clock import SystemDice
from relay.adapters.server.nkey_pairs import new_user_nkey, private_key, seed_entropy
from relay.adapters.spaces.simulated_cluster import Settings, SimulatedCluster
from relay.core.config import NodeConfig
from relay.core.events import Tick
from relay.core.instant import Instant
from relay.core.view import NodeView
from relay.shell.asker import Asker, AskFailed
from relay.shell.driver import Driver
from relay.syncer.applier import ContentMissing
from relay.syncer.customized_content import customized_address
from relay.syncer.syncer import Syncer
from relay.syncer.upsyncer import Upsyncer
from schemas.content.blobs import Reference
from schemas.content.sealing import SealingKey
from schemas.records.asks import AskFault
from schemas.records.records import AskRecord
from schemas.records.signed_answers import signed
from schemas.records.signing import WIRE_VERSION
from schemas.reports.reports import Count
from schemas.values.groups import API_PLACEMENT
from schemas.values.identity import MailKey, NodePath, mail_key, random_id
from tests.doubles.memory.bus import MemoryBus, MemoryNetwork
from tests.doubles.memory_space import MemorySpace
from tests.leaping_time import LoopClock
from tests.namespaces import apply_in_namespaces

MANAGER = "test"


class LeapingClock(LoopClock):
    """The clock of the loop, and how far a test has set it ahead."""

    ahead = wall_ahead = 0.0

    def now(self) -> Instant:
        now = super().now()
        return Instant(
            now.seconds + self.ahead, now.wall_ms + int((self.ahead + self.wall_ahead) * 1000)
        )


@dataclass
class MemoryTree:
    """Nodes by path; `workloads` and `inventory` are the centre's spaces."""

    folder: Path
    make_bus: Callable[[MemoryNetwork, NodePath], MemoryBus] = MemoryBus
    group: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)
    network: MemoryNetwork = field(default_factory=MemoryNetwork)
    drivers: dict[NodePath, Driver] = field(default_factory=dict)
    syncers: dict[NodePath, Syncer] = field(default_factory=dict)
    spaces: dict[NodePath, MemorySpace] = field(default_factory=dict)
    clusters: dict[NodePath, SimulatedCluster] = field(default_factory=dict)
    askers: dict[NodePath, Asker] = field(default_factory=dict)
    homes: dict[NodePath, str] = field(default_factory=dict)
    seeds: dict[NodePath, str] = field(default_factory=dict)
    # Which version of the wire a node's program speaks, if it is another than this one's.
    wires: dict[NodePath, int] = field(default_factory=dict)
    # The clocks of nodes that have one of their own, which may be wrong.
    clocks: dict[NodePath, LeapingClock] = field(default_factory=dict)
    running: dict[NodePath, list[asyncio.Task[None]]] = field(default_factory=dict)
    # What the controllers say that no status can.
    noted: list[tuple[str, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clock, self.dice = LeapingClock(), SystemDice()
        self.keys = load_or_make_keys(self.folder, self.dice)
        self.workloads = MemorySpace(self.clock, self.dice)
        self.inventory = MemorySpace(self.clock, self.dice)

    controllers: Controllers = field(init=False)
    controlling: asyncio.Task[None] = field(init=False)

    @property
    def centre(self) -> Driver:
        return self.drivers[NodePath()]

    async def placement_key(self, name: str) -> MailKey:
        return mail_key(API_PLACEMENT, await self.workloads.identity(), "", name)

    async def apply(self, *objects: Mapping[str, Any]) -> None:
        await apply_in_namespaces(self.workloads, objects, MANAGER)

    async def until(
        self, name: str, met: Callable[[Count], bool], *, seconds: float = 200
    ) -> Count:
        """Wait until the centre's count of a placement meets the condition."""
        key = await self.placement_key(name)
        try:
            async with asyncio.timeout(seconds):
                await self.centre.until(lambda node: met(node.count(key)))
        except TimeoutError:
            raise AssertionError(f"{name} stays at {self.centre.node.count(key)}") from None
        return self.centre.node.count(key)

    async def start(
        self,
        path: NodePath,
        group: asyncio.TaskGroup,
        *,
        attached: bool,
        former: tuple[NodePath, ...] = (),
    ) -> Driver:
        bus, clock = self.make_bus(self.network, path), self.clocks.get(path, self.clock)
        run = random_id(self.dice.entropy(16))
        home = self.homes.setdefault(path, random_id(self.dice.entropy(16)))
        config = NodeConfig(
            path,
            self.keys.tree,
            self.keys.roots,
            run,
            attached,
            home,
            former,
            customize=customized_address,
            private_keys=lambda: (private_key(self.seeds[path]),) if path in self.seeds else (),
            wire=self.wires.get(path, WIRE_VERSION),
        )
        syncer: Syncer | None = None
        tasks = self.running[path] = []

        def wants(node: NodeView) -> None:
            if syncer is not None:
                syncer.set_wants(node.wanted, may_prune=node.may_prune, rule_of=node.health_rule)

        driver = self.drivers[path] = Driver(bus, config, clock, on_wants=wants)

        async def content(reference: Reference, key: SealingKey | None) -> bytes:
            plain = await driver.load(reference, key)
            if plain is None:
                raise ContentMissing(reference.address)
            return plain

        if attached:
            space = self.spaces.setdefault(path, MemorySpace(clock, self.dice))
            cluster = self.clusters[path] = SimulatedCluster(
                space, clock, self.dice, Settings((0.01, 0.05), deadline_seconds=0.2)
            )
            syncer = self.syncers[path] = Syncer(
                cluster,
                bus,
                content,
                clock,
                self.dice,
                driver.observe,
                tree=self.keys.tree,
            )
            tasks += [group.create_task(cluster.run()), group.create_task(syncer.run())]
            tasks.append(group.create_task(self._bring_up(cluster, bus, driver)))
        tasks.append(group.create_task(driver.run()))
        await driver.started.wait()
        node, answers = lambda: driver.node, answerers(self._answering(path, bus, driver, syncer))
        asker = self.askers[path] = Asker(bus, node, driver.count_junk, clock, answers)
        tasks.append(group.create_task(asker.run()))
        return driver

    def _answering(
        self, path: NodePath, bus: MemoryBus, driver: Driver, syncer: Syncer | None
    ) -> AnsweringNode:
        """A node as asks find it."""

        def sign(record: AskRecord, answer: Mapping[str, object]) -> Mapping[str, object]:
            seed, tree = self.seeds.get(path), self.keys.tree
            return signed(seed_entropy(seed), tree, record, answer) if seed else answer

        def standing() -> Mapping[str, object]:
            return {
                "role": "centre" if path.is_root else "edge" if syncer else "relay",
                "leafUrls": [f"memory:{path}"],
                "authorities": "",
                "certificateRequest": "",
                "objectsApplied": syncer.applied if syncer else 0,
                "objectsKept": syncer.kept if syncer else 0,
            }

        async def take_certificate(_certificate: str, _authorities: str) -> None:
            """No server here shows one."""

        async def members() -> list[dict[str, Any]]:
            """A node of one server has none."""
            return []

        async def replace_member(_wish: Mapping[str, str]) -> dict[str, Any]:
            """A node of one server has none whose place is wanted."""
            raise AskFailed(AskFault("Conflict", f"{path} runs on one machine", str(path)))

        return AnsweringNode(
            path,
            driver,
            lambda: self.clusters.get(path) if syncer else None,
            bus.read_copies,
            lambda said: said,
            sign,
            take_certificate,
            standing,
            members,
            replace_member,
        )

    async def _bring_up(self, cluster: SimulatedCluster, bus: MemoryBus, driver: Driver) -> None:
        await driver.started.wait()
        upsyncer = Upsyncer(cluster, bus, self.clock, driver.observe)
        await upsyncer.run(lambda: driver.node, driver.progress)

    async def leap(self, seconds: float) -> None:
        """Let time pass at once, for all nodes."""
        for clock in (self.clock, *self.clocks.values()):
            clock.ahead += seconds
        for driver in self.drivers.values():
            await driver.observe(Tick())

    async def stop_controllers(self) -> None:
        self.controlling.cancel()
        await asyncio.wait([self.controlling])

    async def stop(self, path: NodePath) -> None:
        """End a node's run; what its streams and its space hold stays."""
        tasks = self.running.pop(path)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        bus = self.network.bus(path)
        if bus is not None:
            await bus.close()

    async def close(self) -> None:
        """End what buses run beside the nodes that have ended."""
        for path in self.drivers:
            if (bus := self.network.bus(path)) is not None:
                await bus.close()

    async def carry(self, old: NodePath, new: NodePath) -> None:
        """Take what an edge that has ended keeps, and its cluster, to another path."""
        await self.stop(old)
        self.network.take_along(old, new)
        for kept in (self.drivers, self.syncers, self.clusters, self.askers):
            kept.pop(old)
        for kept in (self.spaces, self.homes, self.seeds):
            kept[new] = kept.pop(old)

    async def control(self, group: asyncio.TaskGroup) -> None:
        """Run the controllers on the centre's relay; for ones that were stopped, new ones."""
        self.controllers = await Controllers.open(
            self.centre.publisher,
            self.workloads,
            self.inventory,
            self.clock,
            self.dice,
            self.folder,
            lambda *said: self.noted.append(said),
        )
        self.controlling = group.create_task(self.controllers.run())

    async def add(self, path: NodePath) -> None:
        """Make a node of the path, which gets a key of its own."""
        issuer, entropy = self.controllers.issuer, self.dice.entropy(32)
        made = await add_node(issuer, path, entropy, new_user_nkey)
        self.seeds[path] = made.seed

    @property
    def asks(self) -> CentreAsks:
        """The centre's way to ask any node."""
        asker = self.askers[NodePath()]
        nkeys = partial(nkeys_of, self.controllers.issuer)
        return CentreAsks(lambda: asker, lambda: self.keys, self.clock, self.dice, nkeys)


@asynccontextmanager
async def memory_tree(
    folder: Path,
    paths: Iterable[str],
    make_bus: Callable[[MemoryNetwork, NodePath], MemoryBus] = MemoryBus,
    prepare: Callable[[MemoryTree], None] = lambda _: None,
) -> AsyncIterator[MemoryTree]:
    """A tree with these nodes (parents first); each without children has a space.

    `prepare` may give it other spaces before anything runs.
    """
    tree = MemoryTree(folder, make_bus)
    prepare(tree)
    wanted = [NodePath.parse(path) for path in paths]
    inner = {path.parent for path in wanted}
    edges = [path for path in wanted if path not in inner]
    try:
        async with tree.group as group:
            await tree.start(NodePath(), group, attached=False)
            await tree.control(group)
            for path in wanted:
                await tree.add(path)
            for obj in inventory(edges):
                await tree.inventory.apply(obj, MANAGER)
            for path in wanted:
                await tree.start(path, group, attached=path in edges)
            for path in wanted:
                await tree.drivers[path].until(lambda node: node.ready)
            try:
                yield tree
            finally:
                for task in (
                    tree.controlling,
                    *(t for tasks in tree.running.values() for t in tasks),
                ):
                    task.cancel()
    finally:
        await tree.close()


def inventory(edges: Iterable[NodePath]) -> list[dict[str, Any]]:
    """A SyncTarget and a Location per edge, labelled by id and region."""
    found: list[dict[str, Any]] = []
    group, version = "edge.kubestellar.io", "v2alpha1"
    for path in edges:
        name = "-".join(path.names)
        labels = {"id": name, "region": path.names[0]}
        metadata = {"name": name, "labels": labels}
        annotations = {"leafcast.io/path": str(path)}
        found.append(
            {
                "apiVersion": f"{group}/{version}",
                "kind": "SyncTarget",
                "metadata": {**metadata, "annotations": annotations},
                "spec": {},
            }
        )
        resource = {"group": group, "version": version, "resource": "synctargets"}
        selector = {"matchLabels": {"id": name}}
        found.append(
            {
                "apiVersion": f"{group}/{version}",
                "kind": "Location",
                "metadata": metadata,
                "spec": {"resource": resource, "instanceSelector": selector},
            }
        )
    return found


def placement(name: str, namespace: str, **extra: Any) -> dict[str, Any]:
    """An EdgePlacement that sends all of a namespace everywhere."""
    return {
        "apiVersion": "edge.kubestellar.io/v2alpha1",
        "kind": "EdgePlacement",
        "metadata": {"name": name},
        "spec": {
            "locationSelectors": [{}],
            "downsync": [{"namespaces": [namespace]}],
            **extra,
        },
    }


def config_map(name: str, namespace: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }


class Standings:
    """In which state each node is, by its parent's word, as leafcast.daemon.tree_facts has it."""

    def __init__(self, tree: MemoryTree) -> None:
        self._tree = tree

    async def tree(self) -> dict[str, Any]:
        assert self._tree.controllers is not None
        forms = []
        for record in nodes(self._tree.controllers.issuer):
            above = self._tree.drivers.get(record.path.parent)
            standing = above.node.standing_of(record.path.name) if above else None
            word = standing.word if standing else "unknown"
            since = standing.silent_since_ms if standing else None
            form = {"path": str(record.path), "state": word, "silent_since_ms": since}
            form |= {"is_edge": record.path in self._tree.spaces, "maintenance_until_ms": None}
            forms.append({**form, "maintenance_reason": ""})
        return {"nodes": forms}
