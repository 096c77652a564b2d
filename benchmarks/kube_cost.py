"""What one changed object asks of the centre's API server, at 10, 100 and 1,000 destinations.

The centre's workload space is a real API server; the destinations are edges that apply the change
and report it, on simulated clusters, several in a process. What the API server and its etcd use is
counted until every destination has the change, the centre knows it, and the status says so; what
both use in the same time without a change is taken off. The API server itself counts the writes.

The usual way beside it: an object of the same size for each destination, written to the hub by bare
requests. It only writes them: what a hub's own controllers would use, and agents that watch, is not
in it.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.counts import is_synced
from benchmarks.kube_bed import ASIDE, CENTRE, NAMESPACE, KubeBed, kube_bed, run
from benchmarks.report import Report
from benchmarks.wide_tree import WideTree
from relay.adapters.clock import SystemClock
from relay.adapters.kubernetes.api_client import ApiClient
from relay.adapters.kubernetes.kubeconfig import Kubeconfig
from relay.adapters.server.guard import ProcessGuard
from relay.space_port import Space
from tests.memory_tree import config_map, placement

REGIONS = 2
SIZES = (10, 100, 1000)
CHANGES = 10
TEXT_BYTES = 1_700
"""Makes an object of 2 KB."""
STATUS_SECONDS = 1.0
"""After this the status says what is known."""
REST_SECONDS, IDLE_SECONDS = 4.0, 30.0
AT_ONCE = 8
GROWTH = 2.0


class _KubeTree(WideTree):
    """A wide tree whose workloads lie on an API server."""

    def __init__(self, folder: Path, edges: int, bed: KubeBed) -> None:
        super().__init__(folder, REGIONS, edges // REGIONS)
        self._bed = bed

    async def workload_space(self, _stack: AsyncExitStack) -> Space:
        return self._bed.space(CENTRE)


def _object(name: str, text: str, namespace: str = NAMESPACE) -> dict[str, Any]:
    return config_map(name, namespace, text=f"{text} ".ljust(TEXT_BYTES, "."))


async def _ours(bed: KubeBed, tree: WideTree) -> tuple[float, float, Counter[str]]:
    """Of a change: processor seconds, seconds until it is everywhere and known, all writes."""
    everywhere = tree.everywhere
    await tree.apply(_object("one", "first"), placement("shop", NAMESPACE))
    await tree.until("shop", lambda c: is_synced(c, everywhere))
    await asyncio.sleep(REST_SECONDS)
    idle, used, taken = await _idle(bed), 0.0, 0.0
    requests = await bed.writes(CENTRE)
    for number in range(CHANGES):
        former = await tree.until("shop", lambda c: is_synced(c, everywhere))
        before, began = _used(bed), time.monotonic()
        await tree.apply(_object("one", f"change {number}"))
        await tree.until("shop", partial(is_synced, destinations=everywhere, former=former))
        taken += time.monotonic() - began
        await asyncio.sleep(STATUS_SECONDS)
        used += _used(bed) - before - idle * (time.monotonic() - began)
        await asyncio.sleep(REST_SECONDS)
    requests = await bed.writes(CENTRE) - requests
    return used / CHANGES, taken / CHANGES, requests


async def _usual(bed: KubeBed, destinations: int) -> tuple[float, float]:
    """Processor seconds of writing one object for each destination, and how long it takes."""
    source = Kubeconfig(str(bed.servers[CENTRE].kubeconfig), "")
    api = ApiClient(source, SystemClock())
    path = f"/api/v1/namespaces/{ASIDE}/configmaps"
    names = [f"work-{number}" for number in range(destinations)]

    async def write_all(text: str, *, new: bool) -> None:
        waiting = iter(names)

        async def work() -> None:
            for name in waiting:
                verb, where = ("POST", path) if new else ("PUT", f"{path}/{name}")
                await api.request(verb, where, body=_object(name, text, ASIDE))

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(work())

    await write_all("first", new=True)
    await asyncio.sleep(REST_SECONDS)
    idle, before, began = await _idle(bed), _used(bed), time.monotonic()
    await write_all("changed", new=False)
    taken = time.monotonic() - began
    await asyncio.sleep(STATUS_SECONDS)
    used = _used(bed) - before - idle * (time.monotonic() - began)
    await api.close()
    return used, taken


async def _idle(bed: KubeBed) -> float:
    """What a second without a change takes."""
    before, began = _used(bed), time.monotonic()
    await asyncio.sleep(IDLE_SECONDS)
    return (_used(bed) - before) / (time.monotonic() - began)


def _used(bed: KubeBed) -> float:
    return bed.used(CENTRE) + bed.etcd_used()


async def measure(
    destinations: int,
) -> tuple[tuple[float, float, Counter[str]], tuple[float, float]]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with kube_bed(folder / "kube", [CENTRE]) as bed:
            async with ProcessGuard() as guard, asyncio.TaskGroup() as group:
                tree = _KubeTree(folder, destinations, bed)
                tasks = await tree.start(group, guard)
                try:
                    ours = await _ours(bed, tree)
                finally:
                    await tree.stop(tasks)
            return ours, await _usual(bed, destinations)


async def main(sizes: Sequence[int] = SIZES) -> None:
    report = Report(
        "kube_cost",
        "One changed object of 2 KB: processor seconds of the centre's API server and etcd",
        (
            "destinations",
            "usual way",
            "Leafcast",
            "ratio",
            "writes, usual",
            "writes, Leafcast",
            "written after s",
            "exact after s",
        ),
    )
    costs = []
    for destinations in sizes:
        (ours, exact, requests), (usual, written) = await measure(destinations)
        costs.append(ours)
        many = requests.total() / CHANGES
        ratio = ours / usual
        report.row(destinations, usual, ours, ratio, destinations, many, written, exact)
        each = ", ".join(f"{count / CHANGES:g} {what}" for what, count in requests.items())
        report.note(f"{destinations} destinations, a change: {each}")
    report.note(
        "usual way: one object for each destination, written until the last is; Leafcast: one "
        f"object, until all have it and the statuses say so, mean of {CHANGES} changes"
    )
    growth = max(costs) / min(costs)
    report.goal(f"most over least, {sizes[0]} to {sizes[-1]} destinations", growth, GROWTH)
    report.finish()


if __name__ == "__main__":
    run("kube_cost", main([int(word) for word in sys.argv[1:]] or SIZES))
