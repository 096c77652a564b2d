"""What one whole edge takes: memory of its server and its Python part, bytes on its idle link.

The edge runs in a process of its own, on a nats-server of its own. Its link to the parent goes
through a counter of bytes, both ways, acknowledgements and the servers' own keep-alives included.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.counts import is_synced
from benchmarks.one_edge import EDGE
from benchmarks.report import Report, children_of, resident_mb
from benchmarks.wide_tree import WideTree
from controllers.issuing.nodes import add_node
from relay.adapters.server.guard import ProcessGuard
from relay.adapters.server.nkey_pairs import new_user_nkey
from schemas.values.identity import NodePath
from tests.e2e.join_tree import Tree
from tests.memory_tree import config_map, inventory, placement

SETTLE_SECONDS, IDLE_SECONDS = 45.0, 120.0
MEMORY_GOAL_MB, BYTES_GOAL = 90.0, 31.0


class CountingLink:
    """Passes a TCP connection through, and counts."""

    def __init__(self, port: int) -> None:
        self.bytes = 0
        self._port = port
        self._server: asyncio.Server | None = None

    async def open(self) -> int:
        """The port to dial instead."""
        self._server = await asyncio.start_server(self._came, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Let nobody in any more."""
        if self._server is not None:
            self._server.close()

    async def _came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._port)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pass(reader, back))
            group.create_task(self._pass(there, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                self.bytes += len(data)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        writer.close()


@asynccontextmanager
async def edge_process(folder: Path) -> AsyncIterator[tuple[WideTree, Process, CountingLink]]:
    """A centre here, and below it an edge that is a process of its own, with its link counted."""
    async with ProcessGuard() as guard, asyncio.TaskGroup() as group:
        tree = WideTree(folder, 0, 0)
        tasks = await tree.start(group, guard)
        issuer = tree.controllers.issuer
        made = await add_node(issuer, EDGE, tree.dice.entropy(32), new_user_nkey)
        for obj in inventory([EDGE]):
            await tree.inventory.apply(obj, "benchmark")
        await tree.centre.until(lambda node: EDGE.name in node.children())
        leaf = tree.nodes[NodePath()].server.leaf_url
        link = CountingLink(int(leaf.rpartition(":")[2]))
        said = {
            "url": f"nats-leaf://127.0.0.1:{await link.open()}",
            "tree": tree.keys.tree,
            "root": tree.keys.ring.roots[0].key_id,
            "root_key": tree.keys.ring.roots[0].public_key.hex(),
            "seed": made.seed,
            "folder": str(folder / "edge"),
        }
        file = folder / "edge.json"
        file.write_text(json.dumps(said))
        command = [sys.executable, "-m", "benchmarks.one_edge", str(file)]
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
        assert process.stdout is not None
        assert await process.stdout.readline() == b"ready\n"
        yield tree, process, link
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
        link.close()
        await tree.stop(tasks)


async def measure(folder: Path, seconds: float) -> tuple[float, float, float]:
    """MB of the server, MB of the Python part, bytes a second."""
    async with edge_process(folder) as (tree, process, link):
        await tree.apply(config_map("one", "shop", text="first"), placement("shop", "shop"))
        await tree.until("shop", lambda c: is_synced(c, 1))
        await asyncio.sleep(SETTLE_SECONDS if seconds >= IDLE_SECONDS else 5)
        before = link.bytes
        await asyncio.sleep(seconds)
        idle = (link.bytes - before) / seconds
        below = children_of(process.pid).items()
        server = sum(resident_mb(pid) for pid, words in below if "nats-server" in words)
        python = resident_mb(process.pid)
    return server, python, idle


def joined_mb(folder: Path, seconds: float) -> float:
    """MB of a `leafcast join` that got the same, by its command."""
    tree = Tree(folder)
    try:
        tree.run("up", "--regions", "0")
        site = tree.join(tree.add("/edge"), "edge")
        site.until("in session with its parent")
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
        sent = config_map("one", "shop", text="first"), placement("shop", "shop")
        objects = namespace, *sent
        tree.run("apply", "-f", "-", stdin="\n---\n".join(map(json.dumps, objects)))
        tree.run("wait", "shop", "--for", "synced")
        time.sleep(seconds)
        return resident_mb(site.process.pid)
    finally:
        for site in tree.sites:
            site.end()
        tree.run("down")


async def main(seconds: float = IDLE_SECONDS) -> None:
    report = Report("footprint", "One whole edge, idle", ("what", "figure", "unit"))
    with tempfile.TemporaryDirectory() as folder:
        server, python, idle = await measure(Path(folder), seconds)
    with tempfile.TemporaryDirectory() as folder:
        joined = await asyncio.to_thread(joined_mb, Path(folder), SETTLE_SECONDS)
    report.row("its nats-server, resident", server, "MB")
    report.row("its Python part, resident", python, "MB")
    report.row("its `leafcast join`, resident", joined, "MB")
    report.row("its link, idle, both ways", idle, "bytes a second")
    report.note(f"idle for {seconds:.0f} s; a heartbeat and its answer come every 30 s")
    report.goal("MB resident, server and Python part", server + python, MEMORY_GOAL_MB)
    report.goal("MB resident, Python part", python, 46.0)
    report.goal("MB resident, `leafcast join`", joined, 46.0)
    report.goal("idle bytes a second", idle, BYTES_GOAL)
    report.finish()


if __name__ == "__main__":
    asyncio.run(main(*(float(word) for word in sys.argv[1:])))
