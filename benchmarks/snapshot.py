"""What a snapshot over 1,000,000 records costs: one change at each tier, and the first reading.

A tree of 4 regions of 250,000 records each: profiles and nodes of its edges at their paths. Besides
10,000 placements and Locations, of which a region gets all and an edge 203; with its own profile
and node it has 205 records. Times are of the processor; bytes are those of the store, compressed.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from benchmarks.report import Report, middle, percentile
from controllers.core.ledger.snapshots import SETTLING_SECONDS, SnapshotIssuer
from relay.core.records.reading import SnapshotReading, addresses_kept
from relay.core.records.snapshot import Interest, SnapshotView
from relay.core.records.tree import SnapshotTree
from relay.core.records.verdict import HeldRecord, judge_all
from schemas.content.blobs import StoredBlob, open_value
from schemas.identity import ContentHash, NodePath, mail_key
from schemas.snapshots import (
    BlobPointer,
    EntryKey,
    SnapshotRecord,
    Term,
    TermEntry,
    mail_entry_key,
    path_entry_key,
)

RECORDS, REGIONS, PLACEMENTS, AT_AN_EDGE = 1_000_000, 4, 10_000, 203
CHANGES = 200
BEGIN = 1_700_000_000_000
TERM = Term(b"termterm")
REGION = NodePath.parse("/region-0")
EDGE = REGION.child("store-00000")

_T = TypeVar("_T")


def at_mail_keys(count: int) -> Iterator[EntryKey]:
    for number in range(count):
        yield mail_entry_key(mail_key("EdgePlacement", "space", "", f"placement-{number}"))


def at_paths(count: int) -> Iterator[EntryKey]:
    """Profile and node of each edge, its regions one after the other."""
    each = count // 2 // REGIONS
    for region in range(REGIONS):
        for number in range(each):
            path = NodePath((f"region-{region}", f"store-{number:05}"))
            for api in ("SyncTarget", "Node"):
                yield path_entry_key(path, mail_key(api, "inventory", "", str(path)))


def timed(call: Callable[[], _T]) -> tuple[float, _T]:
    began = time.process_time()
    found = call()
    return (time.process_time() - began) * 1000, found


def stored_bytes(blob: StoredBlob) -> int:
    return sum(len(value) for value in blob.values.values())


class Bed:
    """The centre's issuer with all records, and all blobs by address."""

    def __init__(self, records: int) -> None:
        self.deltas = list(at_mail_keys(PLACEMENTS))
        self.places = list(at_paths(records - PLACEMENTS))
        self.held = {key: BEGIN + n for n, key in enumerate([*self.deltas, *self.places])}
        self.generation = BEGIN + 2 * records
        self.now = 0.0
        self.plain: dict[ContentHash, bytes] = {}
        self.sizes: dict[ContentHash, int] = {}
        self.build_ms, tree = timed(lambda: SnapshotTree.empty().changed(self.held))
        self.keep(tuple(tree.blobs()))
        last = SnapshotRecord(
            self.generation, TERM, 0, 0, 0, BlobPointer(bytes(32), 0), tree.root, tree.height, 0
        )
        self.issuer = SnapshotIssuer(
            TERM, now=0.0, last=last, stored=tree, terms=[TermEntry(TERM, None)]
        )
        self.tree = tree

    def keep(self, blobs: tuple[StoredBlob, ...]) -> None:
        for blob in blobs:
            reference = blob.reference
            self.plain[reference.address] = open_value(reference, blob.values[reference.address])
            self.sizes[reference.address] = stored_bytes(blob)

    def sign(self) -> tuple[float, SnapshotView, tuple[StoredBlob, ...]]:
        self.now += SETTLING_SECONDS
        self.generation += 1
        took, issued = timed(
            lambda: self.issuer.sign(self.generation, now=self.now, now_ms=int(self.now * 1000))
        )
        self.keep(issued.blobs)
        return took, SnapshotView(issued.record, self.plain), issued.blobs

    def change(self, key: EntryKey) -> tuple[float, SnapshotView, tuple[StoredBlob, ...]]:
        self.generation += 1
        self.issuer.issued(key, self.generation, takes_away=True, now=self.now)
        self.held[key] = self.generation
        return self.sign()

    def records(self, keys: list[EntryKey]) -> list[HeldRecord]:
        return [HeldRecord(key, self.held[key], TERM) for key in keys]


