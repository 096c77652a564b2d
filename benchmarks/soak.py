"""A tree of real processes under changes without end: what each node takes stays flat.

`python -m benchmarks.soak [SECONDS]`. Blobs that nothing leads to are looked for, and who is silent
is found out, in seconds instead of hours and minutes: what grows only until then has its time
within the run. CPython keeps freed tuples, up to 2,000 of a length, until it collects all garbage,
which it does every few minutes: here it does so before each sample.

A server keeps what it wrote last of each stream, in a buffer that grows by leaps up to 8 MB until
the stream begins its next file. So its memory goes up and down by such buffers and the garbage they
become, each stream in its own time. What shows whether it holds ever more is the rest: it says
itself what its small objects take, and how many it has. The lowest counts, for it is free of
garbage. Large changes are made first, until each stream has filled its buffer once.
"""

from __future__ import annotations

import asyncio
import math
import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import linear_regression, median

from benchmarks.report import Report
from leafcast.ask.session import Session
from leafcast.changes.asked_batches import judged
from leafcast.changes.forms import ApplyBatch
from schemas.objects.manifest_files import LoadedObject
from schemas.objects.objects import ObjectKey
from schemas.values import subjects
from tests.nats.chaos_member import Member
from tests.nats.chaos_tree import PRODUCTION, ChaosTree

SECONDS = 600.0
EDGES = ("/r1/e1", "/r1/e2")
PLACEMENTS, NAMES = 4, 12
PAUSE_SECONDS, SAMPLE_SECONDS = 0.01, 1.0
SETTINGS = {
    "relay.core.link.session.HELLO_SECONDS": 2.0,
    "relay.core.link.children.SILENT_AFTER_SECONDS": 6.0,
    "relay.core.link.session.SILENT_AFTER_SECONDS": 6.0,
    "relay.core.content.sweeper.SWEEP_FIRST_SECONDS": 2.0,
    "relay.core.content.sweeper.SWEEP_EVERY_SECONDS": 2.0,
}
FILLED: dict[str, tuple[str, ...]] = dict.fromkeys(("/", "/r1"), ("MAIL", "OWN", "STAT", "BLOB"))
FILLED |= dict.fromkeys(EDGES, ("OWN", "BLOB", "DONE", "KV_wec"))
"""The streams of each node that are written all the time."""
FILL_SECONDS_MAX = 300.0
LABELS, LARGE_BYTES, TEXT_BYTES = 200, 12_000, 1000
FILLING_BYTES, FILLING_MESSAGES = 500_000, 24


def lowest(samples: Sequence[int]) -> float:
    """What is there also when garbage has just been collected, and files are compacted."""
    return min(samples)


@dataclass(frozen=True)
class Measure:
    """By what a run judges one thing: its last third may be `growth_max` above the middle one.

    A run of seconds has not filled all buffers, and sees few collections: it is allowed
    `brief_max`, or is not judged by it at all if that is None.
    """

    growth_max: float
    brief_max: float | None = None
    in_bytes: bool = True
    typical: Callable[[Sequence[int]], float] = median

    def thirds(self, samples: Sequence[int]) -> tuple[float, float]:
        """What was typical of the middle and of the last third."""
        third = len(samples) // 3
        return self.typical(samples[third : 2 * third]), self.typical(samples[2 * third :])

    def text(self, amount: float) -> str:
        return f"{amount / 1e6:.1f} MB" if self.in_bytes else f"{amount:.0f}"


MEASURES = {
    # CPython takes memory by the MiB, and 1 MB at once when its table of interned names has had
    # 22,000 of them, kept or not.
    "process": Measure(2_200_000, 14_000_000),
    # What is on its way at a moment takes up to a thousand blocks of memory more or less. A brief
    # run ends while tables of bounded size fill: by 1,600 changes, with 16,000 blocks in all.
    "blocks": Measure(2500, 6000, in_bytes=False),
    "heap": Measure(1_200_000, 4_000_000),
    "tasks": Measure(4, 4, in_bytes=False, typical=lowest),
    "threads": Measure(0, 0, in_bytes=False),
    "files": Measure(2, 2, in_bytes=False, typical=lowest),
    # A buffer of 8 MB more, and half as much for garbage.
    "server": Measure(12_000_000, 18_000_000, typical=lowest),
    "server buffers": Measure(math.inf, typical=lowest),
    "server small": Measure(1_000_000, None, typical=lowest),
    "server objects": Measure(6000, None, in_bytes=False, typical=lowest),
    "storage": Measure(8_000_000, 20_000_000, typical=lowest),
}
"""Of a node's Python, of its server, and of both (open files)."""


@dataclass
class Node:
    """Samples of one node by what is measured, and what its server had at first and at the end."""

    samples: dict[str, list[int]] = field(default_factory=lambda: {what: [] for what in MEASURES})
    kept: list[dict[str, int]] = field(default_factory=list)


@dataclass
class Soak:
    """What a run saw: how many changes, and the samples of each node by its path."""

    changes: int = 0
    nodes: dict[str, Node] = field(default_factory=dict)

    def grown(self, *, brief: bool = False) -> list[str]:
        """What is not flat: the last third of the samples against the middle one."""
        found = []
        for path, node in self.nodes.items():
            for what, samples in node.samples.items():
                measure = MEASURES[what]
                allowed = measure.brief_max if brief else measure.growth_max
                middle, last = measure.thirds(samples)
                if allowed is not None and last > middle + allowed:
                    found.append(
                        f"{path} {what}: {measure.text(middle)}, then {measure.text(last)}"
                    )
            first, end = node.kept
            found += [
                f"{path} {what}: {first[what]}, then {count}"
                for what, count in end.items()
                if count > first[what]
            ]
        return found


