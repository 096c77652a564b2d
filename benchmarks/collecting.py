"""What collectors cost the relays: one changed row, and all, beside the same change without any.

And what comes into the centre when all rows change, at three sizes of the same regions, beside the
flat way: what the edges say, all of it to one place.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

from benchmarks.core_tree import PATH, CoreTree, Traffic
from benchmarks.report import Report, middle
from relay.core.collectors.ports import CopyView, RowOwner
from relay.core.collectors.program_results import member_hash
from relay.core.collectors.tables import TableAlgebra
from relay.shell.evaluator import CelEvaluator
from schemas.content import blobs
from schemas.content.blobs import Reference, StoredBlob
from schemas.content.manifest import ManifestEntry, build_manifest
from schemas.objects.objects import ObjectKey
from schemas.records.records import Gate
from schemas.reports.collectors import Collected, CombinedField, Expression, Program, program_set
from schemas.reports.reports import Report as WireReport
from schemas.reports.reports import decode_report
from schemas.values import codec
from schemas.values.identity import DestinationId, NodePath
from schemas.values.wire import encode, replace

REGIONS, EDGES, SINGLES = 50, 2000, 60
SHARES = (100, 10)
"""Of the edges, for messages at other sizes."""
GOAL_RATIO = 2.0
WINDOW_SECONDS = 0.15
WEB = ObjectKey("apps", "deployments", "shop", "web")
PROGRAM = Program(
    "ready",
    filter="has(returned.status)",
    group_by=(Expression("v", "obj.metadata.labels.version"),),
    combined=(CombinedField("n", "COUNT"), CombinedField("sum", "SUM", "returned.status.ready")),
)
PLAIN = codec.canonical({"metadata": {"name": "web", "labels": {"version": "v2"}}})
EVALUATOR = CelEvaluator()


class CollectingTree(CoreTree):
    """A tree whose placement has one object, with a collector or without."""

    def __init__(self, regions: int, edges: int, *, collects: bool) -> None:
        self.collects = collects
        self._bound = EVALUATOR.bind(PROGRAM, PLAIN)
        super().__init__(regions, edges)

    def evaluator(self) -> CelEvaluator:
        return EVALUATOR

    def gates(self, manifest: Reference) -> tuple[Gate, ...]:
        return (Gate(manifest),)

    def content(self) -> tuple[list[StoredBlob], list[StoredBlob]]:
        """The manifest and the object, and the collectors."""
        obj = blobs.store(blobs.OBJECT, PLAIN)
        address, size = obj.reference.address, obj.reference.size
        entry = ManifestEntry(
            WEB.group, WEB.resource, WEB.namespace, WEB.name, address, size, "w", 1
        )
        programs = [program_set({WEB: (PROGRAM,)})] if self.collects else []
        return [*build_manifest([entry]), obj], programs

    def reports(
        self, region: NodePath, names: Iterable[str], state: str, arm: str
    ) -> list[tuple[str, str, bytes]]:
        """The same, with the row of each: a failing one is not ready."""
        said = super().reports(region, names, state, arm)
        if not self.collects:
            return said
        status = codec.canonical({"ready": 3 if state == "synced" else 0})
        outcome = self._bound.outcome(CopyView("", status))
        algebra = TableAlgebra(PROGRAM)
        told = []
        for name, slot, data in said:
            report = decode_report(data) if slot == self.key else None
            if isinstance(report, WireReport):
                full = "-".join(region.child(name).names)
                who = RowOwner(full, DestinationId(f"inventory-mb-{full}"))
                rows = algebra.write(algebra.leaf(outcome, who.who))
                members = member_hash(who.destination).to_bytes(16, "big")
                row = Collected(WEB, PROGRAM.id, members, rows)
                data = encode(replace(report, collected=(row,)))  # noqa: PLW2901 - with its row
            told.append((name, slot, data))
        return told

    def rows(self) -> tuple[int, float]:
        """How many are ready, and the sum of what they say."""
        (result,) = self.centre.node.view.collected(self.key)
        counts = [(row.count, row.cells[1]) for row in result.rows.rows.values()]
        return sum(count for count, _ in counts), sum(units for _, units in counts) / 2**1074


def settle(tree: CollectingTree, synced: int) -> None:
    """Let windows end until the centre knows all."""
    for _ in range(400):
        tree.run(WINDOW_SECONDS)
        count = tree.count()
        if count.exact and count.summary.states.get("synced", 0) == synced:
            return
    raise AssertionError(f"the centre stays at {tree.count()}")


def all_report(tree: CollectingTree, state: str, synced: int) -> float:
    """All edges report at once: seconds until the centre is exact, without the edges' own part."""
    seconds = 0.0
    for region in [path for path in tree.hosts if path != PATH]:
        said = tree.reports(region, tree.edges, state, tree.arm)
        began = time.process_time()
        tree.arrive(region, said)
        seconds += time.process_time() - began
    began = time.process_time()
    settle(tree, synced)
    if tree.collects:
        tree.rows()
    return seconds + time.process_time() - began


