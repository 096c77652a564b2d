"""What a row of a collector costs at an edge, beside the bare library, and in memory.

And how long the loop of an edge is held by a collector at its allowed limit over many objects.

The bare library has the same expressions compiled, and one context in which the object is kept: for
each row it is given the status, and evaluates. What is measured against it opens the status from
its bytes, checks what the expressions may cost, and packs the row.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from bisect import bisect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.footprint import edge_process
from benchmarks.report import Report, middle, resident_mb
from leafcast.node.freed_memory import search_rarely
from relay.core.collectors.ports import CopyView
from relay.core.effects import Effect
from relay.core.events import Event
from relay.core.instant import Instant
from relay.objects.expressions.cel import CompiledExpression, ExpressionValues
from relay.shell.driver import Driver
from relay.shell.evaluator import CelEvaluator
from schemas.reports.collectors import CombinedField, Expression, Program
from schemas.values import codec
from schemas.values.identity import MailKey, NodePath
from tests.memory_tree import memory_tree, placement

ROWS, ROUNDS = 2_000, 9
RATIO, MEMORY_MB = 2.0, 10.0
SETTLE_SECONDS = 10.0
OBJECTS, SLICE_MS, LIMIT_SECONDS = 1_000, 50.0, 900.0
FILTER, GROUP = "has(returned.status)", "obj.metadata.labels.version"
SUBJECT = "returned.status.readyReplicas"
READY = Program(
    "ready",
    filter=FILTER,
    group_by=(Expression("v", GROUP),),
    combined=(CombinedField("n", "COUNT"), CombinedField("sum", "SUM", SUBJECT)),
)
WHERE = Program(
    "where",
    filter="obj.spec.replicas != returned.status.readyReplicas",
    select=(Expression("edge", "inventory.name"), Expression("ready", SUBJECT)),
)


def web() -> dict[str, Any]:
    """A Deployment of about 2 KB."""
    env = [{"name": f"SETTING_{at}", "value": f"the value of setting {at}"} for at in range(20)]
    containers = [{"name": name, "image": f"{name}:1", "env": env} for name in ("web", "log")]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "labels": {"version": "v2"}},
        "spec": {
            "replicas": 3,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template,
        },
    }


def status(ready: int) -> dict[str, Any]:
    conditions = [
        {"type": type_, "status": "True", "reason": "AsItIs", "message": "all is as it should be"}
        for type_ in ("Available", "Progressing")
    ]
    return {"replicas": 3, "readyReplicas": ready, "conditions": conditions}


def bare(program: Program) -> Callable[[int], object]:
    """The library alone."""
    texts = [program.filter, *(item.definition for item in (*program.group_by, *program.select))]
    texts += [item.subject for item in program.combined if item.subject]
    compiled = [CompiledExpression(text)._program for text in texts]
    values = ExpressionValues()
    values.put("obj", web())
    context, inventory = values.context, {"name": "r1-s1"}
    said = [{"status": status(at)} for at in range(3)]

    def row(at: int) -> object:
        context.add_variable("returned", said[at % 3])
        context.add_variable("inventory", inventory)
        return [each.execute(context) for each in compiled]

    return row


def ours(program: Program) -> Callable[[int], object]:
    """As an edge does it."""
    bound = CelEvaluator().bind(program, codec.canonical(web()))
    said = [CopyView("r1-s1", codec.canonical(status(at))) for at in range(3)]
    return lambda at: bound.outcome(said[at % 3])


def microseconds(row: Callable[[int], object]) -> float:
    """Processor time of one of many."""
    began = time.process_time()
    for at in range(ROWS):
        row(at)
    return (time.process_time() - began) / ROWS * 1e6


async def memory(folder: Path) -> tuple[float, float]:
    """MB of an edge's process without a collector, and with one in force."""
    collector = {
        "apiVersion": "control.kubestellar.io/v1alpha1",
        "kind": "StatusCollector",
        "metadata": {"name": "ready"},
        "spec": {
            "filter": FILTER,
            "groupBy": [{"name": "v", "def": GROUP}],
            "combinedFields": [{"name": "n", "type": "COUNT"}],
        },
    }
    async with edge_process(folder) as (tree, process, _):
        await tree.apply(web(), placement("shop", "shop"))
        await tree.until("shop", lambda c: c.exact and c.summary.health == {"healthy": 1})
        await asyncio.sleep(SETTLE_SECONDS)
        before = resident_mb(process.pid)
        placed = placement("shop", "shop")
        placed["spec"]["downsync"][0]["statusCollectors"] = ["ready"]
        await tree.apply(collector, placed)
        key = await tree.placement_key("shop")

        def collected(node: Any) -> bool:
            return any(result.rows.rows for result in node.collected(key))

        async with asyncio.timeout(60):
            await tree.centre.until(collected)
        await asyncio.sleep(SETTLE_SECONDS)
        return before, resident_mb(process.pid)


