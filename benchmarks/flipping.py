"""All states at many edges change at once: how long until the centre's rows are exact.

Each edge has 150 objects, and one collector counts them by their condition. Beside it a bare loop
over the same servers and accounts with the same library: as many processes publish a report for
each object of each edge into their region's stream; the region reads and counts them by object, and
passes its counts on when it has all. Nothing is compared, signed, kept or evaluated there, and no
cluster says that something is otherwise.

`python -m benchmarks.flipping --edges FILE` is a process of the bare loop's edges: it publishes at
each line of its standard input, and ends with that.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgpack
from nats.aio.client import Client
from nats.aio.msg import Msg

from benchmarks.fanout import Usage
from benchmarks.raw_fanout import connect, consume
from benchmarks.report import Report, middle
from benchmarks.wide_tree import JOIN_SECONDS, WideTree, wide_tree
from leafcast.node.credentials.account_seeds import SEEDS_FILE
from relay.core.view import NodeView
from schemas.values.identity import NodePath
from schemas.values.ordered_values import pack_values
from tests.memory_tree import placement

REGIONS, EDGES, OBJECTS, ROUNDS = 4, 1000, 150, 3
REST_SECONDS, SECONDS_MAX = 5.0, 600.0
RATIO = 4.0
CONNECT_AT_ONCE, FLUSH_EVERY = 50, 10
COLLECTOR: dict[str, Any] = {
    "apiVersion": "control.kubestellar.io/v1alpha1",
    "kind": "StatusCollector",
    "metadata": {"name": "ready"},
    "spec": {
        "filter": "has(returned.status)",
        "groupBy": [{"name": "ready", "def": "returned.status.ready"}],
        "combinedFields": [{"name": "n", "type": "COUNT"}],
    },
}


def policies(count: int) -> list[dict[str, Any]]:
    """Objects of a kind that no controller of a simulated cluster looks after."""
    return [
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": f"n-{at}", "namespace": "shop"},
            "spec": {"podSelector": {}},
        }
        for at in range(count)
    ]


async def flipped(tree: WideTree, objects: int, *, ready: bool) -> float:
    """Seconds until the centre has a whole row of each object, and the count is exact."""
    key, everywhere = await tree.placement_key("shop"), tree.everywhere

    def exact(node: NodeView) -> bool:
        count = node.count(key)
        if not count.exact or count.summary.health != {_health(ready=ready): everywhere}:
            return False
        results = node.collected(key)
        counts = [{group: row.count for group, row in it.rows.rows.items()} for it in results]
        return counts == [{pack_values([int(ready)]): everywhere}] * objects

    began = time.perf_counter()
    await tree.flip(ready=ready)
    async with asyncio.timeout(SECONDS_MAX):
        await tree.centre.until(exact)
    return time.perf_counter() - began


class BareLoop:
    """Reports of all objects of all edges, counted by region and passed on as one."""

    def __init__(self, tree: WideTree, objects: int) -> None:
        self._tree = tree
        self._objects = objects
        self._clients: list[Client] = []
        self._arrived: dict[NodePath, int] = {}
        self._counts: dict[NodePath, Counter[int]] = {}
        self._known = asyncio.Event()
        self.processes: dict[str, Process] = {}

    async def open(self) -> None:
        for path, node in self._tree.nodes.items():
            seeds = json.loads((self._tree.folder_of(path) / SEEDS_FILE).read_text())
            relay = await connect(node.server.url, seeds["relay"], "_INBOX.raw")
            self._clients.append(relay)
            up = None
            if not path.is_root:
                up = await connect(node.server.url, seeds["uplink"], "_INBOX.rawup")
                self._clients.append(up)
            await relay.subscribe("rawup", cb=self._reader(path, up))
            await consume(relay, "STAT", "rawup", f"{path.prefix}.*._stat.*")
        for region in self._tree.regions:
            file = str(self._tree.edges_file(region))
            command = [sys.executable, "-m", "benchmarks.flipping", "--edges", file]
            process = await asyncio.create_subprocess_exec(
                *command, str(self._objects), stdin=PIPE, stdout=PIPE
            )
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
            self.processes[f"raw edges of {region}"] = process

    async def close(self) -> None:
        for process in self.processes.values():
            process.kill()
            await process.wait()
        for client in self._clients:
            await client.close()

    async def flip(self, *, ready: bool) -> float:
        """Seconds until the centre has all counts."""
        self._arrived = dict.fromkeys(self._tree.nodes, 0)
        self._counts = {path: Counter() for path in self._tree.nodes}
        self._known.clear()
        began = time.perf_counter()
        for process in self.processes.values():
            assert process.stdin is not None
            process.stdin.write(f"{int(ready)}\n".encode())
        async with asyncio.timeout(SECONDS_MAX):
            await self._known.wait()
        everywhere = dict.fromkeys(range(self._objects), self._tree.everywhere * int(ready))
        assert +self._counts[NodePath()] == Counter({k: v for k, v in everywhere.items() if v})
        return time.perf_counter() - began

    def _reader(self, path: NodePath, up: Client | None) -> Any:
        below = self._tree.edges.get(path)
        wanted = len(self._tree.regions) if below is None else len(below) * self._objects

        async def came(message: Msg) -> None:
            if "._stat.raw" not in message.subject:
                return
            counts = self._counts[path]
            for at, ready in msgpack.unpackb(message.data, strict_map_key=False).items():
                counts[at] += ready
            self._arrived[path] += 1
            if self._arrived[path] < wanted:
                return
            if up is None:
                self._known.set()
            else:
                await up.publish(f"{path.prefix}._stat.raw", msgpack.packb(dict(counts)))

        return came


async def bare_edges(file: Path, objects: int) -> None:
    """The process of one region's edges."""
    said: Mapping[str, Any] = json.loads(file.read_text())
    edges = [(NodePath.parse(path), seed) for path, seed in said["edges"].items()]
    clients: list[tuple[NodePath, Client]] = []
    for at in range(0, len(edges), CONNECT_AT_ONCE):
        some = edges[at : at + CONNECT_AT_ONCE]
        dialled = (connect(said["url"], seed, "_INBOX.rawedge") for _, seed in some)
        made = await asyncio.gather(*dialled)
        clients += zip((path for path, _ in some), made, strict=True)
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        for number, (path, client) in enumerate(clients):
            for at in range(objects):
                data = msgpack.packb({at: int(line)})
                await client.publish(f"{path.prefix}._stat.raw-{at}", data)
            if number % FLUSH_EVERY == 0:
                await client.flush()
    os._exit(0)  # Whoever started this has gone; nothing here is kept.


