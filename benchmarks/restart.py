"""The centre starts again: seconds until it is complete and exact, and what that makes it write."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.counts import is_synced
from benchmarks.report import Report, own_cpu_seconds
from benchmarks.wide_tree import WideTree, say
from relay.adapters.server.guard import ProcessGuard
from relay.core.records.accepted import is_delta
from relay.ports import BusBroken
from tests.memory_tree import config_map, placement

REGIONS, EDGES, PLACEMENTS, NAMESPACES = 4, 100, 1000, 20
GOAL_SECONDS = 10.0
REST_SECONDS = 8.0
"""Until what was changed is counted, reported, and listed by a snapshot."""
SET_UP_SECONDS, AGAIN_SECONDS, SAY_SECONDS = 1500, 1500, 15


def waiting(tree: WideTree, placements: int) -> str:
    """What the centre does not know yet of its placements; "" if all edges have all of them."""
    try:
        node = tree.centre.node
    except (AssertionError, BusBroken):
        return "the centre's relay, which starts again"
    keys = [key for key, held in node.records.items() if is_delta(held)]
    if len(keys) != placements:
        return f"placements to be issued: {len(keys)} of {placements} are"
    counts = [node.count(key) for key in keys]
    lacking = [count for count in counts if not is_synced(count, tree.everywhere)]
    if not lacking:
        return ""
    return f"{len(lacking)} placements, as the one that is {lacking[0]}"


def _objects(number: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A ConfigMap, and a placement that sends it, and nothing else, to all edges."""
    namespace, name = f"team-{number % NAMESPACES}", f"settings-{number}"
    clause = {"resources": ["configmaps"], "namespaces": [namespace], "objectNames": [name]}
    one = config_map(name, namespace, text=f"number {number}")
    return one, placement(f"p{number}", namespace, downsync=[clause])


async def until_exact(tree: WideTree, placements: int, seconds: float) -> None:
    """Wait, and say what for; raises AssertionError with that when it takes too long."""
    began = said = time.perf_counter()
    while waits := waiting(tree, placements):
        now = time.perf_counter()
        if now - began > seconds:
            raise AssertionError(f"after {seconds:.0f} s it still waits for {waits}")
        if now - said > SAY_SECONDS:
            said = now
            say(f"after {now - began:.0f} s: waits for {waits}")
        await asyncio.sleep(0.2)


async def main(edges: int = EDGES, placements: int = PLACEMENTS) -> None:
    report = Report(
        "restart",
        f"Restart of the centre: {placements} placements on {edges} edges, {REGIONS} regions",
        ("what", "figure", "unit"),
    )
    with tempfile.TemporaryDirectory() as folder:
        async with ProcessGuard() as guard, asyncio.TaskGroup() as group:
            tree = WideTree(Path(folder), REGIONS, edges // REGIONS)
            tasks = await tree.start(group, guard)
            began = time.perf_counter()
            for number in range(placements):
                await tree.apply(*_objects(number))
            await until_exact(tree, placements, SET_UP_SECONDS)
            report.row("all placements out and exact at first", time.perf_counter() - began, "s")
            await asyncio.sleep(REST_SECONDS)
            regions = [tree.nodes[region].driver for region in tree.regions]
            before = [driver.counters.mail_written for driver in regions if driver is not None]
            applied = await tree.cluster_writes()
            report.row("objects applied at edges by then", applied, "")
            await tree.stop_centre(tasks[:2])
            began, used = time.perf_counter(), own_cpu_seconds()
            again = await tree.start_centre(group)
            report.row("the centre runs, its ledger read", time.perf_counter() - began, "s")
            await until_exact(tree, placements, AGAIN_SECONDS)
            seconds, used = time.perf_counter() - began, own_cpu_seconds() - used
            await asyncio.sleep(REST_SECONDS)
            counters = tree.centre.counters
            after = [driver.counters.mail_written for driver in regions if driver is not None]
            applied = await tree.cluster_writes() - applied
            report.row("complete and exact after", seconds, "s")
            report.row("processor time of the centre and the regions", used, "s")
            report.row("mail written by the centre, snapshots aside", counters.mail_written, "")
            report.row("snapshots written by the centre", counters.snapshots_written, "")
            report.row("mail written by the regions", sum(after) - sum(before), "")
            report.row("objects applied again at edges", applied, "")
            await tree.stop([*again, *tasks[2:]])
    report.goal("seconds until complete and exact", seconds, GOAL_SECONDS)
    report.goal("mail written by the centre, snapshots aside", counters.mail_written, 0)
    report.goal("objects applied again at edges", applied, 0)
    report.finish()


if __name__ == "__main__":
    asyncio.run(main(*(int(word) for word in sys.argv[1:])))