def dearest(numbers: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A collector of four loops, and Deployments that have so many items to loop over."""
    loop = "size(obj.spec.template.spec.containers[0].args.map(a, size(a)))"
    columns = [{"name": f"c{at}", "def": loop} for at in range(4)]
    collector = {
        "apiVersion": "control.kubestellar.io/v1alpha1",
        "kind": "StatusCollector",
        "metadata": {"name": "dearest"},
        "spec": {"filter": "has(returned.status)", "limit": 1000, "select": columns},
    }
    container = {"name": "web", "image": "web:1", "args": ["a"] * numbers}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    kind = {"apiVersion": "apps/v1", "kind": "Deployment"}
    names = [{"name": f"d{at:03}", "namespace": "shop"} for at in range(OBJECTS)]
    return collector, [{**kind, "metadata": name, "spec": spec} for name in names]


def admitted() -> int:
    """The most items that the collector is let loop over."""

    def is_let(numbers: int) -> bool:
        collector, objects = dearest(numbers)
        columns = [Expression(it["name"], it["def"]) for it in collector["spec"]["select"]]
        program = Program("p", filter=collector["spec"]["filter"], select=tuple(columns))
        bound = CelEvaluator().bind(program, codec.canonical(objects[0]))
        seen = CopyView("edge", codec.canonical(status(1)))
        return not bound.outcome(seen).failed

    most = bisect(range(2, 5000), 0, key=lambda numbers: 0 if is_let(numbers) else 1)
    # A status of a live object is a little larger.
    return most * 95 // 100


class Slices:
    """The processor time of a node's loop, by what it does at a time."""

    def __init__(self, driver: Driver) -> None:
        self.seconds: list[float] = []
        node = driver._machine
        assert node is not None
        self._handle = node.handle
        node.handle = self._timed  # type: ignore[method-assign]

    def _timed(self, events: Iterable[Event], now: Instant) -> tuple[Effect, ...]:
        began = time.thread_time()
        effects = self._handle(events, now)
        self.seconds.append(time.thread_time() - began)
        return effects


async def at_the_limit(folder: Path) -> tuple[float, float, float]:
    """Of an edge with OBJECTS rows: processor seconds, its longest slice, MB more in all."""
    collector, objects = dearest(admitted())
    edge = NodePath(("edge",))
    async with memory_tree(folder, ["/edge"]) as tree:
        await tree.apply(*objects, placement("shop", "shop"))
        async with asyncio.timeout(LIMIT_SECONDS):
            key = await tree.placement_key("shop")
            await tree.centre.until(lambda n: n.count(key).summary.health == {"healthy": 1})
            # As a daemon does once it has started.
            search_rarely()
            before, slices = resident_mb(os.getpid()), Slices(tree.drivers[edge])
            placed = placement("shop", "shop")
            placed["spec"]["downsync"][0]["statusCollectors"] = ["dearest"]
            await tree.apply(collector, placed)
            await tree.centre.until(lambda node: told(node, key) == OBJECTS)
        return sum(slices.seconds), max(slices.seconds), resident_mb(os.getpid()) - before


def told(node: Any, key: MailKey) -> int:
    """How many objects have their row."""
    found = node.collected(key)
    assert not any(result.rows.errors for result in found), found[0].rows.errors
    return sum(len(result.rows.rows) for result in found)


async def main() -> None:
    report = Report(
        "rows",
        "A row of a collector at an edge, by processor time, and what a collector takes there",
        ("row", "bare library (us)", "at an edge (us)", "ratio"),
    )
    worst = 0.0
    for program in (READY, WHERE):
        rows = (bare(program), ours(program))
        taken = [[microseconds(row) for row in rows] for _ in range(ROUNDS)]
        library, edge = (middle([each[at] for each in taken]) for at in (0, 1))
        ratio = middle([edge / library for library, edge in taken])
        worst = max(worst, ratio)
        report.row(program.name, library, edge, ratio)
    report.goal("a row at an edge over the bare library", worst, RATIO)
    with tempfile.TemporaryDirectory() as folder:
        before, after = await memory(Path(folder))
    report.note(f"an edge's process: {before:.1f} MB, with a collector in force {after:.1f} MB")
    report.goal("MB more of an edge's process", after - before, MEMORY_MB)
    with tempfile.TemporaryDirectory() as folder:
        seconds, longest, more = await at_the_limit(Path(folder))
    report.note(
        f"a collector at its allowed limit over {OBJECTS:,} objects: {seconds:.1f} s of the edge's "
        f"loop; {more:.1f} MB more in a process of centre and edge"
    )
    report.goal("ms of the longest slice of the edge's loop", longest * 1000, SLICE_MS)
    report.finish()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
