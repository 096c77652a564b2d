"""1,000 objects that an edge customizes before its API server gets them, beside plain ones.

Both by turns, in one run: the time from the apply of the placement at the centre until a watch at
the edge's API server has seen the last object.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.customization import objects
from benchmarks.kube_apply import Arrivals
from benchmarks.kube_bed import MANAGER, run
from benchmarks.kube_edge import EDGE, EdgeTree, apply_all, edge_tree, placement_of
from benchmarks.report import Report, middle
from relay.space_port import Interest, Interests
from tests.namespaces import namespace_object

OBJECTS, ROUNDS = 1_000, 3
REST_SECONDS = 5.0
RATIO = 0.7


async def measure(
    tree: EdgeTree, arrivals: Arrivals, name: str, count: int, *, customized: bool
) -> float:
    """Seconds until the last object is there."""
    await tree.workloads.apply(namespace_object(name), MANAGER)
    await apply_all(tree.workloads, objects(name, count, customized=customized), MANAGER)
    await asyncio.sleep(REST_SECONDS)
    began = time.monotonic()
    await tree.workloads.apply(placement_of(name), MANAGER)
    last = await arrivals.until(name, count)
    await tree.until_synced(name)
    return last - began


async def main(count: int = OBJECTS, rounds: int = ROUNDS) -> None:
    report = Report(
        "kube_customization",
        f"{count} ConfigMaps to an edge's API server, plain and customized",
        ("objects a second", "plain", "customized", "ratio"),
    )
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        async with edge_tree(Path(folder)) as tree, asyncio.TaskGroup() as group:
            await tree.join()
            arrivals = Arrivals()
            interests = Interests([Interest("", "configmaps", metadata_only=True)])
            space = tree.bed.space(EDGE.name)
            watching = group.create_task(space.follow(interests, arrivals.tell))
            await arrivals.synced.wait()
            for customized in (False, True):
                await measure(tree, arrivals, f"first-{customized:d}", 10, customized=customized)
            for number in range(rounds):
                plain = await measure(tree, arrivals, f"plain-{number}", count, customized=False)
                own = await measure(tree, arrivals, f"own-{number}", count, customized=True)
                ratios.append(plain / own)
                report.row(f"round {number + 1}", count / plain, count / own, ratios[-1])
            watching.cancel()
    report.goal("customized objects a second over plain ones", middle(ratios), RATIO, least=True)
    report.finish()


if __name__ == "__main__":
    run("kube_customization", main(*(int(word) for word in sys.argv[1:])))
