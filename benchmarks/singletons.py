"""One edge with thousands of placements that each want the status of their one copy back.

Until each is counted exactly and each object at the centre has the status of its copy; then one of
them changes. The centre runs here, the edge in a process of its own, each on a nats-server.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.footprint import edge_process
from benchmarks.report import Report, children_of, cpu_seconds, middle, own_cpu_seconds, resident_mb
from benchmarks.wide_tree import WideTree
from relay.core.view import NodeView
from schemas.objects.objects import ObjectKey
from schemas.values.identity import MailKey
from tests.memory_tree import placement

PLACEMENTS, CHANGES = (500, 5_000), 9
GROWS_MAX = 2.0
SECONDS_MAX = 900.0
APPLIED_AT_ONCE = 100


def deployment(number: int, replicas: int = 1) -> dict[str, Any]:
    name = f"web-{number}"
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "web", "image": "web:1"}]},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": f"shop-{number}"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    }


def wanting(number: int) -> dict[str, Any]:
    """Its placement, which wants the status back."""
    made = placement(f"p-{number}", f"shop-{number}")
    made["spec"]["wantSingletonReportedState"] = True
    return made


class Seen(NamedTuple):
    """Seconds, and seconds of processor time, and MB."""

    applied: float
    exact: float
    shown: float
    centre_cpu: float
    edge_cpu: float
    centre_mb: float
    edge_mb: float
    servers_mb: float
    changed: float


async def measure(folder: Path, count: int) -> Seen:
    """Deliver so many to one edge, and change some; raises TimeoutError if it does not end."""
    async with edge_process(folder) as (tree, edge, _):
        began, used, used_there = time.monotonic(), own_cpu_seconds(), cpu_seconds(edge.pid)
        for first in range(0, count, APPLIED_AT_ONCE):
            numbers = range(first, min(first + APPLIED_AT_ONCE, count))
            await tree.apply(*map(deployment, numbers), *map(wanting, numbers))
        applied = time.monotonic() - began
        keys = [await tree.placement_key(f"p-{number}") for number in range(count)]
        async with asyncio.timeout(SECONDS_MAX):
            for key in keys:
                await tree.centre.until(partial(is_returned, key=key))
        exact = time.monotonic() - began
        for number in range(count):
            await until_shown(tree, number)
        shown = time.monotonic() - began
        changes = [await change(tree, key, at) for at, key in enumerate(keys[:CHANGES])]
        below = children_of(os.getpid()) | children_of(edge.pid)
        return Seen(
            applied,
            exact,
            shown,
            own_cpu_seconds() - used,
            cpu_seconds(edge.pid) - used_there,
            resident_mb(os.getpid()),
            resident_mb(edge.pid),
            sum(resident_mb(pid) for pid, words in below.items() if "nats-server" in words),
            middle(changes),
        )


async def until_shown(tree: WideTree, number: int) -> None:
    """Wait until the object at the centre has the status of its copy."""
    key = ObjectKey("apps", "deployments", f"shop-{number}", f"web-{number}")
    async with asyncio.timeout(SECONDS_MAX):
        while not (await tree.workloads.get(key) or {}).get("status"):
            await asyncio.sleep(0.1)


def is_returned(node: NodeView, key: MailKey) -> bool:
    """Whether the one copy is counted exactly as synced and well, and its status came."""
    if key not in node.records:
        return False
    found = node.count(key)
    if not found.exact or found.unsaid:
        return False
    if (found.summary.states, found.summary.health) != ({"synced": 1}, {"healthy": 1}):
        return False
    return any(it.status for it in node.results(key).values())


async def change(tree: WideTree, key: MailKey, number: int) -> float:
    """Seconds from the change of one object until the centre knows exactly who has it."""
    before, began = tree.centre.node.records[key].generation, time.monotonic()
    await tree.apply(deployment(number, replicas=2))
    async with asyncio.timeout(SECONDS_MAX):
        await tree.centre.until(lambda node: node.records[key].generation > before)
        await tree.centre.until(lambda node: node.count(key).exact)
    return time.monotonic() - began


async def main() -> None:
    columns = (
        "placements",
        "applied s",
        "exact s",
        "shown s",
        "centre CPU-s",
        "edge CPU-s",
        "centre MB",
        "edge MB",
        "servers MB",
        "change ms",
    )
    title = "One edge whose placements want the status of their copy back"
    report = Report("singletons", title, columns)
    per_placement = []
    for count in PLACEMENTS:
        with tempfile.TemporaryDirectory() as folder:
            seen = await measure(Path(folder), count)
        report.row(count, *seen[:-1], 1000 * seen.changed)
        per_placement.append(seen.centre_cpu / count)
    grows = per_placement[-1] / per_placement[0]
    report.goal("processor time of the centre per placement, most over fewest", grows, GROWS_MAX)
    report.finish()


if __name__ == "__main__":
    asyncio.run(main())
