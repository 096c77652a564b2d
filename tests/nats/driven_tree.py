"""A tree of real servers with the real centre and relays in this process; spaces are in memory."""

import asyncio
import os
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from controllers.centre import Controllers
from controllers.issuing.keys import load_or_make_keys
from controllers.issuing.nodes import enrol_nodes
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream.bus import BusAddress, JetStreamBus
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.nats_config import AccountSeeds, Neighbours, ParentRemote
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.core.config import NodeConfig
from relay.shell.asker import Asker
from relay.shell.driver import Driver
from schemas.values.identity import NodePath, random_id
from tests.doubles.memory_space import MemorySpace
from tests.namespaces import apply_in_namespaces
from tests.unit.centre_world import USER, config, location, placement, target


@dataclass
class DrivenNode:
    """A node that runs."""

    server: EmbeddedServer
    seeds: AccountSeeds
    bus: JetStreamBus
    driver: Driver


class DrivenTree:
    """Nodes by path (text); `wds` and `inventory` are the centre's spaces."""

    def __init__(self, folder, group, stack) -> None:
        self.nodes = {}
        self.tasks = []
        self.clock, self.dice = SystemClock(), SystemDice()
        self.wds = MemorySpace(self.clock, self.dice)
        self.inventory = MemorySpace(self.clock, self.dice)
        self._folder, self._group, self._stack = folder, group, stack
        self._keys = load_or_make_keys(folder, self.dice)
        self._guard = ProcessGuard()
        self._controllers: Controllers

    @property
    def centre(self):
        return self.nodes["/"].driver

    @property
    def issuer(self):
        return self._controllers.issuer

    async def begin(self):
        await self._stack.enter_async_context(self._guard)
        await self._start(NodePath(), None)
        self._controllers = await Controllers.open(
            self.centre.publisher, self.wds, self.inventory, self.clock, self.dice, self._folder
        )
        self.tasks.append(self._group.create_task(self._controllers.run()))

    async def add(self, path, *, attached=False):
        """Enrol a node, start it, and wait until it is ready."""
        at = NodePath.parse(path)
        if attached:
            await self.inventory.apply(target(at.name, path), USER)
        node = await self._start(at, await self.enrol(at), attached=attached)
        await node.driver.until(lambda core: core.ready)
        return node

    async def lend(self, path):
        """Enrol an edge and start its server alone: whoever speaks with its key is its program."""
        at = NodePath.parse(path)
        await self.inventory.apply(target(at.name, path), USER)
        return await self._serve(at, await self.enrol(at), self._folder / "lent")

    async def rekey(self, path):
        """Give a node another key, as `leafcast node rotate` does, and start an honest edge."""
        at = NodePath.parse(path)
        node = await self._start(at, await self.enrol(at), attached=True)
        await node.driver.until(lambda core: core.ready)
        return node

    def serve_asks(self, path):
        """Have a node deal with asks and answers, as a program does."""
        node = self.nodes[path]
        asker = Asker(node.bus, lambda: node.driver.node, node.driver.count_junk, self.clock, {})
        self.tasks.append(self._group.create_task(asker.run()))
        return asker

    async def place(self):
        """A placement for all; its mail key."""
        await self.inventory.apply(location("all"), USER)
        await apply_in_namespaces(self.wds, [config("a")], USER)
        await self.wds.apply(placement(), USER)
        await self.centre.until(lambda core: any(r.kind == "delta" for r in core.records.values()))
        deltas = (key for key, r in self.centre.node.records.items() if r.kind == "delta")
        return next(deltas)

    async def change(self, key, value, edge):
        """Seconds until a change of the object is at the edge, and counted exactly here."""
        before, began = self.centre.node.records[key].generation, self.clock.now().seconds
        await self.wds.apply(config("a", value=value), USER)
        await self.centre.until(lambda core: core.records[key].generation > before)
        generation = self.centre.node.records[key].generation
        await edge.until(lambda core: at_least(core, key, generation))
        there = self.clock.now().seconds - began
        await self.centre.until(lambda core: core.count(key).exact)
        return there, self.clock.now().seconds - began

    async def enrol(self, path):
        """A new key for a node, and its way to the parent with it."""
        seed, nkey = new_user_nkey(os.urandom(32))
        await enrol_nodes(self._controllers.issuer, {path: nkey})
        return ParentRemote((self.nodes[str(path.parent)].server.leaf_url,), seed)

    async def _serve(self, path, link, folder):
        """A node's server, and the secrets of its accounts."""
        seeds = AccountSeeds(*(new_user_nkey(os.urandom(32))[0] for _ in range(4)))
        server = EmbeddedServer(
            folder / path.domain,
            path,
            seeds,
            Neighbours(link),
            guard=self._guard,
            clock=self.clock,
        )
        await self._stack.enter_async_context(server)
        return server, seeds

    async def _start(self, path, link, *, attached=False):
        server, seeds = await self._serve(path, link, self._folder)
        uplink = None if link is None else seeds.uplink
        address = BusAddress(server.url, seeds.relay, uplink, seeds.system)
        bus = JetStreamBus(path, address, server, clock=self.clock, dice=self.dice)
        self._stack.push_async_callback(bus.close)
        roots = self._keys.roots
        run = random_id(self.dice.entropy(16))
        driver = Driver(bus, NodeConfig(path, self._keys.tree, roots, run, attached), self.clock)
        self.tasks.append(self._group.create_task(driver.run()))
        await driver.started.wait()
        node = self.nodes[str(path)] = DrivenNode(server, seeds, bus, driver)
        return node


def at_least(core, key, generation):
    """Whether a node holds this record, or a newer one."""
    return key in core.records and core.records[key].generation >= generation


@asynccontextmanager
async def driven_tree(folder):
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        tree = DrivenTree(folder, group, stack)
        await tree.begin()
        yield tree
        for task in tree.tasks:
            task.cancel()
