"""From an apply at the centre's API server to the object on an edge's, over three tiers, idle.

The centre, a region and an edge, each a process with a nats-server, as in production; the centre's
and the edge's API servers are real. Both kinds of write are seen by one watch at the edge's server.

Each change is paired with what no relay tree does without: a bare write at the centre's API server,
a message through the raw chain (stored at the centre, the region and the edge), and a bare write of
the edge's process to its API server, each with the client that Leafcast uses.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.kube_bed import ASIDE, CENTRE, MANAGER, NAMESPACE, KubeBed, kube_bed, run
from benchmarks.latency import REST_SECONDS, Tree, running_tree
from benchmarks.report import Report, cpu_seconds, percentile
from leafcast.local.views import TreeShape
from relay.space_port import Interest, Interests, ObjectChange, SpaceEvent
from schemas.values.identity import NodePath
from tests.memory_tree import config_map

SHAPE = TreeShape(regions=1, sites=1)
EDGE = NodePath(("region-1", "site-1"))
CHANGES, WARM_UP = 100, 10
PAYLOAD = b"x" * 500
RATIO = 2.0


class Watch:
    """When each object of the edge's namespace was last seen to change."""

    def __init__(self) -> None:
        self._seen: dict[str, asyncio.Queue[float]] = {
            name: asyncio.Queue() for name in ("one", "raw")
        }
        self.synced = asyncio.Event()

    async def follow(self, bed: KubeBed) -> None:
        interests = Interests([Interest("", "configmaps")])
        await bed.space(EDGE.name).follow(interests, self._tell)

    async def _tell(self, event: SpaceEvent) -> None:
        self.synced.set()
        if isinstance(event, ObjectChange) and event.key.name in self._seen:
            self._seen[event.key.name].put_nowait(time.monotonic())

    async def seen(self, name: str) -> float:
        return await self._seen[name].get()

    def forget(self) -> None:
        for queue in self._seen.values():
            while not queue.empty():
                queue.get_nowait()


async def measure(changes: int) -> dict[str, list[float]]:
    """Seconds, by what they say; processor seconds of both API servers and of the relays."""
    found: dict[str, list[float]] = {
        name: [] for name in ("raw", "ours", "centre write", "raw cpu", "cpu", "relay cpu")
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with kube_bed(folder / "kube", (CENTRE, EDGE.name)) as bed:
            bed.be_centre_of(folder / "tree")
            kubeconfigs = {EDGE: bed.servers[EDGE.name].kubeconfig}
            async with running_tree(folder, SHAPE, kubeconfigs) as tree:
                await tree.begin()
                await _repeat(bed, tree, changes, found)
    return found


async def _repeat(bed: KubeBed, tree: Tree, changes: int, found: dict[str, list[float]]) -> None:
    watch, centre = Watch(), bed.space(CENTRE)
    watching = asyncio.create_task(watch.follow(bed))
    await watch.synced.wait()
    relays, _ = tree.processes()

    def used() -> tuple[float, float]:
        servers = bed.used(CENTRE) + bed.used(EDGE.name) + bed.etcd_used()
        return servers, sum(map(cpu_seconds, relays))

    for number in range(-WARM_UP, changes):
        await asyncio.sleep(REST_SECONDS)
        watch.forget()
        before, began = used(), time.monotonic()
        await centre.apply(config_map("raw", ASIDE, text=f"{number}"), MANAGER)
        written = time.monotonic() - began
        await tree.raw.send(PAYLOAD)
        raw = await watch.seen("raw") - began
        await asyncio.sleep(REST_SECONDS)
        between, began = used(), time.monotonic()
        await centre.apply(config_map("one", NAMESPACE, text=f"{number}"), MANAGER)
        ours = await watch.seen("one") - began
        await asyncio.sleep(REST_SECONDS)
        after = used()
        if number >= 0:
            found["raw"].append(raw)
            found["ours"].append(ours)
            found["centre write"].append(written)
            found["raw cpu"].append(between[0] - before[0])
            found["cpu"].append(after[0] - between[0])
            found["relay cpu"].append(after[1] - between[1])
    watching.cancel()


async def main(changes: int = CHANGES) -> None:
    report = Report(
        "kube_latency",
        f"Apply at the centre's API server to seen at the edge's, 3 tiers, idle, {changes} changes",
        ("milliseconds", "p50", "p90", "p99", "most"),
    )
    found = await measure(changes)
    for said, name in (
        ("bare write, raw chain, bare write", "raw"),
        ("of that the write at the centre", "centre write"),
        ("Leafcast", "ours"),
    ):
        shares = (0.5, 0.9, 0.99, 1.0)
        report.row(said, *(percentile(found[name], share) * 1000 for share in shares))
    raw, ours, relays = (
        sum(found[name]) / changes * 1000 for name in ("raw cpu", "cpu", "relay cpu")
    )
    report.note(
        f"processor time until at rest: {ours:.0f} ms of both API servers and etcd a change, and "
        f"{relays:.0f} ms of the relays; {raw:.0f} ms of API servers and etcd a raw message"
    )
    for share in (0.5, 0.99):
        ratio = percentile(found["ours"], share) / percentile(found["raw"], share)
        report.goal(f"p{share * 100:.0f} over the raw way's", ratio, RATIO)
    report.finish()


if __name__ == "__main__":
    run("kube_latency", main(int(sys.argv[1]) if len(sys.argv) > 1 else CHANGES))
