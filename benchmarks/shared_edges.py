"""Many edges in one process: each a client of its region's server, with an account of its own.

Relay core, driver, link to the parent and syncer are the real ones; what an edge keeps for itself
(its records, blobs and cluster) lies in memory instead of in a nats-server of its own.

Run as `python -m benchmarks.shared_edges FILE`; says how many are in session, and "ready" when all
are; answers each line of its standard input with how often the clusters were written to, or with
how many "mail", "welcomes" or "reports" (of placements) passed so far, and ends when that does.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from leafcast.node.freed_memory import search_rarely
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.reconnecting_client import ReconnectingClient
from relay.adapters.jetstream.records import outgoing_reports
from relay.adapters.jetstream.uplink import Unheard, Uplink
from relay.adapters.server.nkey_pairs import private_key
from relay.adapters.spaces.simulated_cluster import Settings, SimulatedCluster
from relay.core.config import NodeConfig
from relay.core.effects import AckMail
from relay.core.events import BlobArrived, Event, MailArrived, Remembered, Welcomed
from relay.core.view import NodeView
from relay.ports import BusBroken
from relay.shell.driver import Driver
from relay.shell.inbox import Inbox
from relay.syncer.applier import ContentMissing
from relay.syncer.syncer import Syncer
from schemas.content.blobs import Reference
from schemas.content.sealing import SealingKey
from schemas.objects.objects import BUILT_IN_KINDS
from schemas.records.roots import Roots
from schemas.values import subjects
from schemas.values.identity import KeyId, NodePath, TreeId, random_id
from tests.doubles.memory.bus import MemoryBus, MemoryNetwork
from tests.doubles.memory_space import MemorySpace

CONNECT_AT_ONCE = 20
DIALS_MAX, DIAL_AT_ONCE = 10, 32


PASSED = Counter[str]()
"""How many messages came to these edges and went from them, by what they are."""


class CountingInbox(Inbox):
    """Counts what comes from the parent, and of mail what the node is given to judge."""

    async def put(self, event: Event) -> None:
        # With an empty run a parent speaks by itself, and has heard nobody yet.
        PASSED["welcomes"] += isinstance(event, Welcomed) and bool(event.message.run)
        await super().put(event)

    def weigh(self, batch: Iterable[Event]) -> Iterator[Event]:
        for event in super().weigh(batch):
            PASSED["mail"] += isinstance(event, MailArrived)
            yield event


class PatientDialler(ReconnectingClient):
    """Dials in turn with the others of this process: each edge has a machine of its own elsewhere.

    A server waits two seconds for who it is, and all at once would keep one another beyond them.
    """

    _turn = asyncio.Semaphore(DIAL_AT_ONCE)
    _dials = False

    async def _connect_to_server(self, s: Any) -> None:
        if not self._dials:
            await self._turn.acquire()
            self._dials = True
        try:
            await super()._connect_to_server(s)
        except BaseException:
            self._dialled()
            raise

    async def _process_connect_init(self) -> None:
        try:
            await super()._process_connect_init()
        finally:
            self._dialled()

    def _dialled(self) -> None:
        if self._dials:
            self._dials = False
            self._turn.release()


class ClientBus(MemoryBus):
    """An edge's bus: the parent over NATS, its own streams in memory."""

    def __init__(self, network: MemoryNetwork, path: NodePath, url: str, seed: str) -> None:
        super().__init__(network, path)
        self.inbox = CountingInbox()
        self._url, self._seed = url, seed
        self._dial()
        self._watching: asyncio.Task[None] | None = None

    def _dial(self) -> None:
        self._connection = Connection(self._url, self._seed, f"edge {self.path}", "_INBOX.edge")
        self._connection.client = PatientDialler()
        clock, dice = SystemClock(), SystemDice()
        self._uplink = Uplink(self._connection, self.path, self.inbox, clock, dice)

    async def start(self) -> Remembered:
        for _ in range(DIALS_MAX - 1):
            try:
                await self._connection.open()
                break
            except BusBroken as error:
                # A whole node would begin anew; a busy machine may be long in answering.
                print(error, file=sys.stderr, flush=True)
                self._dial()
        else:
            await self._connection.open()
        remembered = await super().start()
        await self._uplink.start()
        self._watching = asyncio.create_task(self._uplink.run())
        return remembered

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        await self._connection.close()
        await super().close()

    async def ack_mail(self, ack: AckMail) -> None:
        await self._uplink.mailbox.acknowledge(ack.sequence)

    async def reset_mail(self, sequence: int) -> int:
        return await self._uplink.mailbox.read_from(sequence)

    async def load_blob(self, reference: Reference, *, fresh: bool = False) -> BlobArrived:
        value = None if fresh else self._streams.blobs.get(reference.address)
        if value is not None:
            return BlobArrived(reference, value, local=True)
        try:
            found = await self._uplink.load_blob(reference.address)
        except Unheard:
            return BlobArrived(reference, None, local=False, unheard=True)
        return BlobArrived(reference, found, local=False)

    async def send_report(self, reports: Mapping[str, bytes]) -> bool:
        PASSED["reports"] += sum(key != subjects.PROGRESS_KEY for key in reports)
        return await self._uplink.send(outgoing_reports(self.path, reports))

    async def send_hello(self, data: bytes) -> bool:
        return await self._uplink.send({subjects.node_self(self.path): data})


