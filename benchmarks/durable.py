"""What it costs that servers have on their disks what they acknowledge, all in one run.

Small trees stand side by side, and are changed in turn: none of their servers syncs, the centre's
does, all do. Then one change goes to many edges, of a centre that syncs and of one that does not.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from benchmarks.counts import is_synced
from benchmarks.report import Report, middle
from benchmarks.wide_tree import WideTree, wide_tree
from relay.adapters.server import nats_config
from relay.adapters.server.durability import DEFAULT_STORE, Durability, StoreSettings
from tests.memory_tree import config_map, placement

REGIONS, EDGES, CHANGES = 2, 4, 60
FAN_REGIONS, FAN_EDGES, FAN_CHANGES, FAN_PAUSE_SECONDS = 4, 1000, 4, 5.0
FAN_RATIO = 1.15
FSYNCS, PAGE = 200, b"x" * 4096
NONE, CENTRE, ALL = "none syncs", "the centre syncs", "all sync"
_EVERY = StoreSettings(durability=Durability.DISK)


@contextmanager
def _unsynced_centre(unsynced: bool) -> Iterator[None]:  # noqa: FBT001 - its only argument
    """Servers that start within it acknowledge what is not on the disk, a centre's, too."""
    whole = nats_config.SYNC_ALWAYS
    nats_config.SYNC_ALWAYS = "" if unsynced else whole
    try:
        yield
    finally:
        nats_config.SYNC_ALWAYS = whole


@asynccontextmanager
async def _tree(folder: Path, which: str, regions: int, edges: int) -> AsyncIterator[WideTree]:
    """A tree in which one placement of one object is everywhere."""
    store = _EVERY if which == ALL else DEFAULT_STORE
    async with AsyncExitStack() as stack:
        with _unsynced_centre(which == NONE):
            tree = await stack.enter_async_context(
                wide_tree(folder, regions, edges // regions, store=store)
            )
        await tree.apply(config_map("one", "shop", text="first"), placement("shop", "shop"))
        await tree.until("shop", lambda count: is_synced(count, edges))
        yield tree


async def _change(tree: WideTree, number: int) -> tuple[float, float]:
    """Seconds until a change is acknowledged, and until the centre knows that all have it."""
    everywhere = tree.everywhere
    former = await tree.until("shop", lambda count: is_synced(count, everywhere))
    began = time.perf_counter()
    await tree.apply(config_map("one", "shop", text=f"change {number}"))
    acknowledged = time.perf_counter() - began
    await tree.until("shop", lambda count: is_synced(count, everywhere, former))
    return acknowledged, time.perf_counter() - began


async def latencies(folder: Path) -> Mapping[str, list[tuple[float, float]]]:
    """The seconds of each change, by what syncs."""
    found: dict[str, list[tuple[float, float]]] = {NONE: [], CENTRE: [], ALL: []}
    async with AsyncExitStack() as stack:
        trees = {
            which: await stack.enter_async_context(
                _tree(folder / str(at), which, REGIONS, EDGES * REGIONS)
            )
            for at, which in enumerate(found)
        }
        for number in range(CHANGES):
            for which, tree in trees.items():
                found[which].append(await _change(tree, number))
    return found


async def fan_out(folder: Path, which: str, edges: int) -> list[float]:
    """Seconds until one change is at all edges, exact, some times."""
    async with _tree(folder, which, FAN_REGIONS, edges) as tree:
        found = []
        for number in range(FAN_CHANGES):
            await asyncio.sleep(FAN_PAUSE_SECONDS)
            found.append((await _change(tree, number))[1])
    return found


def fsync_seconds(folder: Path) -> float:
    """How long this disk takes for one page, in the middle."""
    taken = []
    with (folder / "page").open("wb") as file:
        for _ in range(FSYNCS):
            began = time.perf_counter()
            file.write(PAGE)
            file.flush()
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - began)
    return middle(taken)


async def main(edges: int) -> None:
    columns = ("what syncs", "acknowledged, p50 ms", "applied and counted, p50 ms")
    report = Report("durable", "What it costs to have on the disk what is acknowledged", columns)
    with tempfile.TemporaryDirectory() as folder:
        report.note(f"one fsync of 4 KB, p50: {fsync_seconds(Path(folder)) * 1000:.2f} ms")
        taken = await latencies(Path(folder))
    middles = {}
    for which, seconds in taken.items():
        middles[which] = [middle([each[at] for each in seconds]) for at in (0, 1)]
        report.row(which, *(value * 1000 for value in middles[which]))
    for which in (CENTRE, ALL):
        ratios = [now / then for now, then in zip(middles[which], middles[NONE], strict=True)]
        report.note(f"{which}, over none: {ratios[0]:.2f} and {ratios[1]:.2f} times")
    fans: dict[str, list[float]] = {CENTRE: [], NONE: []}
    for which in (CENTRE, NONE, NONE, CENTRE):
        with tempfile.TemporaryDirectory() as folder:
            fans[which] += await fan_out(Path(folder), which, edges)
    for which, fanned in fans.items():
        each = ", ".join(f"{value:.2f}" for value in fanned)
        report.note(f"{edges} edges, {which}: exact after {each} s")
    ratio = middle(fans[CENTRE]) / middle(fans[NONE])
    report.goal(f"a change to {edges} edges, the centre syncs over none", ratio, FAN_RATIO)
    report.finish()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else FAN_EDGES))
