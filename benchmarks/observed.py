"""What it costs to note what becomes of changes: the time until one is applied, and memory.

A tree in one process, on spaces and streams in memory: the real controllers, relays and syncers.
One object of a placement changes at a time. In turns the nodes note its stages and times, and all
their figures are read each 15 s, as Prometheus would; or nothing is noted, and nobody asks. The
figure is the middle of the ratios of turns that stand beside each other.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median

from benchmarks.report import Report
from leafcast.metrics.exposition import exposed
from leafcast.node.node_readings import NodeFigures, node_readings
from relay.shell.driver import Driver
from relay.shell.trace_ring import TRACES_MAX, TraceRing, TraceStage
from schemas.values.identity import mail_key
from tests.memory_tree import MemoryTree, config_map, memory_tree, placement

REGIONS, EDGES = 2, 4
WARM_UP, TURNS, CHANGES = 20, 40, 20
READ_SECONDS = 15
GOAL = 1.05
COLUMNS = ("way", "apply to applied at all, p50 ms", "CPU ms a change, middle")
OPENMETRICS = "application/openmetrics-text"


async def measure(folder: Path) -> dict[bool, list[tuple[float, float]]]:
    """Of each turn, with and without: seconds until applied, middle, and of processor time."""
    regions = [f"/r{n}" for n in range(REGIONS)]
    paths = [*regions, *(f"{region}/s{n}" for region in regions for n in range(EDGES))]
    found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    async with memory_tree(folder, paths) as tree:
        await tree.apply(placement("shop", "shop"), config_map("a", "shop", text="first"))
        await tree.until("shop", lambda it: it.exact and it.summary.states == {"synced": 8})
        looks = [_Looks(driver) for driver in tree.drivers.values()]
        for number in range(WARM_UP):
            await _change(tree, f"warm {number}")
        read_at = time.monotonic()
        for turn in range(2 * TURNS):
            # Each way is the first of its pair as often as the second.
            is_on = turn % 4 in (0, 3)
            for look in looks:
                look.set(is_on=is_on)
            began = time.process_time()
            taken = [await _change(tree, f"{turn} {number}") for number in range(CHANGES)]
            if is_on and time.monotonic() > read_at + READ_SECONDS:
                read_at = time.monotonic()
                _read(tree, folder)
            found[is_on].append((median(taken), (time.process_time() - began) / CHANGES))
    return found


class _Looks:
    """What a driver notes, which can be switched off for a while."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._noting: Callable[..., None] = driver._note_times

    def set(self, *, is_on: bool) -> None:
        noting: Callable[..., None] = self._noting if is_on else _nothing
        self._driver._note_times = noting  # type: ignore[method-assign]


def _nothing(*_: object) -> None:
    """Note nothing."""


def _read(tree: MemoryTree, folder: Path) -> None:
    for path, driver in tree.drivers.items():
        exposed(list(node_readings(NodeFigures(str(path), "", folder, driver))), OPENMETRICS)


async def _change(tree: MemoryTree, text: str) -> float:
    """Seconds until all clusters have it."""
    began = time.perf_counter()
    await tree.apply(config_map("a", "shop", text=text))
    edges = [tree.drivers[path] for path in tree.spaces]
    key = await tree.placement_key("shop")
    await tree.controllers.caught_up()
    generation = tree.centre.node.records[key].generation
    for driver in edges:
        await driver.until(
            lambda node: (
                (held := node.records.get(key)) is not None
                and held.generation >= generation
                and node.summary(key).states == {"synced": 1}
            )
        )
    return time.perf_counter() - began


def ring_bytes(stages: Iterable[TraceStage]) -> int:
    """What a full ring holds in memory."""
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    ring, stages = TraceRing(is_edge=True, began_ms=0), list(stages)
    for number in range(TRACES_MAX):
        key = mail_key("", "", "", f"shop {number}")
        for at, stage in enumerate(stages):
            ring.note(key, 1_800_000_000_000 + number, stage, 1_800_000_000_000 + number + at)
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return taken


def main() -> None:
    title = f"One changed object at {REGIONS * EDGES} edges, {TURNS} turns of {CHANGES} each way"
    report = Report("observed", title, COLUMNS)
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(Path(folder)))
    for is_on, way in ((True, "noted and read"), (False, "neither")):
        taken, used = zip(*found[is_on], strict=True)
        report.row(way, median(taken) * 1000, median(used) * 1000)
    pairs = list(zip(found[True], found[False], strict=True))
    ratio = median(on[0] / off[0] for on, off in pairs)
    report.goal("apply to applied, noted over not, middle of pairs", ratio, GOAL)
    spent = median(on[1] / off[1] for on, off in pairs)
    report.note(f"processor time of all nodes without a server, noted over not: {spent:.2f}")
    report.note(
        f"a full ring of {TRACES_MAX} changes: {ring_bytes(_AT_EDGE) / 1024:.0f} KiB a node"
    )
    report.finish()


_AT_EDGE = (
    TraceStage.RECEIVED,
    TraceStage.COMPLETE,
    TraceStage.PLANNED,
    TraceStage.FIRST_APPLIED,
    TraceStage.APPLIED,
    TraceStage.HEALTHY,
    TraceStage.TOLD_DELIVERED,
    TraceStage.TOLD_WORKING,
)

if __name__ == "__main__":
    main()
