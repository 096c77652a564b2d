"""An edge starts again with 1,000 objects in step: what it writes, how long that takes, its size.

The edge is `leafcast join` on a real API server. Writes are counted by the API server itself, and
by the resourceVersions of all objects. It starts twice: once with nothing changed, and once with
one object changed at the centre meanwhile: so one sees from outside when it is in step again.

A process that only imports what the edge's does says how long a start takes on this machine now.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.kube_bed import MANAGER, run
from benchmarks.kube_edge import (
    EDGE,
    EdgeTree,
    apply_all,
    config_maps,
    edge_tree,
    placement_of,
)
from benchmarks.report import Report
from relay.space_port import Interest, Interests, ObjectChange, SpaceEvent
from tests.memory_tree import config_map
from tests.namespaces import namespace_object

OBJECTS = 1_000
NAMESPACE = "shop"
REST_SECONDS = 15.0
IMPORTS = "import leafcast.cli.commands.join, relay.adapters.kubernetes.space"
SECONDS_GOAL, MEMORY_GOAL_MB = 5.0, 90.0


async def _revisions(tree: EdgeTree) -> dict[str, str]:
    listing = await tree.space.list("", "configmaps", namespace=NAMESPACE)
    metadata = (obj["metadata"] for obj in listing.objects)
    return {its["name"]: its["resourceVersion"] for its in metadata}


async def _import_seconds() -> float:
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", IMPORTS)
    await process.wait()
    return time.monotonic() - began


async def _until_changed(tree: EdgeTree, name: str, text: str) -> float:
    """Change an object and start the edge: seconds from there until the object is changed."""
    seen, listening = asyncio.Event(), asyncio.Event()

    async def tell(event: SpaceEvent) -> None:
        listening.set()
        if isinstance(event, ObjectChange) and event.key.name == name:
            assert event.object["data"]["text"] == text
            seen.set()

    interests = Interests([Interest("", "configmaps")])
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(tree.bed.space(EDGE.name).follow(interests, tell))
        await listening.wait()
        await tree.workloads.apply(config_map(name, NAMESPACE, text=text), MANAGER)
        began = time.monotonic()
        await tree.join()
        await seen.wait()
        watching.cancel()
    return time.monotonic() - began


async def measure(count: int, report: Report) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with edge_tree(Path(folder)) as tree:
            await tree.join()
            await tree.workloads.apply(namespace_object(NAMESPACE), MANAGER)
            await apply_all(tree.workloads, config_maps(NAMESPACE, count), MANAGER)
            await tree.workloads.apply(placement_of(NAMESPACE), MANAGER)
            await tree.until_synced(NAMESPACE)
            await asyncio.sleep(REST_SECONDS)
            report.row("after the first delivery, leafcast join", tree.resident_mb()[0], "MB")

            await tree.leave()
            before, requests = await _revisions(tree), await tree.bed.writes(EDGE.name)
            await tree.join()
            await asyncio.sleep(REST_SECONDS)
            await tree.until_synced(NAMESPACE)
            writes = _total(report, "nothing changed", await tree.bed.writes(EDGE.name) - requests)
            python, server = tree.resident_mb()
            used = tree.used()
            changed = _differ(before, await _revisions(tree))
            report.row("nothing changed: requests to write", writes, "")
            report.row("nothing changed: objects changed", changed, "")
            report.row("resident after it, leafcast join", python, "MB")
            report.row("resident after it, its nats-server", server, "MB")
            for who in ("the edge: leafcast join", "the edge's nats-server"):
                report.row(
                    f"processor time {REST_SECONDS:.0f} s after its start, {who}", used[who], "s"
                )

            await tree.leave()
            before, requests = await _revisions(tree), await tree.bed.writes(EDGE.name)
            report.row("a process that imports as much", await _import_seconds(), "s")
            seconds = await _until_changed(tree, "c0007", "changed while it was away")
            await asyncio.sleep(REST_SECONDS)
            report.row("one changed meanwhile: seconds from start until it is there", seconds, "s")
            again = _total(report, "one changed", await tree.bed.writes(EDGE.name) - requests)
            report.row("one changed meanwhile: requests to write", again, "")
            changed = _differ(before, await _revisions(tree))
            report.row("one changed meanwhile: objects changed", changed, "")
    report.goal("requests to write, nothing changed", writes, 0)
    report.goal("requests to write, one changed", again, 1)
    report.goal("seconds until in step", seconds, SECONDS_GOAL)
    report.goal("MB resident, leafcast join", python, MEMORY_GOAL_MB)


def _total(report: Report, when: str, requests: Counter[str]) -> int:
    if requests:
        report.note(f"{when}: {', '.join(f'{many} {what}' for what, many in requests.items())}")
    return requests.total()


def _differ(before: dict[str, str], after: dict[str, str]) -> int:
    return sum(before.get(name) != after.get(name) for name in before.keys() | after.keys())


async def main(count: int = OBJECTS) -> None:
    report = Report(
        "kube_restart",
        f"Restart of an edge with {count} objects in step on an API server",
        ("what", "figure", "unit"),
    )
    await measure(count, report)
    report.finish()


if __name__ == "__main__":
    run("kube_restart", main(*(int(word) for word in sys.argv[1:])))
