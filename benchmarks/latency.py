"""From applying an object at the centre to having it applied at every edge, in an idle tree.

Three tiers, eight edges. As in production each node is a process of its own, with a nats-server of
its own: 11 of both, here on one machine and over its loopback. An edge has applied a version when
its relay counts it as synced. Between two changes the tree comes to rest.

Each change is paired with a message through the raw chain: the same servers, links and processes,
as many leaves; stored at the centre, at both regions and at all edges. It writes to no space, and
signs, fetches and decides nothing: what the space's own writes take (apply at the centre until
its controllers see it, and the write at an edge) counts against Leafcast alone.

Eleven nodes share this machine's cores. A tree of one region and one edge is measured besides: what
remains there is what a change waits for on its way.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks.latency_node import arms
from benchmarks.raw_chain import RawNode
from benchmarks.report import Report, children_of, cpu_seconds, percentile
from controllers.issuing.nodes import add_node
from leafcast.ask.session import USER_MANAGER
from leafcast.centre.centre import Centre, CentreOptions
from leafcast.centre.inventory import edge_objects
from leafcast.data_dir import DataDir
from leafcast.local.views import TreeShape
from leafcast.node.freed_memory import search_rarely
from relay.adapters.clock import SystemDice
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.shell.driver import Driver
from schemas.values.identity import NodePath
from tests.memory_tree import config_map, placement
from tests.namespaces import namespace_object

SHAPE, ALONE = TreeShape(regions=2, sites=4), TreeShape(regions=1, sites=1)
CHANGES = 120
REST_SECONDS = 0.3
SETTLE_SECONDS = 2.0
PAYLOAD = 500
"""About the size of a delta."""
P50_RATIO, P99_RATIO = 4.5, 6.0
CENTRE = NodePath()


class Member:
    """A node's process: it is told verbs, and says when something came."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.leaf_url = ""
        self._said: dict[str, asyncio.Queue[str]] = {
            word: asyncio.Queue() for word in ("ready", "done", "applied", "stored")
        }

    async def listen(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            word, _, rest = line.decode().strip().partition(" ")
            self._said[word].put_nowait(rest)

    async def said(self, word: str) -> str:
        return await self._said[word].get()

    async def do(self, verb: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{verb}\n".encode())
        await self.said("done")

    def forget(self) -> None:
        """What came until now does not count."""
        for queue in self._said.values():
            while not queue.empty():
                queue.get_nowait()

    async def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        await self.process.wait()


class Tree:
    """The centre in this process, and all other nodes in theirs."""

    def __init__(
        self,
        centre: Centre,
        folder: Path,
        shape: TreeShape,
        kubeconfigs: Mapping[NodePath, Path],
    ) -> None:
        self._centre = centre
        self._shape = shape
        self._kubeconfigs = kubeconfigs
        self._folder = folder
        self.members: dict[NodePath, Member] = {}
        self.edges: list[Member] = []
        root = centre.nodes[CENTRE]
        assert root.driver is not None
        self.relay: Driver = root.driver
        regions = [f"region-{at + 1}" for at in range(shape.regions)]
        self.raw = RawNode(CENTRE, root.server.url, folder / "tree" / "centre", regions)

    async def grow(self, group: asyncio.TaskGroup) -> None:
        """Add regions and sites, and prepare the raw chain."""
        sites = [f"site-{at + 1}" for at in range(self._shape.sites)]
        for region in range(self._shape.regions):
            path = CENTRE.child(f"region-{region + 1}")
            await self._add(group, path, self._centre.nodes[CENTRE].server.leaf_url, sites)
            for name in sites:
                above = self.members[path].leaf_url
                self.edges.append(await self._add(group, path.child(name), above, []))
        await self.raw.open()
        for verb in ("open", "serve"):
            for member in self.members.values():
                await member.do(verb)
        await self.raw.serve()

    async def _add(
        self, group: asyncio.TaskGroup, path: NodePath, leaf_url: str, children: Sequence[str]
    ) -> Member:
        centre, folder = self._centre, self._folder / path.domain
        tree, keys = centre.tree_id(), centre.keys()
        made = await add_node(centre.issuer(), path, SystemDice().entropy(32), new_user_nkey)
        for obj in [] if children else edge_objects(path):
            await centre.inventory_space().apply(obj, USER_MANAGER)
        said = {
            "path": str(path),
            "folder": str(folder),
            "children": " ".join(children),
            "leaf_url": leaf_url,
            "seed": made.seed,
            "tree": tree,
            "root": keys.ring.roots[0].key_id,
            "root_key": keys.ring.roots[0].public_key.hex(),
            "kubeconfig": str(self._kubeconfigs.get(path, "")),
        }
        file = folder.with_suffix(".json")
        file.write_text(json.dumps(said))
        command = [sys.executable, "-m", "benchmarks.latency_node", str(file)]
        process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
        member = self.members[path] = Member(process)
        group.create_task(member.listen())
        member.leaf_url = await member.said("ready")
        return member

    async def end(self) -> None:
        await self.raw.close()
        for member in reversed(self.members.values()):
            await member.end()

    async def send_raw(self) -> float:
        """Seconds until the last edge has stored it."""
        began = time.monotonic()
        await self.raw.send(b"x" * PAYLOAD)
        return max([float(await edge.said("stored")) for edge in self.edges]) - began

    async def change(self, text: str) -> tuple[float, float]:
        """Seconds until the last edge has applied it, and until the centre knows that."""
        everywhere = len(self.edges)
        former = arms(self.relay.node, everywhere)
        began = time.monotonic()
        await self._centre.apply([config_map("one", "shop", text=text)])
        applied = max([float(await edge.said("applied")) for edge in self.edges])
        await self.relay.until(lambda node: arms(node, everywhere) not in (frozenset(), former))
        return applied - began, time.monotonic() - began

    async def begin(self) -> None:
        """Have a first version everywhere."""
        await self._centre.apply(
            [
                namespace_object("shop"),
                config_map("one", "shop", text="first"),
                placement("shop", "shop"),
            ]
        )
        await self.relay.until(lambda node: bool(arms(node, len(self.edges))))
        await asyncio.sleep(SETTLE_SECONDS)
        for edge in self.edges:
            edge.forget()

    def processes(self) -> tuple[list[int], list[int]]:
        """All relays, and all servers."""
        relays = [os.getpid(), *(member.process.pid for member in self.members.values())]
        below = children_of(os.getpid())
        return relays, [pid for pid, command in below.items() if "nats-server" in command]


@asynccontextmanager
async def running_tree(
    folder: Path, shape: TreeShape, kubeconfigs: Mapping[NodePath, Path] | None = None
) -> AsyncIterator[Tree]:
    """All nodes run; those that have a kubeconfig work on its cluster, others on simulated ones."""
    centre = Centre(DataDir(folder / "tree"), CentreOptions(temporary=True))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(centre.run())
        await centre.up.wait()
        tree = Tree(centre, folder, shape, kubeconfigs or {})
        await tree.grow(group)
        search_rarely()
        yield tree
        await tree.end()
        task.cancel()


async def measure(shape: TreeShape, changes: int) -> dict[str, list[float]]:
    """Seconds, by what they say; processor seconds too, which count for all until the next rest."""
    found: dict[str, list[float]] = {
        name: [] for name in ("raw", "applied", "known", "raw cpu", "cpu", "server cpu")
    }
    with tempfile.TemporaryDirectory() as name:
        async with running_tree(Path(name), shape) as tree:
            await tree.begin()
            relays, servers = tree.processes()
            for number in range(-5, changes):
                await asyncio.sleep(REST_SECONDS)
                before = (_used(relays), _used(servers))
                raw = await tree.send_raw()
                await asyncio.sleep(REST_SECONDS)
                between = (_used(relays), _used(servers))
                applied, known = await tree.change(str(number))
                await asyncio.sleep(REST_SECONDS)
                after = (_used(relays), _used(servers))
                if number >= 0:
                    found["raw"].append(raw)
                    found["applied"].append(applied)
                    found["known"].append(known)
                    found["raw cpu"].append(sum(between) - sum(before))
                    found["cpu"].append(after[0] - between[0])
                    found["server cpu"].append(after[1] - between[1])
    return found


def _used(pids: Sequence[int]) -> float:
    return sum(map(cpu_seconds, pids))


async def main(changes: int = CHANGES) -> None:
    report = Report(
        "latency",
        f"Apply to applied at all {SHAPE.destinations} edges, 3 tiers, idle, {changes} changes",
        ("milliseconds", "p50", "p90", "p99", "most"),
    )
    found = await measure(SHAPE, changes)
    alone = await measure(ALONE, changes // 3)
    rows: dict[str, Any] = {
        "raw chain over the same hops": found["raw"],
        "applied at every edge": found["applied"],
        "and known at the centre": found["known"],
        "one region, one edge: raw chain": alone["raw"],
        "one region, one edge: applied": alone["applied"],
    }
    for name, seconds in rows.items():
        marks = [percentile(seconds, share) * 1000 for share in (0.5, 0.9, 0.99, 1.0)]
        report.row(name, *marks)
    raw, relays, servers = (
        sum(found[name]) / changes * 1000 for name in ("raw cpu", "cpu", "server cpu")
    )
    report.note(
        f"processor time on the way down and up again: {relays:.0f} ms of all relays and "
        f"{servers:.0f} ms of all servers a change, {raw:.0f} ms of both a raw message"
    )
    for share, most in ((0.5, P50_RATIO), (0.99, P99_RATIO)):
        ratio = percentile(found["applied"], share) / percentile(found["raw"], share)
        report.goal(f"p{share * 100:.0f} over the raw chain's", ratio, most)
    report.finish()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else CHANGES))
