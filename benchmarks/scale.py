"""One change to 1,000,000 destinations on the pure core: out, reported, reduced.

`python -m benchmarks.scale REGIONS` makes so many of the 500 regions, each of them whole: some are
multiplied, and said to be so; 500 are the whole. Centre and regions are real nodes. Two processes
make one region after another, so that a few are in memory at a time; the centre is real for all of
them, and knows in the end what all destinations have. An edge is its mail and its report.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from multiprocessing.connection import Connection, wait

from benchmarks.core_tree import FIRST
from benchmarks.counts import is_synced
from benchmarks.lone_region import WINDOW_SECONDS, Centre, Took, work
from benchmarks.report import Report, resident_mb

REGIONS, EDGES = 500, 2000
MADE = 20
PROCESSES = 2
SECONDS_GOAL, MEMORY_GOAL_MB = 300.0, 8000.0


def simulate(centre: Centre, regions: int) -> tuple[list[Took], float, float]:
    """What each region took, the centre's own seconds, and the most memory of the others (MB).

    Seconds are those of the processor, so that what else the machine does does not count.
    """
    began = time.process_time()
    told = centre.told()
    names = [f"r{number}" for number in range(regions)]
    context = multiprocessing.get_context("spawn")
    pipes: list[Connection] = []
    processes = []
    for at in range(PROCESSES):
        here, there = context.Pipe()
        process = context.Process(target=work, args=(told, names[at::PROCESSES], there))
        process.start()
        there.close()
        pipes.append(here)
        processes.append(process)
    took: list[Took] = []
    memory = 0.0
    while pipes:
        for pipe in wait(pipes):
            assert isinstance(pipe, Connection)
            kind, name, key, data = pipe.recv()
            if kind == "done":
                pipes.remove(pipe)
                continue
            if kind == "took":
                took.append(data)
                memory = max(
                    memory, sum(resident_mb(p.pid) for p in processes if p.is_alive() and p.pid)
                )
                pipe.send(([], []))
                continue
            pipe.send(centre.answer(kind, name, key, data))
    while centre.centre.node.deadline() is not None and not centre.count().exact:
        centre.run(WINDOW_SECONDS)
    everywhere = regions * EDGES
    count = centre.count()
    assert is_synced(count, everywhere), count
    assert count.summary.arms == {FIRST: everywhere}, count
    own = time.process_time() - began
    for process in processes:
        process.join()
    return took, own, memory


def main(made: int = MADE) -> None:
    factor = REGIONS / made
    report = Report(
        "scale",
        f"One change to {REGIONS * EDGES:,} destinations, {REGIONS} x {EDGES}, pure core",
        ("what", f"{made} regions", f"{REGIONS} regions", "unit"),
    )
    began = time.perf_counter()
    centre = Centre(made, EDGES)
    took, own, memory = simulate(centre, made)
    whole = time.perf_counter() - began
    making = sum(one.made for one in took)
    out = sum(one.out for one in took)
    folded = sum(one.folded for one in took)
    change = (out + folded) / PROCESSES + own
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    report.row("regions: making them", making, making * factor, "CPU s")
    report.row("regions: sessions begun, one delta to every edge", out, out * factor, "CPU s")
    report.row("regions: all reports taken and folded", folded, folded * factor, "CPU s")
    report.row("centre: delta out, reports folded, exact", own, own * factor, "CPU s")
    report.row(f"the change, on {PROCESSES} cores", change, change * factor, "s")
    report.row("the whole run, making included, by the clock", whole, whole * factor, "s")
    report.row("messages into the centre", centre.up["centre"].messages, "", "")
    report.row("resident, the processes of regions", memory, memory, "MB")
    report.row("resident, the centre", peak, peak, "MB")
    if factor > 1:
        report.note(f"{made} regions were made, each of them whole; seconds are multiplied")
    report.note(f"{PROCESSES} regions are in memory at a time; edges are their mail and reports")
    report.note("the centre holds the profiles of the regions that are made")
    report.goal("seconds for the change", change * factor, SECONDS_GOAL)
    report.goal("MB resident", memory + peak, MEMORY_GOAL_MB)
    report.finish()


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