class Node:
    """What a node keeps of the snapshots, for its interest."""

    def __init__(self, bed: Bed, keys: list[EntryKey], subtree: NodePath | None = None) -> None:
        self.bed = bed
        self.keys = sorted(keys)
        self.interest = Interest(keys, subtree)
        self.nodes: dict[ContentHash, bytes] = {}

    def read(self, view: SnapshotView) -> tuple[float, int, int, int, float]:
        """Milliseconds, rounds, blobs, bytes fetched; milliseconds to judge what may differ."""
        spent, rounds, fetched = 0.0, 0, []
        took, reading = timed(lambda: SnapshotReading(view.record, self.interest, self.nodes))
        spent += took
        while missing := reading.missing(sys.maxsize):
            rounds += 1
            for reference in missing:
                plain = view.nodes[reference.address]
                fetched.append(reference.address)
                took, _ = timed(partial(reading.take, reference.address, plain))
                spent += took
        own = SnapshotView(view.record, self.nodes)
        judging, _ = timed(lambda: self.judge(own))
        return spent, rounds, len(fetched), sum(map(self.bed.sizes.__getitem__, fetched)), judging

    def judge(self, view: SnapshotView) -> None:
        """Find what is listed otherwise than it is held, and judge that."""
        listed = {entry.key: entry.generation for entry in view.listed(self.interest)}
        held = self.bed.held
        others = [key for key in self.keys if listed.get(key) != held[key]]
        assert all(standing for _, standing in judge_all(self.bed.records(others), view))


def cost_of_a_change(bed: Bed, report: Report, tiers: dict[str, Node]) -> None:
    dice = random.Random(1)
    centre: list[tuple[float, int, int]] = []
    seen: dict[str, list[tuple[float, int, int]]] = {name: [] for name in tiers}
    for number in range(CHANGES):
        key = dice.choice(bed.deltas if number % 2 else bed.places)
        took, view, made = bed.change(key)
        centre.append((took, len(made), sum(map(stored_bytes, made))))
        for name, tier in tiers.items():
            spent, _, count, size, judging = tier.read(view)
            seen[name].append((spent + judging, count, size))
    for name, costs in {"centre": centre, **seen}.items():
        milliseconds, blobs, sizes = zip(*costs, strict=True)
        report.row(f"{name}: one change, p50", middle(milliseconds), "ms")
        report.row(f"{name}: one change, p99", percentile(milliseconds, 0.99), "ms")
        report.row(f"{name}: blobs of one change, p50", middle(blobs), "")
        report.row(f"{name}: blobs of one change, most", max(blobs), "")
        report.row(f"{name}: bytes of one change, p50", middle(sizes), "bytes")
        report.row(f"{name}: bytes of one change, most", max(sizes), "bytes")


def steady_change(bed: Bed, report: Report) -> None:
    """100 changes in one snapshot, as at 100 a second."""
    dice = random.Random(2)
    times, sizes, counts = [], [], []
    for _ in range(10):
        for key in dice.sample(bed.places, 100):
            bed.generation += 1
            bed.issuer.issued(key, bed.generation, takes_away=True, now=bed.now)
            bed.held[key] = bed.generation
        took, _, blobs = bed.sign()
        times.append(took)
        counts.append(len(blobs))
        sizes.append(sum(map(stored_bytes, blobs)))
    report.row("centre: 100 changes in one snapshot", middle(times), "ms")
    report.row("centre: their blobs", middle(counts), "")
    report.row("centre: their bytes", middle(sizes), "bytes")


def first_reading(report: Report, name: str, node: Node, view: SnapshotView) -> None:
    spent, rounds, count, size, _ = node.read(view)
    report.row(f"{name}: first reading", spent, "ms")
    report.row(f"{name}: rounds, blobs", f"{rounds}, {count:,}", "")
    report.row(f"{name}: bytes", size, "bytes")
    own = SnapshotView(view.record, node.nodes)
    took, _ = timed(lambda: node.judge(own))
    report.row(f"{name}: all {len(node.keys):,} records judged", took, "ms")
    took, _ = timed(lambda: list(addresses_kept(own, node.interest)))
    report.row(f"{name}: finding what is kept, for sweeping", took, "ms")


def main(records: int = RECORDS) -> None:
    report = Report(
        "snapshot",
        f"A snapshot over {records:,} records, pure core (CPU)",
        ("what", "figure", "unit"),
    )
    bed = Bed(records)
    report.row("centre: building the tree", bed.build_ms, "ms")
    report.row("centre: blobs of the whole tree", len(bed.plain), "")
    report.row("centre: bytes of the whole tree", sum(bed.sizes.values()), "bytes")
    _, view, _ = bed.sign()
    each = (records - PLACEMENTS) // REGIONS
    region = Node(bed, [*bed.deltas, *bed.places[:each]], REGION)
    edge = Node(bed, [*bed.deltas[:AT_AN_EDGE], *bed.places[:2]], EDGE)
    first_reading(report, "region", region, view)
    first_reading(report, "edge", edge, view)
    cost_of_a_change(bed, report, {"region": region, "edge": edge})
    steady_change(bed, report)
    report.finish()


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