def one_reports(tree: CollectingTree, number: int) -> float:
    """One edge turns failing, and back: seconds of both tiers for one of the two."""
    region = NodePath((f"r{number % min(3, len(tree.hosts) - 1)}",))
    name = tree.edges[number % len(tree.edges)]
    everywhere, seconds = len(tree.edges) * (len(tree.hosts) - 1), 0.0
    for state, synced in (("failing", everywhere - 1), ("synced", everywhere)):
        said = tree.reports(region, [name], state, tree.arm)
        began = time.process_time()
        tree.arrive(region, said)
        while tree.count().summary.states.get("synced", 0) != synced:
            due = [tree.hosts[path].node.deadline() for path in (region, PATH)]
            tree.now = max(tree.now, min(at for at in due if at is not None))
            for path in (region, PATH):
                tree.hosts[path].tick()
        if tree.collects:
            tree.rows()
        seconds += time.process_time() - began
    return seconds / 2


def begin(regions: int, edges: int, *, collects: bool) -> CollectingTree:
    tree = CollectingTree(regions, edges, collects=collects)
    tree.change()
    tree.run(WINDOW_SECONDS)
    all_report(tree, "synced", regions * edges)
    return tree


def into_centre(tree: CollectingTree) -> tuple[Traffic, Traffic]:
    """All rows change, after some did: what comes into the centre, and what would the flat way."""
    for number in range(SINGLES):
        one_reports(tree, number)
    tree.up = {"centre": Traffic(), "regions": Traffic()}
    all_report(tree, "failing", 0)
    return tree.up["centre"], tree.up["regions"]


def tell(report: Report, destinations: int, centre: Traffic, flat: Traffic) -> None:
    report.note(
        f"{destinations:,} destinations, all rows change: {centre.messages:,} messages and "
        f"{centre.size:,} bytes into the centre; the flat way {flat.messages:,} and {flat.size:,}"
    )


def main(regions: int = REGIONS, edges: int = EDGES) -> None:
    count = regions * edges
    report = Report(
        "collecting",
        f"One collector over {count:,} destinations, {regions} x {edges}, pure core (CPU seconds)",
        ("what", "without", "with"),
    )
    trees = [begin(regions, edges, collects=collects) for collects in (False, True)]
    plain, collecting = trees
    assert collecting.rows() == (count, 3.0 * count)
    singles = [[one_reports(tree, number) for tree in trees] for number in range(SINGLES)]
    one = [middle([pair[at] for pair in singles]) for at in (0, 1)]
    report.row("one changes: both tiers, window aside (us)", one[0] * 1e6, one[1] * 1e6)
    for tree in trees:
        tree.up = {"centre": Traffic(), "regions": Traffic()}
    alls = [all_report(tree, "failing", 0) for tree in trees]
    assert collecting.rows() == (count, 0.0)
    report.row("all change: until exact (s)", alls[0], alls[1])
    ups = [tree.up["centre"] for tree in trees]
    report.row("all change: messages into the centre", ups[0].messages, ups[1].messages)
    report.row("all change: bytes into the centre", ups[0].size, ups[1].size)
    said = ups[1].messages
    for share in SHARES:
        centre, flat = into_centre(begin(regions, edges // share, collects=True))
        tell(report, count // share, centre, flat)
        report.goal(f"messages at {count:,} over {count // share:,}", said / centre.messages, 1.0)
    tell(report, count, ups[1], collecting.up["regions"])
    report.goal("ratio of one changed row", one[1] / one[0], GOAL_RATIO)
    report.goal("ratio of all changing", alls[1] / alls[0], GOAL_RATIO)
    report.finish()
    assert plain.count().exact


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
