"""What sealing costs: a change sealed and in clear, by turns in one run; and another fleet key.

`python -m benchmarks.sealing 250 1000` changes the fleet key of trees of so many edges.

All nodes are in one process, on buses in memory, so what sealing adds stands beside nothing that is
slower. Bytes are all that cross links: mail, content, snapshots.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.cost import Meter, silent
from benchmarks.counts import is_synced
from benchmarks.report import Report
from controllers.issuing.keys import KEYRING_FILE
from schemas.reports.reports import Count
from tests.memory_tree import MemoryTree, config_map, memory_tree, placement

REGIONS, EDGES = 2, 10
OBJECTS, OBJECT_BYTES = 100, 1500
ROUNDS, ALL_ROUNDS = 12, 5
FLEET_REGIONS, FLEET_EDGES, FLEET_PLACEMENTS = 4, (250, 1000), 10
TIME_MOST, BYTES_MOST, LINEAR_MOST = 1.2, 1.05, 1.3
SYNCED_SECONDS = 900.0


@dataclass
class Way:
    """A tree, sealed or not, and what was measured on it, round by round."""

    name: str
    tree: MemoryTree
    meter: Meter
    seconds: list[float] = field(default_factory=list)
    used: list[float] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def forget(self) -> None:
        """Begin with other changes."""
        for measured in (self.seconds, self.used, self.sizes):
            measured.clear()

    async def change(self, objects: list[dict[str, Any]], extra: dict[str, Any] | None) -> None:
        """Apply them, and wait until all edges have them; with a placement the first time."""
        tree = self.tree
        former = None if extra else await tree.until("shop", lambda c: is_synced(c, EDGES))
        await silent(self.meter)
        began, used = time.perf_counter(), time.process_time()
        await tree.apply(*objects, *([extra] if extra else ()))
        await tree.until("shop", lambda c: is_synced(c, EDGES, former), seconds=SYNCED_SECONDS)
        self.seconds.append(time.perf_counter() - began)
        self.used.append(time.process_time() - used)
        await silent(self.meter, clear=False)
        self.sizes.append(sum(sum(kinds.values()) for kinds in self.meter.bytes.values()))


def _objects(dice: random.Random, count: int) -> list[dict[str, Any]]:
    """Text as manifests have it: half of it is new each time."""
    words = [f"{dice.getrandbits(40):x}" for _ in range(OBJECT_BYTES // 20)]
    text = " ".join(word for word in words for _ in range(2))
    return [config_map(f"c{at}", "shop", text=f"{at} {text}") for at in range(count)]


def _paths(regions: int, edges: int) -> list[str]:
    paths = [f"/r{n}" for n in range(regions)]
    return paths + [f"/r{n % regions}/s{n}" for n in range(edges)]


def _in_clear(tree: MemoryTree) -> None:
    (tree.folder / KEYRING_FILE).unlink()


async def both(report: Report) -> None:
    """Changes of all objects, then of one, sealed and in clear by turns."""
    async with AsyncExitStack() as stack:
        ways = []
        for name, prepare in (("in clear", _in_clear), ("sealed", lambda _tree: None)):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            meter = Meter()
            made = memory_tree(folder, _paths(REGIONS, EDGES), meter.bus, prepare)
            ways.append(Way(name, await stack.enter_async_context(made), meter))
        dice = random.Random(7)
        first = _objects(dice, OBJECTS)
        for way in ways:
            await way.change(first, placement("shop", "shop"))
        for what, count, rounds in (
            (f"{OBJECTS} objects", OBJECTS, ALL_ROUNDS),
            ("one object", 1, ROUNDS),
        ):
            for way in ways:
                way.forget()
            for number in range(rounds):
                changed = _objects(dice, count)
                for way in ways if number % 2 else reversed(ways):
                    await way.change(changed, None)
            for way in ways:
                report.row(
                    way.name, what, *(median(it) for it in (way.seconds, way.used, way.sizes))
                )
            clear, sealed = ways
            report.goal(f"seconds of {what}", _ratio(sealed.seconds, clear.seconds), TIME_MOST)
            report.note(
                f"{what}: {_ratio(sealed.used, clear.used):.2f} of the processor time in clear"
            )
            report.goal(f"bytes of {what}", _ratio(sealed.sizes, clear.sizes), BYTES_MOST)


def _ratio(sealed: Sequence[float], clear: Sequence[float]) -> float:
    """What is usual of the pairs of one round each."""
    return median(a / b for a, b in zip(sealed, clear, strict=True))


def _again(edges: int, former: Count) -> Callable[[Count], bool]:
    return lambda count: is_synced(count, edges, former)


async def fleet(edges: int, report: Report) -> tuple[float, float]:
    """Another fleet key for many edges, until all have taken it and nothing is on its way.

    The messages and the processor time (ms) of all nodes, for each edge.
    """
    meter = Meter()
    with tempfile.TemporaryDirectory() as folder:
        paths = _paths(FLEET_REGIONS, edges)
        async with memory_tree(Path(folder), paths, meter.bus) as tree:
            names = [f"p{n}" for n in range(FLEET_PLACEMENTS)]
            for name in names:
                await tree.apply(config_map(f"c-{name}", name, text=name), placement(name, name))
            former = {
                name: await tree.until(name, lambda c: is_synced(c, edges), seconds=SYNCED_SECONDS)
                for name in names
            }
            await silent(meter)
            began, used = time.perf_counter(), time.process_time()
            await tree.controllers.rotate_fleet(tree.dice)
            for name in names:
                await tree.until(name, _again(edges, former[name]), seconds=SYNCED_SECONDS)
            await silent(meter, clear=False)
            used, seconds = time.process_time() - used, time.perf_counter() - began
    messages = 0
    for link in ("centre", "edges"):
        depth = 1 if link == "centre" else 2
        found = {at: kinds for at, kinds in meter.messages.items() if len(at.names) == depth}
        counts = [sum(kinds.values()) for kinds in found.values()]
        messages += sum(counts)
        report.row(f"fleet key, {edges} edges", f"messages to {link}", "", "", sum(counts))
        report.note(f"{link}: {sum(counts) / max(1, len(counts)):.1f} messages a link")
    report.note(
        f"{edges} edges, {FLEET_PLACEMENTS} placements: {used:.1f} CPU-s of all nodes together, "
        f"{1000 * used / edges:.1f} ms an edge, {seconds:.0f} s"
    )
    return messages / edges, 1000 * used / edges


async def main(sizes: Sequence[int]) -> None:
    columns = ("tree", "what", "seconds", "CPU-s", "bytes or messages")
    report = Report("sealing", f"Sealing, {REGIONS} regions, {EDGES} edges", columns)
    await both(report)
    found = {edges: await fleet(edges, report) for edges in sizes}
    least, most = min(sizes), max(sizes)
    if least < most:
        ratios = [large / small for small, large in zip(found[least], found[most], strict=True)]
        for what, ratio in zip(("messages", "processor time"), ratios, strict=True):
            report.goal(f"{what} an edge, {most} over {least} edges", ratio, LINEAR_MOST)
    report.finish()


if __name__ == "__main__":
    asyncio.run(main([int(word) for word in sys.argv[1:]] or FLEET_EDGES))