async def measure(report: Report, edges: int, objects: int) -> tuple[list[float], list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        async with wide_tree(Path(folder), REGIONS, edges // REGIONS) as tree:
            placed = placement("shop", "shop")
            placed["spec"]["downsync"][0]["statusCollectors"] = ["ready"]
            await tree.apply(COLLECTOR, *policies(objects), placed)
            ready = {"synced": tree.everywhere}
            whole = tree.until(
                "shop", lambda c: c.exact and c.summary.states == ready, JOIN_SECONDS
            )
            await whole
            await flipped(tree, objects, ready=False)
            usage, ours = Usage(edges, tree.pids()), []
            for number in range(ROUNDS):
                await asyncio.sleep(REST_SECONDS)
                ours.append(await usage.of(flipped(tree, objects, ready=number % 2 == 0)))
            usage.rows(report)
            loop, raw = BareLoop(tree, objects), []
            try:
                await loop.open()
                pids = {n: pid for n, pid in tree.pids().items() if not n.startswith("edges")}
                pids |= {name: process.pid for name, process in loop.processes.items()}
                usage = Usage(edges, pids, "raw: ")
                await loop.flip(ready=False)
                for number in range(ROUNDS):
                    await asyncio.sleep(REST_SECONDS)
                    raw.append(await usage.of(loop.flip(ready=number % 2 == 0)))
                usage.rows(report)
            finally:
                await loop.close()
    return ours, raw


def _health(*, ready: bool) -> str:
    return "healthy" if ready else "degraded"


async def main(edges: int = EDGES, objects: int = OBJECTS) -> None:
    report = Report(
        "flipping",
        f"All states of {objects} objects at {edges} edges change, {REGIONS} regions",
        ("edges", "process", "resident MB", "CPU seconds until exact"),
    )
    ours, raw = await measure(report, edges, objects)
    for name, seconds in (("exact", ours), ("the bare loop knows all", raw)):
        report.note(f"{name} after {', '.join(f'{each:.2f}' for each in seconds)} s")
    report.goal("over the bare loop of the same run", middle(ours) / middle(raw), RATIO)
    report.finish()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--edges"]:
        asyncio.run(bare_edges(Path(sys.argv[2]), int(sys.argv[3])))
    else:
        asyncio.run(main(*(int(word) for word in sys.argv[1:])))
