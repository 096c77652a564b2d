"""What a step of a rollout costs the centre, for a thousand destinations and for a million.

The centre's node is real, and holds all signed profiles. Its regions are only as real as what they
say: one report for each step, with the counts of their waves.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterable

from benchmarks.core_tree import CoreTree, Host
from benchmarks.reduction import live_mb
from benchmarks.report import Report, middle
from relay.core import effects as fx
from relay.core import events as ev
from relay.core.reports.digest import digest_bytes, report_term, run_number
from schemas.content import blobs
from schemas.content.blobs import Reference
from schemas.records.records import BUCKETS, DeltaBody, Gate
from schemas.reports.link import Hello, Progress
from schemas.reports.reports import Report as WireReport
from schemas.reports.reports import Summary
from schemas.values.identity import ContentHash, NodePath
from schemas.values.subjects import PROGRESS_KEY
from schemas.values.wire import encode

REGIONS = 50
SIZES = (1_000, 1_000_000)
STEPS, COUNTS = 25, 20
STEP_GOAL, MEMORY_GOAL_MB = 1.2, 5.0
OLD, NEW = (Reference(blobs.MANIFEST, ContentHash(letter * 64), 5) for letter in "12")
RUN, HOME = "run of a region", "home"
WINDOW_SECONDS, SILENT_SECONDS = 0.2, 100.0


class Centre(CoreTree):
    """A centre with `each` destinations below each of its regions."""

    def __init__(self, each: int) -> None:
        self.each = each
        # Deltas written to regions.
        self.written = 0
        self._reported = 0
        self._digest = 0
        super().__init__(REGIONS, each)

    def add_regions(self, paths: Iterable[NodePath]) -> None:
        """The regions come into session, having read all their mail."""
        self.regions = [path.name for path in paths]
        self.greet(self.regions)
        for name in self.regions:
            self._progress_of(name)

    def greet(self, names: Iterable[str]) -> None:
        """The regions say hello."""
        centre = self.centre
        for name in names:
            hello = Hello(RUN, HOME, centre.run, centre.ends[name], b"", self.reached, levels=1)
            centre.tell(ev.HelloArrived(name, encode(hello)))

    def step(self, gates: tuple[Gate, ...], steady: int) -> None:
        """Issue the delta of a step."""
        arms = tuple(dict.fromkeys(gate.arm for gate in gates if gate.arm is not None))
        self.issue_delta(DeltaBody(arms, gates), steady=steady)

    def answer(self, below: int) -> None:
        """Each region says that its part of the step is healthy."""
        taken = self.each * below // BUCKETS
        cells = {"2.0/synced/healthy": taken, "1.0/synced/healthy": self.each - taken}
        arms = {str(NEW.address): taken, str(OLD.address): self.each - taken}
        summary = Summary({"synced": self.each}, {"healthy": self.each}, arms, cells=cells)
        former, self._reported = self._reported, self._reported + 1
        generation, run = self.generations[self.key], run_number(RUN)
        said = WireReport(self.key, 0, RUN, self._reported, generation, False, 0, summary)  # noqa: FBT003
        self._digest += report_term(self.key, run, self._reported)
        self._digest -= report_term(self.key, run, former) if former else 0
        for name in self.regions:
            self.centre.tell(ev.ReportArrived(name, str(self.key), encode(said)))
            self._progress_of(name)
        self.run(WINDOW_SECONDS)

    def _progress_of(self, name: str) -> None:
        through = self.centre.ends[name]
        said = Progress(RUN, self.centre.run, through, digest_bytes(self._digest))
        self.centre.tell(ev.ReportArrived(name, PROGRESS_KEY, encode(said)))

    def _perform(self, host: Host, effect: fx.Effect) -> None:
        self.written += isinstance(effect, fx.WriteMail) and effect.key == self.key
        super()._perform(host, effect)


def one_step(tree: Centre, number: int, steady: int) -> tuple[float, float]:
    """A step with what the regions answer; the count that the next is decided by: CPU seconds."""
    below = 1 + number * BUCKETS // (STEPS + 1)
    gates = (Gate(NEW, below=below, salt="salt", name="2.0"), Gate(OLD, name="1.0"))
    began = time.process_time()
    tree.step(gates, steady)
    tree.answer(below)
    answered = time.process_time()
    for _ in range(COUNTS - 1):
        tree.count()
    count = tree.count()
    counted = time.process_time()
    assert count.exact, count
    assert sum(count.summary.cells.values()) == tree.each * REGIONS, count
    return answered - began, (counted - answered) / COUNTS


def silence(tree: Centre) -> float:
    """A region falls silent: its waves are counted by the signed profiles; CPU seconds."""
    silent, *others = tree.regions
    tree.now += SILENT_SECONDS
    tree.greet(others)
    began = time.process_time()
    tree.run(WINDOW_SECONDS)
    cells = tree.count().summary.cells
    seconds = time.process_time() - began
    away = sum(count for each, count in cells.items() if "/unreachable/" in each)
    assert away == tree.each, (silent, cells)
    return seconds


def begun(destinations: int) -> tuple[Centre, int]:
    """A centre with a rollout under way, and the generation with which that began."""
    tree = Centre(destinations // REGIONS)
    tree.step((Gate(OLD),), 0)
    tree.answer(0)
    steady = tree.generations[tree.key]
    one_step(tree, 0, steady)
    tree.written = 0
    return tree, steady


def main(*sizes: int) -> None:
    """The sizes take turns: what else the machine does then slows all alike."""
    report = Report(
        "rollout",
        f"A step of a rollout at the centre's core, {REGIONS} regions (CPU seconds)",
        ("destinations: what", "figure", "unit"),
    )
    sizes = sizes or SIZES
    trees = [begun(destinations) for destinations in sizes]
    taken: list[list[tuple[float, float]]] = [[] for _ in trees]
    before = live_mb()
    gc.disable()
    for number in range(1, STEPS + 1):
        for at, (tree, steady) in enumerate(trees):
            taken[at].append(one_step(tree, number, steady))
    gc.enable()
    grown = live_mb() - before
    for destinations, (tree, _), pairs in zip(sizes, trees, taken, strict=True):
        name, written = f"{destinations:,}", tree.written / STEPS / REGIONS
        steps, counts = ([pair[at] for pair in pairs] for at in (0, 1))
        report.row(f"{name}: one step out, and all regions' answers in", middle(steps) * 1e3, "ms")
        report.row(f"{name}: the count that the next is decided by", middle(counts) * 1e3, "ms")
        report.row(f"{name}: a region is silent, counted by profiles", silence(tree) * 1e3, "ms")
        report.goal(f"{name}: deltas written, by step and region", written, 1.0)
    report.goal(f"MB of resident memory more by {STEPS} steps of all", grown, MEMORY_GOAL_MB)
    # The least of each, as others on the machine only add to it.
    least = [[min(pair[at] for pair in pairs) for pairs in (taken[0], taken[-1])] for at in (0, 1)]
    for what, (few, many) in zip(("a step", "a count"), least, strict=True):
        report.goal(f"{what} at the most to one at the least", many / few, STEP_GOAL)
    report.finish()


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
