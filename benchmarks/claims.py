"""What claims, leases and holds cost a change: a tree with all of them and without, by turns.

A centre on an API server, a region, and an edge on another one, in this process. Each change is
paired with one that is made while nobody renews a lease or looks at a claim, no call is checked,
and no hold is computed. Processor time is that of this process, of both API servers and of etcd,
until all is at rest again.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

from benchmarks.counts import is_synced
from benchmarks.kube_bed import CENTRE, NAMESPACE, KubeBed, kube_bed, run
from benchmarks.report import Report, cpu_seconds
from controllers.core.status import status
from controllers.workloads import status_summarizer
from leafcast.ask.session import USER_MANAGER
from leafcast.centre.centre import running
from leafcast.local.tree import LocalTree, local_tree
from leafcast.local.views import TreeShape
from relay.claims.centre_lease import CentreLease
from relay.claims.edge_claim import EdgeClaim
from relay.claims.guarded_space import ClaimedSpace, LeasedSpace
from relay.core.view import NodeView
from relay.shell.driver import Driver
from schemas.reports.reports import Count
from schemas.values.groups import API_PLACEMENT
from schemas.values.identity import MailKey, NodePath, mail_key
from tests.memory_tree import config_map, placement

SHAPE = TreeShape(regions=1, sites=1)
EDGE = NodePath(("region-1", "site-1"))
PAIRS, WARM_UP = 100, 5
REST_SECONDS = 1.0
RATIO = 1.03


@contextmanager
def without() -> Iterator[None]:
    """Nothing of what is measured is done in this block."""

    async def at_once(_space: object, work: Any) -> Any:
        return await work

    async def nothing(*_given: object) -> None:
        return None

    off: dict[tuple[object, str], Callable[..., Any]] = {
        (CentreLease, "take"): nothing,
        (EdgeClaim, "look"): nothing,
        (LeasedSpace, "_writing"): at_once,
        (ClaimedSpace, "_reading"): at_once,
        (status, "holds"): lambda _facts, _count: (),
        (status_summarizer, "holds"): lambda _facts, _count: (),
    }
    with ExitStack() as stack:
        for (owner, name), instead in off.items():
            stack.enter_context(patch.object(owner, name, instead))
        yield


class Changes:
    """Changes of one object, each waited for until the centre knows that the edge has it."""

    def __init__(self, bed: KubeBed, tree: LocalTree, key: MailKey) -> None:
        self._bed = bed
        self._space = bed.space(CENTRE)
        self._tree = tree
        self._key = key
        self._number = 0

    @property
    def _relay(self) -> Driver:
        driver = self._tree.centre.nodes[NodePath()].driver
        assert driver is not None
        return driver

    async def one(self) -> tuple[float, float]:
        """Seconds until it is known to be there, and processor seconds until all is at rest."""
        self._number += 1
        used, began = self._used(), time.perf_counter()
        former = self._relay.node.count(self._key)
        await self._space.apply(config_map("one", NAMESPACE, text=str(self._number)), USER_MANAGER)
        await self._until(partial(is_synced, destinations=1, former=former))
        taken = time.perf_counter() - began
        await asyncio.sleep(REST_SECONDS)
        return taken, self._used() - used

    async def first(self) -> None:
        for obj in (config_map("one", NAMESPACE, text="first"), placement("shop", NAMESPACE)):
            await self._space.apply(obj, USER_MANAGER)
        await self._until(partial(is_synced, destinations=1))

    async def _until(self, met: Callable[[Count], bool]) -> None:
        def known(node: NodeView) -> bool:
            return self._key in node.records and met(node.count(self._key))

        await self._relay.until(known)

    def _used(self) -> float:
        servers = self._bed.used(CENTRE) + self._bed.used(EDGE.name) + self._bed.etcd_used()
        return servers + cpu_seconds(os.getpid())


async def measure(pairs: int) -> dict[str, list[tuple[float, float]]]:
    """Of each way, seconds and processor seconds of its changes."""
    found: dict[str, list[tuple[float, float]]] = {"with": [], "without": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with kube_bed(folder / "kube", (CENTRE, EDGE.name)) as bed:
            bed.be_centre_of(folder / "tree")
            clusters = {EDGE: bed.setting(EDGE.name)}
            tree = local_tree(SHAPE, folder / "tree", clusters=clusters)
            task = asyncio.create_task(tree.run())
            await tree.up.wait()
            workloads = running(tree.centre.workloads)
            key = mail_key(API_PLACEMENT, await workloads.identity(), "", "shop")
            changes = Changes(bed, tree, key)
            await changes.first()
            for number in range(-WARM_UP, pairs):
                # Which way comes first changes from pair to pair.
                for way in ("with", "without")[:: 1 if number % 2 else -1]:
                    with ExitStack() as stack:
                        if way == "without":
                            stack.enter_context(without())
                        one = await changes.one()
                    if number >= 0:
                        found[way].append(one)
            task.cancel()
            await asyncio.wait([task])
    return found


async def main(pairs: int = PAIRS) -> None:
    report = Report(
        "claims",
        f"A change with claims, leases and holds and without them, by turns, {pairs} pairs",
        ("way", "p50 ms", "CPU ms a change, median", "CPU ms, mean"),
    )
    found = await measure(pairs)
    for way, listed in found.items():
        used = [one[1] * 1000 for one in listed]
        taken = median(one[0] for one in listed) * 1000
        report.row(way, taken, median(used), sum(used) / len(used))
    pairs_found = zip(found["with"], found["without"], strict=True)
    ratio = median(with_all[0] / bare[0] for with_all, bare in pairs_found)
    report.goal("time until it is known, with over without, median of pairs", ratio, RATIO)
    on, off = (sum(one[1] for one in found[way]) for way in ("with", "without"))
    report.goal("processor time of all changes, with over without", on / off, RATIO)
    report.note(
        "an idle hub is written twice in five seconds by its leases; an idle cluster is asked for "
        "its claim once in thirty"
    )
    report.finish()


if __name__ == "__main__":
    run("claims", main(int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS))
