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
from relay.core.records.accepted import AcceptedRecord, Version
from relay.core.records.judge import SnapshotJudge, VerifiedSnapshot
from relay.core.records.snapshot import SnapshotInterest, SnapshotView
from relay.core.records.tree import SnapshotTree
from schemas.content.blobs import StoredBlob, open_value
from schemas.records.records import LocationRecord, NodeRecord, Source
from schemas.records.snapshots import (
    BlobPointer,
    EntryKey,
    SnapshotRecord,
    Term,
    TermEntry,
    mail_entry_key,
    mail_key_of,
    path_entry_key,
)
from schemas.values.identity import ContentHash, NodePath, mail_key

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


def at_paths(count: int) -> Iterator[tuple[EntryKey, NodePath]]:
    """Profile and node of each edge, its regions one after the other."""
    each = count // 2 // REGIONS
    for region in range(REGIONS):
        for number in range(each):
            path = NodePath((f"region-{region}", f"store-{number:05}"))
            for api in ("SyncTarget", "Node"):
                yield path_entry_key(path, mail_key(api, "inventory", "", str(path))), path


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
        self.paths = dict(at_paths(records - PLACEMENTS))
        self.places = list(self.paths)
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

    def record(self, key: EntryKey) -> AcceptedRecord:
        return held_record(key, self.held[key], self.paths.get(key))


def held_record(key: EntryKey, generation: int, path: NodePath | None) -> AcceptedRecord:
    """A record as a node holds it; one without a path is listed by its own key."""
    source = Source("any", "inventory", "", "any")
    term = TERM.hex()
    if path is None:
        location = LocationRecord(source, generation, term, "", {}, {}, None)
        return AcceptedRecord(
            mail_key_of(key), "location", location, b"", b"", Version(generation, 0, full=True)
        )
    node = NodeRecord(source, generation, term, "", path, "")
    return AcceptedRecord(
        mail_key_of(key), "node", node, b"", b"", Version(generation, 0, full=True)
    )


class Node:
    """A node that holds what stands at these keys, and all below its path."""

    def __init__(self, bed: Bed, keys: list[EntryKey], path: NodePath) -> None:
        self.bed = bed
        self.held = {mail_key_of(key): bed.record(key) for key in keys}
        self.interest = SnapshotInterest([key for key in keys if key not in bed.paths], path)
        self.judge = SnapshotJudge(self.held, lambda: self.interest, path)

    def reach(
        self, view: SnapshotView, changed: EntryKey | None = None
    ) -> tuple[float, int, int, int]:
        """Take a changed record and read a snapshot: milliseconds, rounds, blobs, bytes fetched."""
        snapshot = VerifiedSnapshot(view.record, b"", b"", Version(view.generation, 0, full=True))
        spent, rounds, fetched = 0.0, 0, []
        if changed is not None and mail_key_of(changed) in self.held:
            record = self.bed.record(changed)
            spent, _ = timed(partial(self.judge.accepted, record))
            self.held[record.key] = record
        took, _ = timed(partial(self.judge.offer, snapshot, 1, 0.0))
        spent += took
        while True:
            took, missing = timed(self.judge.read_more)
            spent += took
            if not missing:
                break
            rounds += 1
            for reference in missing:
                fetched.append(reference.address)
                plain = view.nodes[reference.address]
                spent += timed(partial(self.judge.take, reference.address, plain))[0]
        took, standings = timed(self.judge.reach)
        assert not any(standings.by_kind())
        size = sum(map(self.bed.sizes.__getitem__, fetched))
        return spent + took, rounds, len(fetched), size


def cost_of_a_change(bed: Bed, report: Report, tiers: dict[str, Node]) -> None:
    dice = random.Random(1)
    centre: list[tuple[float, int, int]] = []
    seen: dict[str, list[tuple[float, int, int]]] = {name: [] for name in tiers}
    for number in range(CHANGES):
        key = dice.choice(bed.deltas if number % 2 else bed.places)
        took, view, made = bed.change(key)
        centre.append((took, len(made), sum(map(stored_bytes, made))))
        for name, tier in tiers.items():
            spent, _, count, size = tier.reach(view, key)
            seen[name].append((spent, count, size))
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
    spent, rounds, count, size = node.reach(view)
    report.row(f"{name}: {len(node.held):,} records judged at first", spent, "ms")
    report.row(f"{name}: rounds, blobs", f"{rounds}, {count:,}", "")
    report.row(f"{name}: bytes", size, "bytes")


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
