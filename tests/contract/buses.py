"""Trees of buses, in memory and on real servers, that a test grows, cuts and restarts alike."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest

from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream.bus import BusAddress, JetStreamBus
from relay.adapters.server.external_server import ExternalServer, ServerPlace
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.nats_config import AccountSeeds, Neighbours, ParentRemote
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.adapters.server.ports import free_ports
from relay.core.effects import WriteMail
from relay.core.events import HelloArrived, LinkChanged, MailArrived
from relay.ports import BusBroken
from schemas.content.blobs import OBJECT, store
from schemas.records.signing import Envelope
from schemas.values.identity import KeyId, NodePath, mail_key, random_id
from schemas.values.wire import replace
from tests.docker.daemon import NATS_IMAGE, nats_container, need_docker
from tests.doubles.memory.bus import MemoryBus, MemoryNetwork

WAIT_SECONDS = 60


def said_anew(event):
    """The event, as if it was said to the present run."""
    return replace(event, former_ms=None) if isinstance(event, HelloArrived) else event


class Listener:
    """Reads a bus's events as they come, and waits for what should be among them.

    Of its mailbox it reads on after the last mail, as a node does, whenever the link opens.
    """

    def __init__(self, bus, remembered) -> None:
        self.remembered = remembered
        self.events = []
        self._bus = bus
        self._through = 0
        self._more = asyncio.Condition()
        self._task = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        with suppress(BusBroken):
            while True:
                batch = await self._bus.inbox.next_batch(1000)
                self._through = max([self._through, *(mail.sequence for mail in mails(batch))])
                if links(batch)[-1:] == [True]:
                    await self._bus.reset_mail(self._through + 1)
                async with self._more:
                    self.events += batch
                    self._more.notify_all()

    async def until(self, holds):
        """Wait until `holds(events)` is true; its value."""
        try:
            async with asyncio.timeout(WAIT_SECONDS), self._more:
                await self._more.wait_for(lambda: holds(self.events))
        except TimeoutError:
            raise AssertionError(f"did not come; the last events: {self.events[-5:]}") from None
        return holds(self.events)

    async def mail(self, count):
        """The first so many mails, and any that came by then."""
        await self.until(lambda events: len(mails(events)) >= count)
        return mails(self.events)

    async def linked(self, up=True):
        """Wait until the last word on the link is this."""
        await self.until(lambda events: links(events)[-1:] == [up])

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


def mails(events):
    return of(MailArrived, events)


def links(events):
    return [event.up for event in of(LinkChanged, events)]


class Gate:
    """A TCP relay before a server's leaf port, that can be shut."""

    def __init__(self, port) -> None:
        self._to = port
        self._open = True
        self._writers = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"nats://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *error) -> None:
        self._server.close()
        await self.shut()
        await self._server.wait_closed()

    async def shut(self) -> None:
        self._open = False
        writers = list(self._writers)
        for writer in writers:
            writer.transport.abort()
        for writer in writers:
            with suppress(OSError):
                await writer.wait_closed()

    def unshut(self) -> None:
        self._open = True

    async def _serve(self, reader, writer) -> None:
        if not self._open:
            writer.transport.abort()
            return
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._to)
        except OSError:
            writer.transport.abort()
            return
        if not self._open:
            writer.transport.abort()
            to_writer.transport.abort()
            return
        self._writers |= {writer, to_writer}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(reader, to_writer))
                group.create_task(_copy(to_reader, writer))
        finally:
            self._writers -= {writer, to_writer}
            writer.transport.abort()
            to_writer.transport.abort()


async def _copy(reader, writer) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.transport.abort()


class Tree:
    """Nodes by path (text); `open` starts a node's bus and listens to it."""

    def new_bus(self, path):
        """A bus at the node that is not started."""
        raise NotImplementedError

    async def plant(self, path, parent):
        """Have room for a node below the parent's bus."""
        raise NotImplementedError

    def __init__(self) -> None:
        self.stack = AsyncExitStack()
        self._open = {}

    async def __aenter__(self):
        return self

    async def __aexit__(self, *error) -> None:
        for path in list(self._open):
            await self.close(path)
        await self.stack.aclose()

    async def open(self, path="/"):
        """Start a bus at the node: (bus, listener)."""
        bus = self.new_bus(path)
        listener = Listener(bus, await bus.start())
        self._open[path] = (bus, listener)
        return bus, listener

    async def close(self, path) -> None:
        bus, listener = self._open.pop(path)
        await bus.close()
        await listener.stop()

    async def sprout(self, path, parent):
        """Plant a node below the parent's bus, and open it: (bus, listener), linked."""
        await self.plant(path, parent)
        bus, listener = await self.open(path)
        await listener.linked()
        return bus, listener


