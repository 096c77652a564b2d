"""What a row of a collector costs at an edge, beside the bare library, and in memory.

The bare library has the same expressions compiled, and one context in which the object is kept: for
each row it is given the status, and evaluates. What is measured against it opens the status from
its bytes, checks what the expressions may cost, and packs the row.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.footprint import edge_process
from benchmarks.report import Report, middle, resident_mb
from relay.core.collectors.ports import CopyView
from relay.evaluator import CelEvaluator
from relay.objects.expressions.cel import CompiledExpression, ExpressionValues
from schemas import codec
from schemas.collectors import CombinedField, Expression, Program
from tests.memory_tree import placement

ROWS, ROUNDS = 2_000, 9
RATIO, MEMORY_MB = 2.0, 10.0
SETTLE_SECONDS = 10.0
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
    report.finish()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