def slope(samples: Sequence[int], seconds: float) -> float:
    """The growth of the last two thirds by the line that fits best, in bytes a second."""
    kept = samples[len(samples) // 3 :]
    if len(kept) < 2:
        return 0.0
    each = seconds / len(samples)
    return linear_regression([at * each for at in range(len(kept))], kept).slope


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


async def warm_up(tree: ChaosTree) -> float:
    """Make large changes until every server has filled its buffers once; in how many seconds."""
    dice, begun = random.Random(2), time.monotonic()
    for path in EDGES:
        await _fill_done(tree.members[path])
    async with tree.session() as session:
        listed = await session.inventory.list("edge.kubestellar.io", "synctargets")
        former = {obj["metadata"]["name"]: obj["metadata"]["labels"] for obj in listed.objects}
        while not (filled := all(map(_is_filled, tree.members.values()))):
            if time.monotonic() > begun + FILL_SECONDS_MAX:
                break
            # Labels go down as profiles, and up as digests; objects are content.
            for name, labels in former.items():
                many = {f"label-{n}": dice.randbytes(30).hex() for n in range(LABELS)}
                await _relabel(session, name, {**many, **labels})
            await tree.put("p0", **{"p0-0": dice.randbytes(LARGE_BYTES).hex()})
        for name, labels in former.items():
            await _relabel(session, name, labels)
    await tree.put("p0", **{"p0-0": "first"})
    await tree.exact(EDGES)
    assert filled, f"buffers were not filled within {FILL_SECONDS_MAX} s"
    return time.monotonic() - begun


async def _fill_done(member: Member) -> None:
    """What an edge has done takes hundreds of bytes at a time: a stranger's records fill up DONE.

    A node reads it at its start only.
    """
    subject = subjects.done(member.path, "filling")
    async with member.client("relay") as client:
        stream = client.jetstream()
        for _ in range(FILLING_MESSAGES):
            await stream.publish(subject, bytes(FILLING_BYTES))
        await stream.purge_stream("DONE", subject=subject)


async def _relabel(session: Session, name: str, labels: Mapping[str, str]) -> None:
    key = ObjectKey("edge.kubestellar.io", "synctargets", "", name)
    found = await session.inventory.get(key)
    assert found is not None
    annotations = found["metadata"]["annotations"]
    metadata = {"name": name, "labels": dict(labels), "annotations": annotations}
    loaded = LoadedObject({**found, "metadata": metadata}, "soak", 1)
    async with judged(session, ApplyBatch([loaded]), dry=False) as batch:
        async for _, error in batch.written({}):
            assert error is None, error


def _is_filled(member: Member) -> bool:
    """Whether each stream that is written has begun another file."""
    store = member.node_folder / "jetstream" / "jetstream"
    return all(
        any(int(file.stem) > 1 for file in store.glob(f"*/streams/{name}/msgs/*.blk"))
        for name in FILLED[str(member.path)]
    )


async def soak(tree: ChaosTree, seconds: float) -> Soak:
    """Change what the tree delivers for so long, and take samples; the end is exact everywhere."""
    seen = Soak(nodes={path: Node() for path in tree.members})
    dice = random.Random(1)
    await _note_kept(tree, seen)
    until = time.monotonic() + seconds
    async with asyncio.TaskGroup() as group:
        group.create_task(_sample(tree, seen, until))
        while time.monotonic() < until:
            await _change(tree, dice, seen)
            seen.changes += 1
            await asyncio.sleep(PAUSE_SECONDS)
    await tree.exact(EDGES)
    await _note_kept(tree, seen)
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
        text = f"{seen.changes} {dice.randbytes(TEXT_BYTES).hex()}"
        await tree.put(placement, **{name: text})


async def _sample(tree: ChaosTree, seen: Soak, until: float) -> None:
    while time.monotonic() < until:
        for path, member in tree.members.items():
            for what, amount in (await _measured(member)).items():
                seen.nodes[path].samples[what].append(amount)
        await asyncio.sleep(SAMPLE_SECONDS)


async def _measured(member: Member) -> dict[str, int]:
    held, heap = await member.held(), await member.server_heap()
    process, server = member.memory()
    return {
        **held,
        "process": process,
        "server": server,
        "server buffers": heap.large,
        "server small": heap.small,
        "server objects": heap.objects,
        "storage": member.stored_bytes(),
    }


async def _note_kept(tree: ChaosTree, seen: Soak) -> None:
    for path, member in tree.members.items():
        seen.nodes[path].kept.append(await member.kept())


async def main(seconds: float) -> None:
    columns = ("node", "what", "MB (or so many) at first", "middle", "last", "a minute")
    report = Report("soak", f"{seconds:.0f} s of changes without end, process and server", columns)
    with tempfile.TemporaryDirectory() as folder:
        tree = await grow(Path(folder))
        try:
            warm = await warm_up(tree)
            print(f"warm after {warm:.0f} s", flush=True)
            seen = await soak(tree, seconds)
        finally:
            await tree.close()
    for path, node in seen.nodes.items():
        for what, samples in node.samples.items():
            measure = MEASURES[what]
            row = (samples[0], *measure.thirds(samples), 60 * slope(samples, seconds))
            report.row(path, what, *(part / (1e6 if measure.in_bytes else 1) for part in row))
        report.note(f"{path}: its server had {node.kept[0]} at first, {node.kept[1]} at the end")
    report.note(f"measured after {warm:.0f} s of large changes, which filled each stream's buffer")
    report.note(f"{seen.changes} changes; every edge exact at the end")
    for line in seen.grown():
        report.note(f"not flat: {line}")
    report.goal("nodes whose memory or storage grows", len(seen.grown()), 0)
    report.finish()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS))
