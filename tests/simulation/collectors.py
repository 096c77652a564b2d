"""The collectors that every simulated placement names."""

from __future__ import annotations

from collections.abc import Mapping

from relay.shell.evaluator import CelEvaluator
from schemas.content.blobs import StoredBlob
from schemas.objects.objects import ObjectKey
from schemas.reports.collectors import (
    SCOPE_PLACEMENT,
    CombinedField,
    Expression,
    Program,
    program_set,
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


def programs_over(numbers: Mapping[ObjectKey, int]) -> StoredBlob | None:
    """What is collected of a placement of objects that say these numbers; None of none."""
    plains = {key: codec.canonical({"n": n}) for key, n in numbers.items()}
    blanks = {
        key: {it: EVALUATOR.blanks(it, plain) for it in PROGRAMS} for key, plain in plains.items()
    }
    return program_set(dict.fromkeys(numbers, PROGRAMS), blanks) if numbers else None
