"""The status of an object at many destinations as one: what `wantMultiWECReportedState` asks for.

An edge says of each field how it is merged, so a relay needs to know no kinds. One copy alone keeps
its whole status.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from schemas.reports.collectors import TABLE_MAX_BYTES
from schemas.reports.reports import COUNT_MAX
from schemas.values import codec
from schemas.values.merging import ALL_TRUE, CONDITIONS, DIFFER, FIELDS, LEAST, MOST, MergeNode
from schemas.values.refusals import CodecError, RecordRefused

DEPTH_MAX = 32
_UNTELLABLE: MergeNode = (DIFFER,)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Of `count` copies that reported: the `status` of the only one, and their merge."""

    count: int = 0
    status: bytes | None = None
    merged: MergeNode = (FIELDS, {})


EMPTY = Aggregate()


class AggregateAlgebra:
    """The merge of aggregates: associative, commutative, with EMPTY as identity."""

    @property
    def empty(self) -> Aggregate:
        return EMPTY

    def merge(self, aggregates: Sequence[Aggregate]) -> Aggregate:
        """The aggregate of disjoint sets of copies."""
        there = [item for item in aggregates if item.count]
        if len(there) <= 1:
            return there[0] if there else EMPTY
        count = min(sum(item.count for item in there), COUNT_MAX)
        return Aggregate(count, None, reduce(_merge, (item.merged for item in there)))

    def write(self, aggregate: Aggregate, room: int = TABLE_MAX_BYTES) -> bytes:
        data = self._said(aggregate)
        if len(data) > room:
            data = self._said(Aggregate(aggregate.count, None, _UNTELLABLE))
        return data

    def read(self, data: bytes) -> Aggregate:
        """What such bytes say; raises RecordRefused, whatever they are."""
        try:
            return _read(codec.unpack(data, TABLE_MAX_BYTES))
        except (CodecError, TypeError, ValueError) as error:
            raise RecordRefused(f"aggregate: {error}") from error

    def _said(self, aggregate: Aggregate) -> bytes:
        merged = codec.canonical(aggregate.merged)
        return codec.pack([aggregate.count, aggregate.status, merged])


def _read(said: Any) -> Aggregate:
    match said:
        case (int(count), None | bytes() as status, bytes(merged)) if 0 <= count <= COUNT_MAX and (
            status is None or count == 1
        ):
            node = codec.unpack(merged, TABLE_MAX_BYTES)
        case _:
            raise CodecError("", "no count, status and merge")
    _check(node, 0)
    return Aggregate(count, status, node)


def _merge(first: MergeNode, second: MergeNode) -> MergeNode:
    if first[0] != second[0] or first[0] == DIFFER:
        return _UNTELLABLE
    match first[0]:
        case 0:
            return (LEAST, min(first[1], second[1]))
        case 1:
            return (MOST, max(first[1], second[1]))
        case 2:
            return (ALL_TRUE, first[1] and second[1])
        case 3:
            same = codec.canonical(first[1]) == codec.canonical(second[1])
            return first if same else _UNTELLABLE
        case 4:
            return (FIELDS, _both(first[1], second[1], _merge))
        case 5:
            return (CONDITIONS, _both(first[1], second[1], _merge_condition))
        case _:
            return min(first, second)


def _both(first: Mapping[str, Any], second: Mapping[str, Any], merge: Any) -> dict[str, Any]:
    merged = dict(first)
    for key, value in second.items():
        merged[key] = merge(merged[key], value) if key in merged else value
    return merged


def _merge_condition(first: MergeNode, second: MergeNode) -> MergeNode:
    """How many say each status; and of the latest transition (time, reason, message) the last."""
    counts = tuple(min(a + b, COUNT_MAX) for a, b in zip(first[:3], second[:3], strict=True))
    return (*counts, max(tuple(first[3]), tuple(second[3])))


def _check(node: Any, depth: int) -> None:
    """Refuse what could not be merged; raises CodecError."""
    if depth > DEPTH_MAX or not isinstance(node, tuple) or not node:
        raise CodecError("", "no way to merge")
    match node:
        case (0 | 1, int() | float() as number) if not isinstance(number, bool):
            codec.canonical(number)
        case (2, bool()) | (6, str()) | (7,):
            pass
        case (3, value):
            codec.canonical(value)
        case (4, dict(fields)):
            for inner in fields.values():
                _check(inner, depth + 1)
        case (5, dict(conditions)):
            for condition in conditions.values():
                _check_condition(condition)
        case _:
            raise CodecError("", "no such way to merge")


def _check_condition(condition: Any) -> None:
    match condition:
        case (int(), int(), int(), (str(), str(), str())) if all(
            0 <= count <= COUNT_MAX for count in condition[:3]
        ):
            pass
        case _:
            raise CodecError("", "no condition")
