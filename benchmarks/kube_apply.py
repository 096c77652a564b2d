"""1,000 objects of one placement to an edge's API server, beside a bare loop of the same applies.

The bare loop applies as many ConfigMaps, as large, with the same client to the same server, from
this process, one after the other. A second one has as many requests at once as a syncer: that is
the most that this client gets out of this server. Leafcast's time runs from the apply of the
placement at the centre, where the objects lie already, until a watch at the edge's API server has
seen the last of them: it includes that the centre reads, signs and sends them, and that the edge
writes down its intent. All in turn, several times, in one run.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
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
from benchmarks.report import Report, middle
from relay.space_port import Interest, Interests, ObjectChange, SpaceEvent
from relay.syncer.pending import REQUESTS_MAX
from tests.namespaces import namespace_object

OBJECTS, ROUNDS = 1_000, 3
REST_SECONDS = 5.0
RATIO = 0.7


class Arrivals:
    """When objects of a namespace came to be at the edge's API server."""

    def __init__(self) -> None:
        self.first: dict[str, float] = {}
        self._seen: dict[str, set[str]] = {}
        self._moved = asyncio.Event()
        self.synced = asyncio.Event()

    async def tell(self, event: SpaceEvent) -> None:
        self.synced.set()
        if isinstance(event, ObjectChange) and event.kind == "added":
            namespace = event.key.namespace
            self.first.setdefault(namespace, time.monotonic())
            self._seen.setdefault(namespace, set()).add(event.key.name)
            self._moved.set()

    async def until(self, namespace: str, count: int) -> float:
        while len(self._seen.get(namespace, ())) < count:
            self._moved.clear()
            await self._moved.wait()
        return time.monotonic()


Used = dict[str, float]


async def _ours(tree: EdgeTree, arrivals: Arrivals, name: str, count: int) -> tuple[float, ...]:
    """Seconds until the last object is there, from the first to the last, until that is known."""
    await tree.workloads.apply(namespace_object(name), MANAGER)
    await apply_all(tree.workloads, config_maps(name, count), MANAGER)
    await asyncio.sleep(REST_SECONDS)
    began = time.monotonic()
    await tree.workloads.apply(placement_of(name), MANAGER)
    last = await arrivals.until(name, count)
    await tree.until_synced(name)
    return last - began, last - arrivals.first[name], time.monotonic() - began


async def _bare(
    tree: EdgeTree, arrivals: Arrivals, name: str, count: int, *, at_once: int
) -> tuple[float, ...]:
    await tree.space.apply(namespace_object(name), MANAGER)
    await asyncio.sleep(REST_SECONDS)
    began = time.monotonic()
    await apply_all(tree.space, config_maps(name, count), MANAGER, at_once)
    last = await arrivals.until(name, count)
    return last - began, last - arrivals.first[name], last - began


WAYS: dict[str, Callable[[EdgeTree, Arrivals, str, int], Awaitable[tuple[float, ...]]]] = {
    "bare": partial(_bare, at_once=1),
    "many": partial(_bare, at_once=REQUESTS_MAX),
    "ours": _ours,
}


async def measure(count: int, rounds: int) -> list[tuple[str, tuple[float, ...], Used]]:
    """Of each round and way: the seconds, and the processor seconds that went by."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        async with edge_tree(Path(folder)) as tree, asyncio.TaskGroup() as group:
            await tree.join()
            # So that the first round finds an edge that runs.
            await tree.workloads.apply(namespace_object("begin"), MANAGER)
            await apply_all(tree.workloads, config_maps("begin", 1), MANAGER)
            await tree.workloads.apply(placement_of("begin"), MANAGER)
            await tree.until_synced("begin")
            arrivals = Arrivals()
            interests = Interests([Interest("", "configmaps", metadata_only=True)])
            watching = group.create_task(tree.bed.space(EDGE.name).follow(interests, arrivals.tell))
            await arrivals.synced.wait()
            for number in range(rounds):
                for name, way in WAYS.items():
                    before = tree.used()
                    seconds = await way(tree, arrivals, f"{name}-{number}", count)
                    after = tree.used()
                    found.append((name, seconds, {who: after[who] - before[who] for who in after}))
            watching.cancel()
    return found


async def main(count: int = OBJECTS, rounds: int = ROUNDS) -> None:
    report = Report(
        "kube_apply",
        f"{count} ConfigMaps of one placement to an edge's API server",
        ("objects a second", "bare loop", f"{REQUESTS_MAX} at once", "Leafcast", "ratio"),
    )
    found = await measure(count, rounds)
    bare, many, ours = ([its for its in found if its[0] == name] for name in WAYS)
    ratios, hard = [], []
    for number in range(rounds):
        flat, most, seconds = (its[number][1][0] for its in (bare, many, ours))
        ratios.append(flat / seconds)
        hard.append(most / seconds)
        report.row(f"round {number + 1}", count / flat, count / most, count / seconds, ratios[-1])
    report.row(
        "from the first to the last object, middle",
        *(count / middle([its[1][1] for its in some]) for some in (bare, many, ours)),
        "",
    )
    known = middle([its[1][2] - its[1][0] for its in ours])
    report.note(f"the centre knows of it {known * 1000:.0f} ms after the last one (middle)")
    for who in bare[0][2]:
        flat, most, used = (middle([its[2][who] for its in some]) for some in (bare, many, ours))
        report.note(
            f"processor seconds of {who}: bare {flat:.2f}, {REQUESTS_MAX} at once {most:.2f}, "
            f"Leafcast {used:.2f}"
        )
    report.note(f"over a loop with {REQUESTS_MAX} at once: {middle(hard):.2f} (middle)")
    report.goal("objects a second over the bare loop's", middle(ratios), RATIO, least=True)
    report.finish()


if __name__ == "__main__":
    run("kube_apply", main(*(int(word) for word in sys.argv[1:])))
