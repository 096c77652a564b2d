"""One change to many edges on real servers, until the centre knows exactly that all have it."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Report, cpu_seconds, middle, resident_mb
from benchmarks.wide_tree import WideTree, wide_tree
from tests.memory_tree import config_map, placement

REGIONS = 4
EDGES = 1000
CHANGES = 5
GOALS = {1000: 1.0, 8000: 6.0}
PROTOTYPE = {1000: 0.17, 8000: 1.6}
"""What a bare prototype took: no signatures, nothing kept at the edge, no syncer."""


async def measure(edges: int, report: Report) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        async with wide_tree(Path(folder), REGIONS, edges // REGIONS) as tree:
            await tree.apply(config_map("one", "shop", text="first"), placement("shop", "shop"))
            everywhere = {"synced": tree.everywhere}
            await tree.until("shop", lambda s: s.complete and s.states == everywhere)
            report.note(
                f"{edges} edges: {time.perf_counter() - began:.0f} s from nothing to synced"
            )
            await asyncio.sleep(5)
            pids = tree.pids()
            before = {name: cpu_seconds(pid) for name, pid in pids.items()}
            taken = []
            for number in range(CHANGES):
                taken.append(await _change(tree, number, everywhere))
                await asyncio.sleep(3)
            for name, pid in pids.items():
                used = (cpu_seconds(pid) - before[name]) / CHANGES
                report.row(edges, name, resident_mb(pid), used)
    return taken


async def _change(tree: WideTree, number: int, everywhere: dict[str, int]) -> float:
    former = (await tree.until("shop", lambda s: s.complete)).arms
    began = time.perf_counter()
    await tree.apply(config_map("one", "shop", text=f"change {number}"))
    await tree.until("shop", lambda s: s.complete and s.states == everywhere and s.arms != former)
    return time.perf_counter() - began


async def main(sizes: Sequence[int]) -> None:
    columns = ("edges", "process", "resident MB", "CPU seconds a change")
    report = Report("fanout", f"One change to many edges, {REGIONS} regions", columns)
    found: dict[int, Any] = {}
    for edges in sizes:
        seconds = found[edges] = await measure(edges, report)
        each = ", ".join(f"{value:.2f}" for value in seconds)
        report.note(f"{edges} edges: applied and exact after {each} s")
        if edges in GOALS:
            raw = PROTOTYPE[edges]
            report.note(f"{edges} edges: a bare prototype without keeping anything took {raw} s")
            report.goal(f"seconds until exact, {edges} edges", middle(seconds), GOALS[edges])
    report.finish()


if __name__ == "__main__":
    asyncio.run(main([int(word) for word in sys.argv[1:]] or [EDGES]))
