"""A node on three real servers: `async with trio(grove, folder)`, and each can be killed."""

import json
import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from nats.aio.client import Client
from nats.errors import Error as NatsError

from leafcast.members.layout import PortPool
from relay.adapters.clock import SystemClock
from relay.adapters.server.cluster_settings import ClusterSettings
from relay.adapters.server.durability import DEFAULT_STORE, StoreSettings
from relay.adapters.server.nats_config import AccountSeeds, Neighbours, ParentRemote
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.ports import PortTaken
from schemas.values.identity import NodePath, TreeId
from tests.awaiting import eventually
from tests.nats.conftest import Grove, new_seeds

NAMES = ("m1", "m2", "m3")
TREE = TreeId("tree-of-tests")
PASSWORD = "p" * 32
PORT_ATTEMPTS_MAX = 5


@dataclass
class Trio:
    """The servers of one node, by the names of its members; all have the same seeds."""

    path: NodePath
    seeds: AccountSeeds
    folder: Path
    settings: Mapping[str, ClusterSettings]
    store: StoreSettings = DEFAULT_STORE
    servers: dict[str, EmbeddedServer] = field(default_factory=dict)

    def url(self, *names: str) -> str:
        """Where a client goes on, at these members or at any of them."""
        return ",".join(self.servers[name].url for name in names or NAMES)

    def server(self, grove: Grove, name: str, parent: ParentRemote | None = None) -> EmbeddedServer:
        """The server of a member, which is not started; the grove is entered."""
        self.servers[name] = EmbeddedServer(
            self.folder / name,
            self.path,
            self.seeds,
            Neighbours(parent, cluster=self.settings[name]),
            guard=grove.guard,
            clock=SystemClock(),
            store=self.store,
        )
        return self.servers[name]

    def kill(self, name: str) -> None:
        """Its server is started again soon, by its supervisor."""
        os.kill(self.servers[name].pid, signal.SIGKILL)


def cluster_settings(folder: Path, **changed) -> dict[str, ClusterSettings]:
    """What the members of one trio on this machine are told, whose servers are in this folder."""
    pool = PortPool()
    ports = [pool.take(folder / name)[1] for name in NAMES]
    said = {"tree": TREE, "password": PASSWORD, **changed}
    return {
        name: ClusterSettings(
            member=name,
            port=port,
            routes=tuple(f"127.0.0.1:{other}" for other in ports if other != port),
            **said,
        )
        for name, port in zip(NAMES, ports, strict=True)
    }


@asynccontextmanager
async def trio(
    grove: Grove,
    folder: Path,
    path: str = "/",
    parent: ParentRemote | None = None,
    store: StoreSettings = DEFAULT_STORE,
) -> AsyncIterator[Trio]:
    """A node of three servers that have agreed on a leader; the grove is entered."""
    async with AsyncExitStack() as stack:
        wanted = Trio(NodePath.parse(path), new_seeds(), folder, {}, store)
        made = await _started(grove, wanted, parent, stack)
        await until_led(made)
        yield made


async def _started(
    grove: Grove, wanted: Trio, parent: ParentRemote | None, stack: AsyncExitStack
) -> Trio:
    """Its servers, in the stack; with other ports where somebody else took one meanwhile."""
    for _ in range(PORT_ATTEMPTS_MAX):
        made = replace(wanted, settings=cluster_settings(wanted.folder), servers={})
        async with AsyncExitStack() as starting:
            try:
                for name in NAMES:
                    await starting.enter_async_context(made.server(grove, name, parent))
            except PortTaken:
                continue
            await stack.enter_async_context(starting.pop_all())
            return made
    raise AssertionError(f"each port for a trio in {wanted.folder} is taken at once by others")


@asynccontextmanager
async def client_at(url: str, seed: str, **options) -> AsyncIterator[Client]:
    """A client for a while; several URLs with commas between."""

    async def quiet(error: Exception) -> None:
        pass

    client = Client()
    options = {"error_cb": quiet, "allow_reconnect": False, **options}
    await client.connect(url.split(","), nkeys_seed_str=seed, **options)
    try:
        yield client
    finally:
        await client.close()


async def asked(client: Client, verb: str, seconds: float = 10, **body: object) -> dict:
    """What JetStream answers, also an error."""
    data = json.dumps(body).encode() if body else b""
    return json.loads((await client.request(f"$JS.API.{verb}", data, timeout=seconds)).data)


async def until_led(made: Trio) -> None:
    """Wait until JetStream has a leader that each member reaches that was made."""

    async def is_led() -> bool:
        for name in made.servers:
            async with client_at(made.url(name), made.seeds.relay) as client:
                try:
                    answer = await asked(client, "INFO", 1)
                except NatsError:
                    return False
                if "error" in answer:
                    return False
        return True

    await eventually(is_led, "the trio has no leader")
