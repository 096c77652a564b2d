"""Evaluates collectors for one destination and object: pure, and of bounded cost."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from relay.core.collecting.cells import Sample, in_units
from relay.core.collecting.ports import Seen
from relay.core.collecting.tables import FILTER, Outcome
from relay.objects.expressions.bounds import TooCostly, largest_in
from relay.objects.expressions.cel import (
    CompiledExpression,
    EvaluationFailed,
    ExpressionValues,
)
from relay.objects.expressions.programs import Expressions
from relay.objects.expressions.sketch import bucket_of
from relay.objects.status_merging import merging
from schemas import codec
from schemas.blobs import OBJECT_MAX_BYTES
from schemas.collectors import RESULT_MAX_BYTES, CombinedField, Program
from schemas.merging import Node
from schemas.objects import ObjectKey
from schemas.ordered_values import pack_values
from schemas.refusals import CodecError

PROGRAMS_MAX = 256
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\Z")
_ZERO_TIME = datetime(1, 1, 1, tzinfo=UTC)
_SHOWN_CHARACTERS = 40
_LEFT_OUT = Outcome(kept=False)


class BoundProgram:
    """A program for one object."""

    def __init__(self, program: Program, expressions: Expressions, plain: bytes | None) -> None:
        self._program = program
        self._expressions = expressions
        compiled = expressions.all
        used = frozenset(name for each in compiled for name in each.variables)
        self.uses_inventory = "inventory" in used
        timed = {"lastReturnedUpdateTimestamp", "lastReportTime"}
        asked = {f for each in compiled for f in each.shape.fields.get("propagation", ())}
        self.uses_reachable = bool(asked - timed)
        self._used = used
        self._measured = [e.shape for e in compiled if e.shape.deep or e.shape.joins]
        self._values = ExpressionValues()
        self._largest = self._size = 0
        uses_object = "obj" in used and program.source is None
        self._is_closed = uses_object and plain is None
        if uses_object and plain is not None:
            obj = codec.unpack(plain, OBJECT_MAX_BYTES)
            self._values.put("obj", obj)
            self._largest, self._size = largest_in([obj]) if self._measured else 0, len(plain)

    def lacks_object(self, seen: Seen) -> bool:
        """Whether that can be said of no destination that is seen so, for want of the object."""
        if not self._is_closed or self._expressions.faults:
            return False
        own = self._expressions.filter
        if own is None or not {"obj", "inventory"}.isdisjoint(own.variables):
            return True
        try:
            self._put(seen)
            return self._is_kept()
        except (EvaluationFailed, TooCostly, CodecError):
            # What fails here fails with the object, too.
            return False

    def outcome(self, seen: Seen) -> Outcome:
        """What the program says of one destination."""
        if self._expressions.faults:
            failed = tuple((column, str(fault)) for column, fault in self._expressions.faults)
            return Outcome(kept=False, failed=failed)
        try:
            self._put(seen)
            kept = self._is_kept()
        except (EvaluationFailed, TooCostly, CodecError) as error:
            return Outcome(kept=False, failed=((FILTER, str(error)),))
        if not kept:
            return _LEFT_OUT
        return self._combined() if self._program.combined else self._selected()

    def _put(self, seen: Seen) -> None:
        returned: Any = {}
        if seen.status is not None and "returned" in self._used:
            said = codec.unpack(seen.status, OBJECT_MAX_BYTES)
            returned = {"status": said} if self._program.source is None else said
        largest = max(self._largest, largest_in([returned]) if self._measured else 0)
        for shape in self._measured:
            shape.check(largest, self._size + len(seen.status or b""))
        if "returned" in self._used:
            self._values.put("returned", returned)
        if "inventory" in self._used:
            self._values.put("inventory", {"name": seen.name})
        if "propagation" in self._used:
            propagation = {
                "lastReturnedUpdateTimestamp": _time(seen.returned_ms),
                "lastReportTime": _time(seen.reported_ms),
                "reachable": seen.reachable,
            }
            self._values.put("propagation", propagation)

    def _is_kept(self) -> bool:
        if self._expressions.filter is None:
            return True
        kept = self._expressions.filter.value(self._values)
        if kept is not None and not isinstance(kept, bool):
            raise EvaluationFailed(f"the filter gives {_shown(kept)}, not true or false")
        return bool(kept)

    def _selected(self) -> Outcome:
        names = [item.name for item in self._program.select]
        values, failed = self._all(names, self._expressions.selected)
        if failed:
            return Outcome(kept=False, failed=tuple(failed))
        return Outcome(kept=True, columns=b"".join(values))

    def _combined(self) -> Outcome:
        names = [item.name for item in self._program.group_by]
        groups, failed = self._all(names, self._expressions.groups)
        samples, faults = [], []
        subjects = zip(self._program.combined, self._expressions.subjects, strict=True)
        for field, subject in subjects:
            try:
                value = None if subject is None else self._bounded(subject)[0]
            except (EvaluationFailed, CodecError) as error:
                failed.append((field.name, str(error)))
                continue
            sample, fault = _sample(field, value)
            samples.append(sample)
            if fault:
                faults.append((field.name, fault))
        if failed:
            return Outcome(kept=False, failed=tuple(failed))
        return Outcome(
            kept=True, group=b"".join(groups), samples=tuple(samples), faults=tuple(faults)
        )

    def _all(
        self, names: Iterable[str], expressions: Iterable[CompiledExpression | None]
    ) -> tuple[list[bytes], list[tuple[str, str]]]:
        """The packed values of these columns, and which of them failed."""
        values, failed = [], []
        for name, expression in zip(names, expressions, strict=True):
            try:
                values.append(self._bounded(expression)[1] if expression else pack_values([None]))
            except (EvaluationFailed, CodecError) as error:
                failed.append((name, str(error)))
        return values, failed

    def _bounded(self, expression: CompiledExpression) -> tuple[Any, bytes]:
        value = expression.value(self._values)
        packed = pack_values([value])
        if len(packed) > RESULT_MAX_BYTES:
            raise EvaluationFailed(
                f"a result of {len(packed)} bytes, at most {RESULT_MAX_BYTES} are allowed"
            )
        return value, packed


class CelEvaluator:
    """Compiles each program once."""

    def __init__(self) -> None:
        self._known: dict[Program, Expressions] = {}

    def bind(self, program: Program, plain: bytes | None) -> BoundProgram:
        """A program for an object, of its canonical bytes; what is wrong becomes its outcome."""
        known = self._known.get(program)
        if known is None:
            if len(self._known) >= PROGRAMS_MAX:
                self._known.clear()
            known = self._known[program] = Expressions(program)
        return BoundProgram(program, known, plain)

    def merging(self, key: ObjectKey, status: bytes) -> Node:
        """How the fields of an object's status are merged."""
        return merging(key, codec.unpack(status, OBJECT_MAX_BYTES))


def _sample(field: CombinedField, value: Any) -> tuple[Sample, str]:
    """What a value gives for a column; and what is wrong with it, which makes a 0 of it."""
    if value is None or field.type == "COUNT":
        return Sample(), ""
    if field.type == "DISTINCT":
        return Sample(value=value), ""
    number, fault = _number(value)
    if field.type == "QUANTILE":
        return Sample(bucket=bucket_of(float(number))), fault
    units = number << 1074 if isinstance(number, int) else in_units(number)
    return Sample(units), fault


def _number(value: Any) -> tuple[int | float, str]:
    number: int | float | None = None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str) and _NUMBER.match(value):
        number = float(value)
    if number is None:
        return 0, f"{_shown(value)} is not a number"
    if not math.isfinite(number):
        return 0, f"{_shown(value)} is not a finite number"
    return number, ""


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC) if ms else _ZERO_TIME
