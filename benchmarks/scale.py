"""One change to 1,000,000 destinations on the pure core: out, reported, reduced.

`python -m benchmarks.scale 500` makes all 500 regions, which takes half an hour before anything is
measured. With fewer, each of them whole, time and memory are multiplied and said to be so.
"""

from __future__ import annotations

import gc
import os
import sys
import time

from benchmarks.reduction import WINDOW_SECONDS, all_report, build
from benchmarks.report import Report, resident_mb

REGIONS, EDGES = 500, 2000
MADE = 15
SECONDS_GOAL, MEMORY_GOAL_MB = 300.0, 8000.0


def main(made: int = MADE) -> None:
    factor = REGIONS / made
    report = Report(
        "scale",
        f"One change to {REGIONS * EDGES:,} destinations, {REGIONS} x {EDGES}, pure core",
        ("what", f"{made} regions", f"{REGIONS} regions", "unit"),
    )
    empty = resident_mb(os.getpid())
    tree, seconds = build(made, EDGES)
    report.row("making the tree", seconds, seconds * factor, "s")
    gc.collect()
    began = time.perf_counter()
    tree.change()
    tree.run(WINDOW_SECONDS)
    out = time.perf_counter() - began
    _, reduced = all_report(tree, "first")
    gc.collect()
    memory = resident_mb(os.getpid()) - empty
    report.row("one delta into every edge's mailbox", out, out * factor, "s")
    report.row("all reports taken and folded, exact", reduced, reduced * factor, "s")
    report.row("resident, Python itself aside", memory, memory * factor, "MB")
    if factor > 1:
        report.note(f"{made} regions were made, each of them whole; the rest is multiplied")
    report.note("the centre here holds no profiles of edges; a real one holds all of them")
    report.goal("seconds for the change", (out + reduced) * factor, SECONDS_GOAL)
    report.goal("MB resident", memory * factor + empty, MEMORY_GOAL_MB)
    report.finish()


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
