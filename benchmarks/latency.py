"""From applying an object at the centre to having it applied at every edge, in an idle tree.

Three tiers of real servers, eight edges, everything in one process; between two changes the tree
comes to rest. Each change is paired with a message through the raw chain of the same servers.
"""

from __future__ import annotations

import asyncio
import cProfile
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from benchmarks.raw_chain import RawChain
from benchmarks.report import Report, percentile
from leafcast.tree import LocalTree
from leafcast.views import TreeShape
from relay.core.book import is_delta
from relay.core.node import Node
from relay.driver import Driver
from schemas.identity import MailKey, NodePath
from tests.memory_tree import config_map, placement

SHAPE = TreeShape(regions=2, sites=4)
CHANGES = 120
REST_SECONDS = 0.3
PAYLOAD = 500
"""About the size of a delta."""
P50_RATIO, P99_RATIO = 3.0, 6.0


@asynccontextmanager
async def running_tree(shape: TreeShape, folder: Path) -> AsyncIterator[LocalTree]:
    tree = LocalTree(shape, folder, temporary=True)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(tree.run())
        await tree.up.wait()
        yield tree
        task.cancel()


class Probe:
    """Changes an object, and tells when each edge has applied it."""

    def __init__(self, tree: LocalTree) -> None:
        drivers = {path: runtime.driver for path, runtime in tree.nodes.items()}
        self.drivers: dict[NodePath, Driver] = {p: d for p, d in drivers.items() if d is not None}
        self.centre = self.drivers[NodePath()]
        self.edges = {p: self.drivers[p] for p, r in tree.nodes.items() if r.attached}
        self._tree = tree
        self._key: MailKey | None = None

    async def begin(self) -> None:
        await self._tree.apply([config_map("one", "shop", text="first"), placement("shop", "shop")])
        await self.centre.until(lambda node: bool(_placements(node)))
        self._key = _placements(self.centre.node)[0]
        await self.centre.until(lambda node: self._is_synced(node, len(self.edges)))

    async def change(self, number: int) -> tuple[float, float]:
        """Seconds until the last edge has it, and until the centre knows that."""
        former = self._arms(self.centre.node)
        began = time.perf_counter()
        await self._tree.apply([config_map("one", "shop", text=str(number))])
        for driver in self.edges.values():
            await driver.until(lambda node: self._is_synced(node, 1) and self._arms(node) != former)
        applied = time.perf_counter() - began
        everywhere = len(self.edges)
        await self.centre.until(
            lambda node: self._is_synced(node, everywhere) and self._arms(node) != former
        )
        return applied, time.perf_counter() - began

    def _is_synced(self, node: Node, count: int) -> bool:
        summary = node.summary(self._key or MailKey(""))
        return summary.complete and summary.states == {"synced": count}

    def _arms(self, node: Node) -> frozenset[str]:
        return frozenset(node.summary(self._key or MailKey("")).arms)


def _placements(node: Node) -> list[MailKey]:
    return [key for key, held in node.records.items() if is_delta(held)]


async def measure(changes: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"raw": [], "applied": [], "known": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with running_tree(SHAPE, folder) as tree:
            chain = RawChain(
                {
                    path: (runtime.server.url, runtime._folder)
                    for path, runtime in tree.nodes.items()
                }
            )
            await chain.open()
            probe = Probe(tree)
            await probe.begin()
            profile = cProfile.Profile() if os.environ.get("PROFILE") else None
            for number in range(-5, changes):
                await asyncio.sleep(REST_SECONDS)
                began = time.perf_counter()
                await chain.send(b"x" * PAYLOAD)
                raw = time.perf_counter() - began
                await asyncio.sleep(REST_SECONDS)
                if profile and number >= 0:
                    profile.enable()
                applied, known = await probe.change(number)
                if profile:
                    profile.disable()
                if number >= 0:
                    found["raw"].append(raw)
                    found["applied"].append(applied)
                    found["known"].append(known)
            await chain.close()
            if profile:
                profile.dump_stats(os.environ["PROFILE"])
    return found


async def main(changes: int = CHANGES) -> None:
    report = Report(
        "latency",
        f"Apply to applied at all {SHAPE.destinations} edges, 3 tiers, idle, {changes} changes",
        ("milliseconds", "p50", "p90", "p99", "most"),
    )
    found = await measure(changes)
    rows: dict[str, Any] = {
        "raw chain over the same hops": found["raw"],
        "applied at every edge": found["applied"],
        "and known at the centre": found["known"],
    }
    for name, seconds in rows.items():
        marks = [percentile(seconds, share) * 1000 for share in (0.5, 0.9, 0.99, 1.0)]
        report.row(name, *marks)
    for share, most in ((0.5, P50_RATIO), (0.99, P99_RATIO)):
        ratio = percentile(found["applied"], share) / percentile(found["raw"], share)
        report.goal(f"p{share * 100:.0f} over the raw chain's", ratio, most)
    report.finish()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else CHANGES))
