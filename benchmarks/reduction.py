"""What a relay's fold costs: per changed report and tier, in bytes up, and in memory per child."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress

from benchmarks.core_tree import FIRST, PATH, SECOND, CoreTree
from benchmarks.counts import is_synced
from benchmarks.report import Report, middle, resident_mb
from relay.core.reports.reduce import merge_all
from schemas.reports.reports import Report as WireReport
from schemas.reports.reports import Summary, decode_report
from schemas.values.identity import NodePath
from schemas.values.wire import encode

REGIONS, EDGES = 50, 2000
SINGLES = 60
PLACEMENTS = 4
MEMORY_GOAL_BYTES = 300
WINDOW_SECONDS, SETTLED_SECONDS = 0.15, 70.0


def build(regions: int, edges: int) -> tuple[CoreTree, float]:
    began = time.process_time()
    tree = CoreTree(regions, edges)
    return tree, time.process_time() - began


def settle(tree: CoreTree, arm: str) -> None:
    """Let windows end until the centre knows all, and is exact."""
    everywhere = len(tree.edges) * (len(tree.hosts) - 1)
    for _ in range(200):
        tree.run(WINDOW_SECONDS)
        count = tree.count()
        if is_synced(count, everywhere) and count.summary.arms == {arm: everywhere}:
            return
    raise AssertionError(f"the centre stays at {tree.count()}")


def all_report(tree: CoreTree, arm: str) -> tuple[float, float]:
    """All edges report once: seconds at the regions, and seconds until the centre is exact.

    To make what the edges say is their own part, and not counted.
    """
    at_regions = 0.0
    for region in [path for path in tree.hosts if path != PATH]:
        said = tree.reports(region, tree.edges, "synced", arm)
        began = time.process_time()
        tree.arrive(region, said)
        at_regions += time.process_time() - began
    began = time.process_time()
    settle(tree, arm)
    return at_regions, at_regions + time.process_time() - began


def one_reports(tree: CoreTree, number: int) -> float:
    """One edge turns failing, and back: seconds of both tiers for one of the two.

    Three regions in turn: the first look at one after a long time also sends what was due long ago.
    """
    region = NodePath((f"r{number % min(3, len(tree.hosts) - 1)}",))
    name = tree.edges[number % len(tree.edges)]
    began = time.process_time()
    for state in ("failing", "synced"):
        tree.arrive(region, tree.reports(region, [name], state, SECOND))
        while tree.count().summary.states.get("failing", 0) != (state == "failing"):
            # After all changed at once the windows are longer for a while.
            due = [tree.hosts[path].node.deadline() for path in (region, PATH)]
            tree.now = max(tree.now, min(at for at in due if at is not None))
            for path in (region, PATH):
                tree.hosts[path].tick()
    return (time.process_time() - began) / 2


def flat(tree: CoreTree) -> tuple[float, float, int]:
    """All reports at one node that folds them all: seconds to read and fold; to fold; bytes."""
    host = tree.hosts[NodePath(("r0",))]
    summary = host.node.view.summary(tree.key)
    said = WireReport(tree.key, 0, "run", 1, 1, False, 0, _one(summary.arms))  # noqa: FBT003
    data = encode(said)
    count = len(tree.edges) * (len(tree.hosts) - 1)
    began = time.process_time()
    summaries = []
    for _ in range(count):
        report = decode_report(data)
        assert isinstance(report, WireReport)
        summaries.append(report.summary)
    read = time.process_time()
    merge_all(summaries)
    return time.process_time() - began, time.process_time() - read, count * len(data)


def live_mb() -> float:
    """Resident memory, after what is free was given back."""
    gc.collect()
    with suppress(OSError, AttributeError):  # Not every C library can.
        ctypes.CDLL(None).malloc_trim(0)
    return resident_mb(os.getpid())


def _one(arms: Mapping[str, int]) -> Summary:
    return Summary({"synced": 1}, {"healthy": 1}, dict.fromkeys(arms, 1), oldest_ms=1)


def main(regions: int = REGIONS, edges: int = EDGES) -> None:
    count = regions * edges
    report = Report(
        "reduction",
        f"Reduction of {count:,} destinations, {regions} x {edges}, pure core (CPU seconds)",
        ("what", "figure", "unit"),
    )
    tree, seconds = build(regions, edges)
    report.row("making the tree, per destination", seconds / count * 1e6, "µs")
    before = live_mb()
    report.row("resident, before any placement", before, "MB")
    began = time.process_time()
    tree.change()
    tree.run(WINDOW_SECONDS)
    report.row("one delta into every edge's mailbox", time.process_time() - began, "s")
    all_report(tree, FIRST)
    for number in range(1, PLACEMENTS):
        tree.use(f"shop{number}")
        tree.change()
        tree.run(WINDOW_SECONDS)
        all_report(tree, FIRST)
    tree.use("shop")
    # What no snapshot covers yet is kept apart, and what was compared within the last minute.
    tree.run(SETTLED_SECONDS)
    tree.sign()
    tree.run(WINDOW_SECONDS)
    each = (live_mb() - before) * 1e6 / count / PLACEMENTS
    report.row(f"memory per child and placement, of {PLACEMENTS}", each, "bytes")
    up = tree.up["centre"]
    up.messages = up.size = tree.up["regions"].messages = tree.up["regions"].size = 0
    taken, total = all_report(tree, SECOND)
    report.row("all change: per report at its region", taken / count * 1e6, "µs")
    report.row("all change: until the centre is exact", total, "s")
    report.row("all change: messages into the regions", tree.up["regions"].messages, "")
    report.row("all change: bytes into the regions", tree.up["regions"].size, "bytes")
    report.row("all change: messages into the centre", up.messages, "")
    report.row("all change: bytes into the centre", up.size, "bytes")
    singles = [one_reports(tree, number) for number in range(SINGLES)]
    report.row("one changes: both tiers, window aside", middle(singles) * 1e6, "µs")
    whole, fold, size = flat(tree)
    report.row("flat way: reading and folding all at one node", whole, "s")
    report.row("flat way: per changed report (all folded again)", fold * 1e6, "µs")
    report.row("flat way: bytes into the centre", size, "bytes")
    report.goal("bytes of memory per child and placement", each, MEMORY_GOAL_BYTES)
    report.finish()


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