class MemoryTree(Tree):
    def __init__(self, folder) -> None:
        super().__init__()
        self.network = MemoryNetwork()

    async def plant(self, path, parent=None) -> None:
        if parent is not None:
            await parent.add_child(NodePath.parse(path).name, "nkey")

    async def readmit(self, path, parent) -> None:
        """Open the child's account once more."""
        await self.plant(path, parent)

    def new_bus(self, path):
        return MemoryBus(self.network, NodePath.parse(path))

    async def cut(self, path) -> None:
        self.network.cut(NodePath.parse(path))

    async def heal(self, path) -> None:
        self.network.heal(NodePath.parse(path))

    async def kill_server(self, path) -> None:
        """Memory does not fail."""


class NatsTree(Tree):
    """Real servers; `told_of_links` lets a bus hear from its server which links it has."""

    def __init__(self, folder, *, told_of_links=False) -> None:
        super().__init__()
        self._told_of_links = told_of_links
        self._folder = folder
        self._servers = {}
        self._gates = {}
        self._nkeys = {}
        self._guard = ProcessGuard()
        self._clock = SystemClock()

    async def __aenter__(self):
        await self.stack.enter_async_context(self._guard)
        return self

    async def plant(self, path, parent=None) -> None:
        node = NodePath.parse(path)
        link = None
        if parent is not None:
            server, _ = self._servers[str(node.parent)]
            gate = Gate(int(server.leaf_url.rpartition(":")[2]))
            self._gates[path] = await self.stack.enter_async_context(gate)
            seed, nkey = self._nkeys[path] = _nkey()
            await parent.add_child(node.name, nkey)
            link = ParentRemote((gate.url,), seed)
        seeds = AccountSeeds(*(_nkey()[0] for _ in range(4)))
        server = await self._start_server(node, seeds, link)
        self._servers[path] = (await self.stack.enter_async_context(server), seeds)

    async def _start_server(self, node, seeds, link):
        folder = self._folder / node.domain
        return EmbeddedServer(
            folder, node, seeds, Neighbours(link), guard=self._guard, clock=self._clock
        )

    async def readmit(self, path, parent) -> None:
        """Open the child's account once more."""
        await parent.add_child(NodePath.parse(path).name, self._nkeys[path][1])

    def new_bus(self, path, *, stranger=False):
        server, seeds = self._servers[path]
        uplink = None if path == "/" else seeds.uplink
        system = seeds.system if self._told_of_links else None
        address = BusAddress(server.url, _nkey()[0] if stranger else seeds.relay, uplink, system)
        node = NodePath.parse(path)
        return JetStreamBus(node, address, server, clock=self._clock, dice=SystemDice())

    async def cut(self, path) -> None:
        await self._gates[path].shut()

    async def heal(self, path) -> None:
        self._gates[path].unshut()

    async def kill_server(self, path) -> None:
        """End the node's server at once, and wait until it is back."""
        server, _ = self._servers[path]
        seen = server.starts
        os.kill(server.pid, signal.SIGKILL)
        await server.next_start(seen)


class ContainerTree(NatsTree):
    """Each server is a container of NATS's own image, on the files that Leafcast writes for it."""

    def __init__(self, folder) -> None:
        need_docker(NATS_IMAGE)
        super().__init__(folder)

    async def _start_server(self, node, seeds, link):
        folder = self._folder / node.domain
        folder.mkdir()
        ports = free_ports(folder, 0)
        url, leaf_url = (f"nats://127.0.0.1:{port}" for port in (ports.client, ports.leaf))
        file = folder / "nats.conf"
        place = ServerPlace(
            url, leaf_url, file, Path("/data"), "127.0.0.1", ports.client, ports.leaf
        )
        server = ExternalServer(place, node, seeds, Neighbours(link))
        server.write_config()
        container = nats_container(folder, file)
        self.stack.push_async_callback(asyncio.to_thread, container.stop)
        await asyncio.to_thread(container.start)
        return server


def _nkey():
    return new_user_nkey(os.urandom(32))


TREES = [
    pytest.param(MemoryTree, id="memory"),
    pytest.param(NatsTree, marks=pytest.mark.nats, id="nats"),
]
CONTAINERS = pytest.param(ContainerTree, marks=pytest.mark.docker, id="container")


def record(payload):
    """A message as the core writes it."""
    return Envelope("delta", KeyId(random_id(b"k" * 16)), payload, b"s" * 64).encode()


def key(number):
    return mail_key("leafcast.io/Delta", "wds", "shop", f"placement-{number}")


def blob_of(text):
    """A stored value by its address."""
    return next(iter(store(OBJECT, text).values.items()))


def letter(child, number, expected=0, generation=1, data=None, carried=()):
    return WriteMail(
        child=child,
        key=key(number),
        data=data or record(b"delta %d" % number),
        generation=generation,
        payload_hash=bytes([number % 256]) * 32,
        has_body=number % 2 == 0,
        trace="trace",
        expected=expected,
        carried=tuple(carried),
    )
