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
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.counts import is_synced
from benchmarks.report import Report
from relay.core.effects import StoreOwn, WriteMail
from relay.core.events import BlobArrived, MailWritten
from schemas.content import blobs
from schemas.content.blobs import Reference
from schemas.records.snapshots import SNAPSHOT_INNER, SNAPSHOT_LEAF, SNAPSHOT_TERMS
from schemas.values import codec
from schemas.values.identity import SNAPSHOT_KEY, ContentHash, NodePath
from tests.doubles.memory.bus import MemoryBus, MemoryNetwork
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
    "content carried",
    "content fetched",
    "once, no more",
    "snapshot bytes",
    "seconds",
)
SNAPSHOT_KINDS = frozenset({"snapshot", SNAPSHOT_INNER, SNAPSHOT_LEAF, SNAPSHOT_TERMS})
BLOBS = 3
"""What a changed object makes anew: itself, a chunk of the manifest, and its root."""


class Meter:
    """Messages and bytes that crossed each link, by kind; a link is named by its lower end."""

    def __init__(self) -> None:
        self.messages: dict[NodePath, Counter[str]] = {}
        self.bytes: dict[NodePath, Counter[str]] = {}

        # How often each blob of content did.
        self.blobs: dict[NodePath, Counter[ContentHash]] = {}

    def add(self, link: NodePath, kind: str, size: int, blob: ContentHash | None = None) -> None:
        self.messages.setdefault(link, Counter())[kind] += 1
        self.bytes.setdefault(link, Counter())[kind] += size
        if blob is not None:
            self.blobs.setdefault(link, Counter())[blob] += 1

    def clear(self) -> None:
        self.messages.clear()
        self.bytes.clear()
        self.blobs.clear()

    def bus(self, network: MemoryNetwork, path: NodePath) -> MemoryBus:
        return _MeteredBus(self, network, path)


class _MeteredBus(MemoryBus):
    def __init__(self, meter: Meter, network: MemoryNetwork, path: NodePath) -> None:
        super().__init__(network, path)
        self._meter = meter

    async def write(
        self,
        *,
        blobs: Mapping[ContentHash, bytes] | None = None,
        own: Iterable[StoreOwn] = (),
        mail: Sequence[WriteMail] = (),
    ) -> list[MailWritten]:
        for write in mail:
            kind = "snapshot" if write.key == SNAPSHOT_KEY else "delta"
            link = self.path.child(write.child)
            self._meter.add(link, kind, len(write.data))
            for address, value in write.carried:
                self._meter.add(link, "carried", len(value), address)
        return await super().write(blobs=blobs, own=own, mail=mail)

    async def load_blob(self, reference: Reference, **how: Any) -> BlobArrived:
        found = await super().load_blob(reference, **how)
        if found.value is not None and not found.local:
            size = len(found.value) + sum(len(part) for _, part in found.parts)
            if reference.kind in SNAPSHOT_KINDS:
                self._meter.add(self.path, reference.kind, size)
            else:
                self._meter.add(self.path, "fetched", size, reference.address)
        return found


def _paths(destinations: int) -> list[str]:
    regions = [f"/r{n}" for n in range(REGIONS)]
    return regions + [f"{regions[n % REGIONS]}/s{n}" for n in range(destinations)]


async def measure(destinations: int, meter: Meter) -> dict[str, Any]:
    """Change one of the objects, and count until every destination has it, and the centre knows."""
    with tempfile.TemporaryDirectory() as folder:
        async with memory_tree(Path(folder), _paths(destinations), meter.bus) as tree:
            await tree.apply(*[_object(n, "first") for n in range(OBJECTS)])
            await tree.apply(placement("shop", "shop"))
            former = await tree.until("shop", lambda c: is_synced(c, destinations), seconds=600)
            await silent(meter)
            counters = tree.centre.counters
            before = (counters.mail_written, counters.mail_bytes)
            began = time.perf_counter()
            await tree.apply(_object(7, "changed"))
            await tree.until("shop", lambda c: is_synced(c, destinations, former), seconds=600)
            seconds = time.perf_counter() - began
            written = counters.mail_written - before[0]
            await silent(meter, clear=False)
    return {"seconds": seconds, "mail": written, **_per_link(meter)}


def stored_size(obj: dict[str, Any]) -> int:
    """Bytes of an object as a blob."""
    return blobs.store(blobs.OBJECT, codec.canonical(obj)).reference.size


def _object(number: int, text: str) -> dict[str, Any]:
    return config_map(f"c{number}", "shop", text=f"{text} {number} " * 20)


async def silent(meter: Meter, *, clear: bool = True) -> None:
    """Until nothing crosses a link for two seconds: a snapshot may follow a change."""
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
        for kind in ("delta", "carried", "fetched"):
            found[f"{name} {kind}"] = max((meter.bytes[link][kind] for link in links), default=0)
    found["once"] = all(
        kinds["delta"] == 1
        and len(meter.blobs[link]) == BLOBS
        and set(meter.blobs[link].values()) == {1}
        for link, kinds in meter.messages.items()
    )
    own = [link for link in meter.bytes if len(link.names) == 1]
    said = [(k, size) for link in own for k, size in meter.bytes[link].items()]
    found["bytes"] = sum(size for kind, size in said if kind not in SNAPSHOT_KINDS)
    found["snapshot bytes"] = sum(size for kind, size in said if kind in SNAPSHOT_KINDS)
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
        once, mail, size = seen["once"], seen["mail"], seen["bytes"]
        flat = (stored_size(_object(7, "changed")) + seen["centre delta"]) * destinations
        flats.append(size)
        parts = [seen[f"centre {kind}"] for kind in ("delta", "carried", "fetched")]
        said = "yes" if once else "NO"
        rest = (seen["snapshot bytes"], seen["seconds"])
        report.row(destinations, mail, size, flat, *parts, said, *rest)
        report.goal(f"mail of the centre, {destinations} destinations", mail, REGIONS)
        report.goal(f"links with more than one each, {destinations} destinations", int(not once), 0)
    report.goal("bytes at most destinations over fewest", max(flats) / min(flats), 1.05)
    report.note("Snapshots and their blobs are counted apart: at most one a child and second.")
    report.finish()


if __name__ == "__main__":
    asyncio.run(main([int(word) for word in sys.argv[1:]] or SIZES))
