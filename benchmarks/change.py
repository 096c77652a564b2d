"""What one change costs the centre: processor time from a space's word to what its children get.

A centre alone, in one process: the real controllers and the real relay, on spaces and streams in
memory, with regions that never come, and their destinations. One object of a placement changes at
a time, until the record is in the mailboxes and the counts are told. With `--against FOLDER` runs
of this checkout and of the one there take turns, and the figure is the middle of their ratios.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.report import Report
from schemas.values.identity import NodePath
from tests.memory_tree import MemoryTree, config_map, inventory, placement

REGIONS, EDGES, OBJECTS = 4, 25, 20
WARM_UP, CHANGES, PAIRS = 50, 400, 7
GOAL = 0.8
HERE = Path(__file__).resolve().parents[1]


async def measure() -> float:
    """Milliseconds of processor time for one change."""
    with tempfile.TemporaryDirectory() as folder:
        tree = MemoryTree(Path(folder))
        async with tree.group as group:
            await tree.start(NodePath(), group, attached=False)
            await tree.control(group)
            regions = [NodePath((f"r{n}",)) for n in range(REGIONS)]
            edges = [region.child(f"s{n}") for region in regions for n in range(EDGES)]
            for path in (*regions, *edges):
                await tree.add(path)
            for obj in inventory(edges):
                await tree.inventory.apply(obj, "benchmark")
            await tree.apply(*[_object(n, "first") for n in range(OBJECTS)])
            await tree.apply(placement("shop", "shop"))
            await tree.until("shop", lambda count: count.summary.destinations == len(edges))
            for number in range(WARM_UP):
                await _change(tree, f"warm {number}")
            began = time.process_time()
            for number in range(CHANGES):
                await _change(tree, f"change {number}")
            spent = time.process_time() - began
            for task in (tree.controlling, *(t for each in tree.running.values() for t in each)):
                task.cancel()
        await tree.close()
    return spent / CHANGES * 1000


async def _change(tree: MemoryTree, text: str) -> None:
    key, counters = await tree.placement_key("shop"), tree.centre.counters
    former, written = tree.centre.node.records[key].generation, counters.mail_written
    await tree.apply(_object(7, text))
    await tree.centre.until(
        lambda node: (
            node.records[key].generation > former and counters.mail_written >= written + REGIONS
        )
    )


def _object(number: int, text: str) -> dict[str, object]:
    return config_map(f"c{number}", "shop", text=f"{text} {number} " * 20)


def _run(checkout: Path) -> float:
    """One run of a checkout, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    command = [sys.executable, "-P", str(Path(__file__).resolve()), "--one"]
    done = subprocess.run(
        command, env=environment, cwd=checkout, check=True, capture_output=True, text=True
    )
    return float(done.stdout.split()[-1])


def main(against: Path | None) -> None:
    report = Report(
        "change", f"One changed object of {OBJECTS} at a centre with {REGIONS} regions", COLUMNS
    )
    ours, theirs = [], []
    for _ in range(PAIRS):
        if against is not None:
            theirs.append(_run(against))
        ours.append(_run(HERE))
    report.row("this checkout", min(ours), median(ours), max(ours))
    if theirs:
        report.row(str(against), min(theirs), median(theirs), max(theirs))
        ratio = median(one / other for one, other in zip(ours, theirs, strict=True))
        report.goal("processor time over the other's, middle of pairs", ratio, GOAL)
    report.finish()


COLUMNS = ("checkout", "CPU ms, least", "middle", "most")

if __name__ == "__main__":
    if "--one" in sys.argv:
        print(asyncio.run(measure()))
    else:
        main(Path(sys.argv[2]) if "--against" in sys.argv else None)
