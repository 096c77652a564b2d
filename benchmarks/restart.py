"""The centre starts again: seconds until it is complete and exact, and what that makes it write."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.report import Report
from benchmarks.wide_tree import WideTree
from relay.adapters.guard import Guard
from relay.core.book import is_delta
from relay.core.node import Node
from tests.memory_tree import config_map, placement

REGIONS, EDGES, PLACEMENTS = 4, 100, 1000
GOAL_SECONDS = 10.0
REST_SECONDS = 8.0
"""Until the index has followed, and heartbeats after the change are over."""


def exact(tree: WideTree, placements: int):
    """Whether the centre knows of each placement that all edges of its region have it."""
    everywhere = {"synced": tree.everywhere // REGIONS}

    def met(node: Node) -> bool:
        keys = [key for key, held in node.records.items() if is_delta(held)]
        if len(keys) != placements:
            return False
        summaries = (node.summary(key) for key in keys)
        return all(s.complete and s.states == everywhere for s in summaries)

    return met


def _placement(number: int) -> dict[str, Any]:
    """One in a region of its own: so many, and a quarter of them at each edge."""
    where = [{"matchLabels": {"region": f"r{number % REGIONS}"}}]
    return placement(f"p{number}", "shop", locationSelectors=where)


async def until_exact(tree: WideTree, placements: int, seconds: float) -> None:
    met = exact(tree, placements)
    async with asyncio.timeout(seconds):
        while not met(tree.centre.node):
            await asyncio.sleep(0.05)


async def main(edges: int = EDGES, placements: int = PLACEMENTS) -> None:
    report = Report(
        "restart",
        f"Restart of the centre: {placements} placements on {edges} edges, {REGIONS} regions",
        ("what", "figure", "unit"),
    )
    with tempfile.TemporaryDirectory() as folder:
        async with Guard() as guard, asyncio.TaskGroup() as group:
            tree = WideTree(Path(folder), REGIONS, edges // REGIONS)
            tasks = await tree.start(group, guard)
            began = time.perf_counter()
            await tree.apply(config_map("one", "shop", text="first"))
            await tree.apply(*[_placement(n) for n in range(placements)])
            await until_exact(tree, placements, 900)
            report.row("all placements out and exact at first", time.perf_counter() - began, "s")
            await asyncio.sleep(REST_SECONDS)
            regions = [tree.nodes[region].driver for region in tree.regions]
            before = [driver.counters.mail_written for driver in regions if driver is not None]
            await tree.stop_centre(tasks[:2])
            began = time.perf_counter()
            again = await tree.start_centre(group)
            report.row("the centre runs, its ledger read", time.perf_counter() - began, "s")
            await until_exact(tree, placements, 300)
            seconds = time.perf_counter() - began
            await asyncio.sleep(REST_SECONDS)
            counters = tree.centre.counters
            after = [driver.counters.mail_written for driver in regions if driver is not None]
            report.row("complete and exact after", seconds, "s")
            report.row("mail written by the centre, the index aside", counters.mail_written, "")
            report.row("index mail written by the centre", counters.index_written, "")
            report.row("mail written by the regions", sum(after) - sum(before), "")
            await tree.stop([*again, *tasks[2:]])
    report.goal("seconds until complete and exact", seconds, GOAL_SECONDS)
    report.goal("mail written by the centre, the index aside", counters.mail_written, 0)
    report.goal("index mail, one to each region", counters.index_written, REGIONS)
    report.goal("mail to edges, so that nothing is applied again", sum(after) - sum(before), 0)
    report.finish()


if __name__ == "__main__":
    asyncio.run(main(*(int(word) for word in sys.argv[1:])))
