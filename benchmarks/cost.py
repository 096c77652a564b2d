"""What the centre writes for one changed object does not grow with the number of destinations.

Everything that crosses a link of the tree is counted, by kind: mail as it is written to the child's
mailbox, content as it is read from the parent's store. The flat way is the limit it is held to:
the object itself, written once for each destination.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Report
from relay.adapters.memory.bus import MemoryBus, MemoryNetwork
from relay.core.effects import WriteMail
from relay.core.events import BlobArrived, MailWritten
from schemas.blobs import Reference
from schemas.identity import NodePath
from tests.memory_tree import config_map, memory_tree, placement

REGIONS = 4
SIZES = (10, 100, 1000)
OBJECTS = 200
COLUMNS = (
    "destinations",
    "centre's mail",
    "its bytes",
    "flat way, bytes",
    "delta",
    "root",
    "chunk",
    "object",
    "once, no more",
    "index bytes",
    "seconds",
)
INDEX_KINDS = ("index mail", "ilist", "ichunk")


class Meter:
    """Messages and bytes that crossed each link, by kind; a link is named by its lower end."""

    def __init__(self) -> None:
        self.messages: dict[NodePath, Counter[str]] = {}
        self.bytes: dict[NodePath, Counter[str]] = {}

    def add(self, link: NodePath, kind: str, size: int) -> None:
        self.messages.setdefault(link, Counter())[kind] += 1
        self.bytes.setdefault(link, Counter())[kind] += size

    def clear(self) -> None:
        self.messages.clear()
        self.bytes.clear()

    def bus(self, network: MemoryNetwork, path: NodePath) -> MemoryBus:
        return _MeteredBus(self, network, path)


class _MeteredBus(MemoryBus):
    def __init__(self, meter: Meter, network: MemoryNetwork, path: NodePath) -> None:
        super().__init__(network, path)
        self._meter = meter

    async def write_mail(self, writes: Sequence[WriteMail]) -> list[MailWritten]:
        for write in writes:
            kind = "index mail" if write.key == "_index" else "delta"
            self._meter.add(self.path.child(write.child), kind, len(write.data))
        return await super().write_mail(writes)

    async def load_blob(self, reference: Reference, **how: Any) -> BlobArrived:
        found = await super().load_blob(reference, **how)
        if found.value is not None and not found.local:
            size = len(found.value) + sum(len(part) for _, part in found.parts)
            self._meter.add(self.path, reference.kind, size)
        return found


def _paths(destinations: int) -> list[str]:
    regions = [f"/r{n}" for n in range(REGIONS)]
    return regions + [f"{regions[n % REGIONS]}/s{n}" for n in range(destinations)]


async def measure(destinations: int, meter: Meter) -> dict[str, Any]:
    """Change one of the objects, and count until every destination has it, and the centre knows."""
    everywhere = {"synced": destinations}
    with tempfile.TemporaryDirectory() as folder:
        async with memory_tree(Path(folder), _paths(destinations), meter.bus) as tree:
            await tree.apply(*[_object(n, "first") for n in range(OBJECTS)])
            await tree.apply(placement("shop", "shop"))
            former = await tree.until(
                "shop", lambda s: s.complete and s.states == everywhere, seconds=600
            )
            await _silent(meter)
            counters = tree.centre.counters
            before = (counters.mail_written, counters.mail_bytes)
            began = time.perf_counter()
            await tree.apply(_object(7, "changed"))
            await tree.until(
                "shop",
                lambda s: s.complete and s.states == everywhere and s.arms != former.arms,
                seconds=600,
            )
            seconds = time.perf_counter() - began
            written = counters.mail_written - before[0]
            await _silent(meter, clear=False)
    return {"seconds": seconds, "mail": written, **_per_link(meter)}


def _object(number: int, text: str) -> dict[str, Any]:
    return config_map(f"c{number}", "shop", text=f"{text} {number} " * 20)


async def _silent(meter: Meter, *, clear: bool = True) -> None:
    """Until nothing crosses a link for two seconds: the index follows a change by up to one."""
    seen = -1
    while seen != (seen := sum(c.total() for c in meter.messages.values())):
        await asyncio.sleep(2)
    if clear:
        meter.clear()


def _per_link(meter: Meter) -> dict[str, Any]:
    """By kind the most that any link of each tier carried, and the centre's sums."""
    found: dict[str, Any] = {}
    for tier, name in ((1, "centre"), (2, "edge")):
        links = [link for link in meter.bytes if len(link.names) == tier]
        for kind in ("delta", "manifest", "mchunk", "object", *INDEX_KINDS):
            found[f"{name} {kind}"] = max((meter.bytes[link][kind] for link in links), default=0)
            count = max((meter.messages[link][kind] for link in links), default=0)
            found[f"{name} {kind} messages"] = count
    known = {"delta", "manifest", "mchunk", "object", *INDEX_KINDS}
    found["else"] = sum(len(kinds.keys() - known) for kinds in meter.bytes.values())
    own = [link for link in meter.bytes if len(link.names) == 1]
    said = [(k, size) for link in own for k, size in meter.bytes[link].items()]
    found["bytes"] = sum(size for kind, size in said if kind not in INDEX_KINDS)
    found["index bytes"] = sum(size for kind, size in said if kind in INDEX_KINDS)
    return found


async def main(sizes: Sequence[int] = SIZES) -> None:
    report = Report(
        "cost",
        f"Cost of one changed object of {OBJECTS}, {REGIONS} regions (bytes; a link's most)",
        COLUMNS,
    )
    flats: list[float] = []
    for destinations in sizes:
        seen = await measure(destinations, Meter())
        kinds = ("delta", "manifest", "mchunk", "object")
        tiers = ("centre", "edge")
        once = not seen["else"] and all(
            seen[f"{tier} {kind} messages"] == 1 for tier in tiers for kind in kinds
        )
        flat = (seen["centre object"] + seen["centre delta"]) * destinations
        flats.append(seen["bytes"])
        parts = [seen[f"centre {kind}"] for kind in kinds]
        said = "yes" if once else "NO"
        mail, size, index = seen["mail"], seen["bytes"], seen["index bytes"]
        report.row(destinations, mail, size, flat, *parts, said, index, seen["seconds"])
        report.goal(f"mail of the centre, {destinations} destinations", mail, REGIONS)
        report.goal(f"links with more than one each, {destinations} destinations", int(not once), 0)
    report.goal("bytes at most destinations over fewest", max(flats) / min(flats), 1.05)
    report.note(
        "Index mail, its list and its chunks are counted apart: at most one a child and second."
    )
    report.finish()


if __name__ == "__main__":
    asyncio.run(main([int(word) for word in sys.argv[1:]] or SIZES))
