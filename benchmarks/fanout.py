"""One change to many edges on real servers, until the centre knows exactly that all have it."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path

from benchmarks.counts import is_synced
from benchmarks.messages import Exchanged, exchanged
from benchmarks.raw_fanout import RawFan
from benchmarks.report import Report, cpu_seconds, middle, resident_mb
from benchmarks.wide_tree import WideTree, wide_tree
from tests.memory_tree import config_map, placement

REGIONS = 4
EDGES = 1000
CHANGES, CHANGES_OF_MANY = 5, 3
GOALS = {1000: 1.0, 8000: 6.0}
PAUSE_SECONDS, EDGES_A_SECOND = 4.0, 500
"""So long, and longer with many edges, the next change waits until the last one is over for all."""
IDLE_SECONDS = 30.0
"""As long as a hello is from the next."""
RAW_BYTES = 600
"""About the size of a delta."""


async def measure(edges: int, report: Report) -> tuple[list[float], list[float]]:
    """Seconds of each change, and of each message of the raw fan-out, with all processes' use."""
    pause = PAUSE_SECONDS + edges / EDGES_A_SECOND
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        async with wide_tree(Path(folder), REGIONS, edges // REGIONS) as tree:
            await tree.apply(config_map("one", "shop", text="first"), placement("shop", "shop"))
            await tree.until("shop", lambda c: is_synced(c, edges))
            report.note(
                f"{edges} edges: {time.perf_counter() - began:.0f} s from nothing to synced"
            )
            await asyncio.sleep(pause)
            usage = Usage(edges, tree.pids())
            await usage.idle()
            taken, counted = [], Exchanged()
            for number in range(CHANGES if edges <= EDGES else CHANGES_OF_MANY):
                before = await _exchanged(tree)
                taken.append(await usage.of(_change(tree, number)))
                more = (await _exchanged(tree)).since(before)
                counted = Exchanged(counted.down + more.down, counted.up + more.up)
                await asyncio.sleep(pause)
            usage.rows(report)
            down, up = (count / len(taken) / edges for count in counted)
            report.note(
                f"{edges} edges: {down:.2f} messages to an edge and {up:.2f} from it for a change, "
                "its hellos meanwhile among them; raw 1 and 1"
            )
            report.note(f"what regions noted: {_noted(tree)}")
            raw = await _raw(tree, edges, report)
    return taken, raw


class Usage:
    """Processor time of all processes while something is waited for, and their memory then."""

    def __init__(self, edges: int, pids: Mapping[str, int], what: str = "") -> None:
        self._edges = edges
        self._pids = pids
        self._what = what
        self._used = dict.fromkeys(pids, 0.0)
        self._count, self._waited = 0, 0.0
        # Of all of them a second, if it was looked at.
        self._idle: float | None = None

    async def of(self, work: Awaitable[float]) -> float:
        """What the work says; the time that was used meanwhile is noted."""
        before = {name: cpu_seconds(pid) for name, pid in self._pids.items()}
        began = time.perf_counter()
        said = await work
        self._count, self._waited = self._count + 1, self._waited + time.perf_counter() - began
        for name, pid in self._pids.items():
            self._used[name] += cpu_seconds(pid) - before[name]
        return said

    async def idle(self) -> None:
        """See what all processes use a second while nothing changes."""
        before = sum(map(cpu_seconds, self._pids.values()))
        began = time.perf_counter()
        await asyncio.sleep(IDLE_SECONDS)
        used = sum(map(cpu_seconds, self._pids.values())) - before
        self._idle = used / (time.perf_counter() - began)

    def rows(self, report: Report) -> None:
        each = {name: used / self._count for name, used in self._used.items()}
        for name, pid in self._pids.items():
            report.row(self._edges, f"{self._what}{name}", resident_mb(pid), each[name])
        total = sum(each.values())
        report.row(self._edges, f"{self._what}all together", "", total)
        if self._idle is not None:
            ms, seconds = 1000 / self._edges, self._waited / self._count
            idle = self._idle * seconds * ms
            report.note(
                f"{self._edges} edges: {self._what}{total * ms:.2f} ms of processor time an edge "
                f"and change; {idle:.2f} of it they use in as long while nothing changes"
            )


async def _exchanged(tree: WideTree) -> Exchanged:
    servers = [(tree.nodes[region].server.url, tree.folder_of(region)) for region in tree.regions]
    return await exchanged(servers, "edge ")


def _noted(tree: WideTree) -> dict[str, int]:
    """How often each thing was noted by the regions."""
    found: Counter[str] = Counter()
    for region in tree.regions:
        driver = tree.nodes[region].driver
        if driver is not None:
            found += driver.counters.noted
    return dict(found)


async def _raw(tree: WideTree, edges: int, report: Report) -> list[float]:
    """The raw fan-out over the servers of the tree, whose own processes are idle meanwhile."""
    nodes = {path: (node.server.url, tree.folder_of(path)) for path, node in tree.nodes.items()}
    fan = RawFan(nodes, {region: [e.name for e in tree.edges[region]] for region in tree.regions})
    try:
        await fan.open({region: tree.edges_file(region) for region in tree.regions})
        pids = {name: pid for name, pid in tree.pids().items() if not name.startswith("edges")}
        edge_pids = {name: process.pid for name, process in fan.processes.items()}
        usage = Usage(edges, {**pids, **edge_pids}, "raw: ")
        await usage.idle()

        async def once() -> float:
            began = time.perf_counter()
            await fan.send(b"x" * RAW_BYTES)
            return time.perf_counter() - began

        await once()
        taken = []
        for _ in range(CHANGES):
            await asyncio.sleep(1)
            taken.append(await usage.of(once()))
        usage.rows(report)
    finally:
        await fan.close()
    return taken


async def _change(tree: WideTree, number: int) -> float:
    everywhere = tree.everywhere
    former = await tree.until("shop", lambda c: is_synced(c, everywhere))
    began = time.perf_counter()
    await tree.apply(config_map("one", "shop", text=f"change {number}"))
    await tree.until("shop", lambda c: is_synced(c, everywhere, former))
    return time.perf_counter() - began


async def main(sizes: Sequence[int]) -> None:
    columns = ("edges", "process", "resident MB", "CPU seconds until exact")
    for edges in sizes:
        name = "fanout" if edges == EDGES else f"fanout_{edges}"
        report = Report(name, f"One change to {edges} edges, {REGIONS} regions", columns)
        seconds, raw = await measure(edges, report)
        each = ", ".join(f"{value:.2f}" for value in seconds)
        report.note(f"{edges} edges: applied and exact after {each} s")
        each = ", ".join(f"{value:.2f}" for value in raw)
        report.note(f"{edges} edges: raw fan-out, answers counted, after {each} s")
        ratio = middle(seconds) / middle(raw)
        report.note(f"{edges} edges: {ratio:.1f} times the raw fan-out of the same run")
        if edges in GOALS:
            report.goal(f"seconds until exact, {edges} edges", middle(seconds), GOALS[edges])
        report.finish()


if __name__ == "__main__":
    asyncio.run(main([int(word) for word in sys.argv[1:]] or [EDGES]))
