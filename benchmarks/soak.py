"""A tree of real processes under changes without end: what each node takes stays flat.

`python -m benchmarks.soak [SECONDS]`. Tombstones are kept, and blobs looked for, in seconds instead
of days and hours: what grows only until then has its time within the run.
"""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.report import Report
from tests.nats.chaos_tree import PRODUCTION, ChaosTree

SECONDS = 600.0
EDGES = ("/r1/e1", "/r1/e2")
PLACEMENTS, NAMES = 4, 12
PAUSE_SECONDS, SAMPLE_SECONDS = 0.05, 1.0
SETTINGS = {
    "relay.core.children.HEARTBEAT_SECONDS": 2.0,
    "relay.core.children.SILENT_AFTER_SECONDS": 6.0,
    "relay.core.tombstones.RETENTION_MS": 4000,
    "relay.core.tombstones.EVERY_SECONDS": 2.0,
    "relay.core.sweeping.SWEEP_FIRST_SECONDS": 2.0,
    "relay.core.sweeping.SWEEP_EVERY_SECONDS": 2.0,
}
GROWTH_MAX_BYTES = {"process": 1_000_000, "server": 12_000_000, "storage": 8_000_000}
"""A server holds what it wrote last of each stream in buffers of up to 4 MB, and its storage grows
until the next compaction."""


@dataclass
class Node:
    """Samples of one node, in bytes: its process, its server, and what that keeps on disk."""

    process: list[int] = field(default_factory=list)
    server: list[int] = field(default_factory=list)
    storage: list[int] = field(default_factory=list)


@dataclass
class Soak:
    """What a run saw: how many changes, and the samples of each node by its path."""

    changes: int = 0
    nodes: dict[str, Node] = field(default_factory=dict)

    def grown(self, slack: int = 0) -> list[str]:
        """What is not flat: the last third of the samples against the middle one."""
        found = []
        for path, node in self.nodes.items():
            for what, samples in asdict(node).items():
                middle, last = thirds(samples)
                if last > middle + GROWTH_MAX_BYTES[what] + slack:
                    found.append(f"{path} {what}: {middle / 1e6:.1f} MB, then {last / 1e6:.1f} MB")
        return found


def thirds(samples: Sequence[int]) -> tuple[float, float]:
    """The medians of the middle and of the last third."""
    third = len(samples) // 3
    return median(samples[third : 2 * third]), median(samples[2 * third :])


async def grow(folder: Path) -> ChaosTree:
    """The tree, with its placements in force at all edges."""
    tree = ChaosTree(folder, SETTINGS)
    await tree.start()
    await tree.join("/r1", relay=True)
    for path in EDGES:
        await tree.join(path)
    for number in range(PLACEMENTS):
        await tree.place(f"p{number}")
        await tree.put(f"p{number}", **{f"p{number}-0": "first"})
    await tree.exact(EDGES)
    return tree


async def soak(tree: ChaosTree, seconds: float) -> Soak:
    """Change what the tree delivers for so long, and take samples; the end is exact everywhere."""
    seen = Soak(nodes={path: Node() for path in tree.members})
    dice = random.Random(1)
    until = time.monotonic() + seconds
    async with asyncio.TaskGroup() as group:
        group.create_task(_sample(tree, seen, until))
        while time.monotonic() < until:
            await _change(tree, dice, seen)
            seen.changes += 1
            await asyncio.sleep(PAUSE_SECONDS)
    await tree.exact(EDGES)
    return seen


async def _change(tree: ChaosTree, dice: random.Random, seen: Soak) -> None:
    placement = f"p{dice.randrange(PLACEMENTS)}"
    name = f"{placement}-{dice.randrange(NAMES)}"
    roll = dice.random()
    if placement not in tree.wanted:
        await tree.place(placement)
        objects = {f"{placement}-0": f"anew {seen.changes}"}
        await tree.put(placement, **objects)
    elif roll < 0.05:
        await tree.drop(placement, *tree.wanted[placement])
        await tree.withdraw(placement)
    elif roll < 0.2 and name in tree.wanted[placement]:
        await tree.drop(placement, name)
    elif roll < 0.25:
        await tree.place(placement, PRODUCTION)
    else:
        text = f"{seen.changes} {dice.randbytes(200).hex()}"
        await tree.put(placement, **{name: text})


async def _sample(tree: ChaosTree, seen: Soak, until: float) -> None:
    while time.monotonic() < until:
        for path, member in tree.members.items():
            node, (process, server) = seen.nodes[path], member.memory()
            node.process.append(process)
            node.server.append(server)
            node.storage.append(member.stored_bytes())
        await asyncio.sleep(SAMPLE_SECONDS)


async def main(seconds: float) -> None:
    columns = ("node", "what", "MB at first", "middle", "last")
    report = Report("soak", f"{seconds:.0f} s of changes without end, process and server", columns)
    with tempfile.TemporaryDirectory() as folder:
        tree = await grow(Path(folder))
        try:
            seen = await soak(tree, seconds)
        finally:
            await tree.close()
    for path, node in seen.nodes.items():
        for what, samples in asdict(node).items():
            report.row(path, what, *(part / 1e6 for part in (samples[0], *thirds(samples))))
    report.note(f"{seen.changes} changes; every edge exact at the end")
    for line in seen.grown():
        report.note(f"not flat: {line}")
    report.goal("nodes whose memory or storage grows", len(seen.grown()), 0)
    report.finish()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS))
