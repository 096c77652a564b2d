"""All edges of a region come back at once, as their server is killed, and find a change there."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.counts import is_synced
from benchmarks.report import Report, cpu_seconds, resident_mb
from benchmarks.wide_tree import WideTree, wide_tree
from tests.memory_tree import config_map, placement

EDGES = 1000
LOOK_SECONDS = 0.05
BACK_SECONDS = 1200.0
"""A quiet machine needs a fiftieth of it; beyond it something is wrong."""
GOAL_SECONDS = 60.0


@dataclass(frozen=True)
class Return:
    """What one outage cost: seconds until exact, and by process peak MB, MB before, CPU seconds."""

    seconds: float
    peaks: Mapping[str, float]
    before: Mapping[str, float]
    used: Mapping[str, float]
    writes: int


async def all_return(tree: WideTree, number: int) -> Return:
    """Kill the region's server while a change is made; return when the centre counts it exactly."""
    former = await tree.until("shop", lambda c: is_synced(c, tree.everywhere))
    writes = await tree.cluster_writes()
    server = tree.server(tree.regions[0])
    shared = [name for name, pid in tree.pids().items() if pid != server.pid]
    pids = {name: tree.pids()[name] for name in shared}
    before = {name: resident_mb(pid) for name, pid in tree.pids().items()}
    used = {name: cpu_seconds(pid) for name, pid in pids.items()}
    watched = asyncio.ensure_future(_peaks(tree))
    began = time.perf_counter()
    starts = server.starts
    os.kill(server.pid, signal.SIGKILL)
    await tree.apply(config_map("one", "shop", text=f"outage {number}"))
    await server.next_start(starts)
    await tree.until("shop", lambda c: is_synced(c, tree.everywhere, former), BACK_SECONDS)
    seconds = time.perf_counter() - began
    watched.cancel()
    return Return(
        seconds,
        await watched,
        before,
        {name: cpu_seconds(pid) - used[name] for name, pid in pids.items()},
        await tree.cluster_writes() - writes,
    )


async def _peaks(tree: WideTree) -> dict[str, float]:
    """The most that each process had in memory, until cancelled."""
    peaks: dict[str, float] = {}
    try:
        while True:
            for name, pid in tree.pids().items():
                try:
                    peaks[name] = max(peaks.get(name, 0.0), resident_mb(pid))
                except OSError:
                    continue
            await asyncio.sleep(LOOK_SECONDS)
    except asyncio.CancelledError:
        return peaks


async def measure(edges: int, report: Report) -> Return:
    with tempfile.TemporaryDirectory() as folder:
        async with wide_tree(Path(folder), 1, edges) as tree:
            await tree.apply(config_map("one", "shop", text="first"), placement("shop", "shop"))
            await tree.until("shop", lambda c: is_synced(c, tree.everywhere))
            await asyncio.sleep(3)
            seen = await all_return(tree, 1)
    for name, peak in seen.peaks.items():
        report.row(name, seen.before[name], peak, seen.used.get(name, ""))
    report.note(f"{edges} edges back and exact after {seen.seconds:.1f} s, the server's start too")
    report.note(f"{seen.writes} writes to their clusters, one an edge is needed")
    return seen


async def main(edges: int) -> None:
    columns = ("process", "MB before", "peak MB", "CPU seconds")
    report = Report("reconnect", f"{edges} edges of one region reconnect at once", columns)
    seen = await measure(edges, report)
    report.goal("all back and exact, seconds", seen.seconds, GOAL_SECONDS)
    report.goal("writes an edge", seen.writes / edges, 1.0)
    report.finish()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else EDGES))
