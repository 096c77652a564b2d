"""The collectors that every simulated placement names."""

from __future__ import annotations

from relay.shell.evaluator import CelEvaluator
from schemas.reports.collectors import (
    SCOPE_PLACEMENT,
    CombinedField,
    Expression,
    Program,
)
from schemas.values import codec

EVALUATOR = CelEvaluator()
"""One for all nodes of all worlds: it compiles each program once."""
COUNT = CombinedField("n", "COUNT")
GROUPED = Program(
    "grouped",
    group_by=(Expression("is", "has(returned.status) ? returned.status.a : 'blank'"),),
    combined=(
        COUNT,
        CombinedField("sum", "SUM", "has(returned.status) ? returned.status.n : null"),
        CombinedField("top", "TOP", "obj.n", top=2),
    ),
    limit=3,
)
SELECTED = Program(
    "selected",
    filter="inventory.name != 't1'",
    select=(Expression("who", "inventory.name"), Expression("is", "returned.status.a")),
    limit=2,
)
WHOLLY = Program("wholly", combined=(COUNT,), scope=SCOPE_PLACEMENT)
PROGRAMS = (GROUPED, SELECTED, WHOLLY)


def status_of(address: str) -> bytes:
    """What a simulated cluster says of an object that holds this content."""
    return codec.canonical({"a": address[:2], "n": sum(address.encode()) / 16})