class SharedEdge:
    """One of the edges."""

    def __init__(
        self,
        path: NodePath,
        url: str,
        seed: str,
        tree: TreeId,
        root: tuple[str, bytes],
        settings: Settings,
    ):
        clock, dice = SystemClock(), SystemDice()
        bus = ClientBus(MemoryNetwork(), path, url, seed)
        run = random_id(dice.entropy(16))
        keys = (private_key(seed),)
        config = NodeConfig(
            path,
            tree,
            Roots({KeyId(root[0]): root[1]}),
            run,
            attached=True,
            private_keys=lambda: keys,
        )
        self.driver = Driver(bus, config, clock, on_wants=self._wants)
        self._bus = bus
        self._space = MemorySpace(clock, dice)
        self._cluster = SimulatedCluster(self._space, clock, dice, settings)
        self._syncer = Syncer(
            self._cluster, bus, self._content, clock, dice, self.driver.observe, tree=tree
        )

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.driver.run())
                await self.driver.started.wait()
                group.create_task(self._cluster.run())
                group.create_task(self._syncer.run())
        finally:
            await self._bus.close()

    async def writes(self) -> int:
        """How often the cluster was written to."""
        return int((await self._space.list("-", "-")).revision.partition(".")[0])

    async def flip(self, *, ready: bool) -> None:
        """Someone in the cluster writes another status of each NetworkPolicy."""
        condition = {"type": "Ready", "status": str(ready)}
        for obj in (await self._space.list("networking.k8s.io", "networkpolicies")).objects:
            key = BUILT_IN_KINDS.key_of(obj)
            await self._space.set_status(key, {"ready": int(ready), "conditions": [condition]})

    def _wants(self, node: NodeView) -> None:
        self._syncer.set_wants(node.wanted, may_prune=node.may_prune)

    async def _content(self, reference: Reference, key: SealingKey | None) -> bytes:
        plain = await self.driver.load(reference, key)
        if plain is None:
            raise ContentMissing(reference.address)
        return plain


async def run(edges: Sequence[SharedEdge]) -> None:
    """Run all of them; a failure ends the process, though a thread waits for the next line."""
    try:
        await run_all(edges)
    except BaseExceptionGroup:
        traceback.print_exc()
        os._exit(1)


async def run_all(edges: Sequence[SharedEdge]) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(answer(edges))
        for at in range(0, len(edges), CONNECT_AT_ONCE):
            some = edges[at : at + CONNECT_AT_ONCE]
            for edge in some:
                group.create_task(edge.run())
            for edge in some:
                await edge.driver.until(lambda node: node.ready)
            print(at + len(some), flush=True)
        search_rarely()
        print("ready", flush=True)


async def answer(edges: Sequence[SharedEdge]) -> None:
    """Do what each line says, and answer; end it all when no more come."""
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        if line.startswith("flip "):
            for edge in edges:
                await edge.flip(ready=line.split()[1] == "True")
        if line.strip() in ("mail", "welcomes", "reports"):
            print(PASSED[line.strip()], flush=True)
            continue
        print(sum([await edge.writes() for edge in edges]), flush=True)
    os._exit(0)  # Whoever started this has gone; nothing here is kept.


def main() -> None:
    said = json.loads(Path(sys.argv[1]).read_text())
    root = (said["root"], bytes.fromhex(said["root_key"]))
    settings = Settings(tuple(said["startup_seconds"]))
    edges = [
        SharedEdge(NodePath.parse(path), said["url"], seed, TreeId(said["tree"]), root, settings)
        for path, seed in said["edges"].items()
    ]
    asyncio.run(run(edges))


if __name__ == "__main__":
    main()
