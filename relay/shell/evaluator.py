"""Evaluates collectors for one destination and object: pure, and of bounded cost.

The centre evaluates the blank rows of what it seals, as relays have no object to look at.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from relay.core.collectors.cells import CellSample, in_units
from relay.core.collectors.ports import CopyView, ProgramTraits, Sent
from relay.core.collectors.tables import FILTER, Outcome
from relay.objects.expressions.bounds import (
    COMPILED_STEPS,
    STEPS_MAX,
    TooCostly,
    check_all,
    extent_of,
    narrowed,
    steps_of,
    weight_of,
)
from relay.objects.expressions.cel import CompiledExpression, EvaluationFailed, ExpressionValues
from relay.objects.expressions.patterns import MATCH_STEPS_OF_STEP
from relay.objects.expressions.programs import Expressions
from relay.objects.expressions.sketch import bucket_of
from relay.objects.status_merging import counts_without_status, merging_of_copy
from schemas.content.blobs import OBJECT_MAX_BYTES
from schemas.objects.objects import ObjectKey
from schemas.objects.secret_values import without_secret_values
from schemas.reports.collectors import RESULT_MAX_BYTES, Blanks, BlankValue, CombinedField, Program
from schemas.values import codec
from schemas.values.merging import MergeNode
from schemas.values.ordered_values import pack_values, unpack_values
from schemas.values.refusals import CodecError

PROGRAMS_MAX = 256
OUTCOMES_MAX, OUTCOME_OF_BYTES_MAX = 64, 1024
_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\Z")
_NO_STATUS = codec.canonical({})
_ZERO_TIME = datetime(1, 1, 1, tzinfo=UTC)
_SHOWN_CHARACTERS = 40
_LEFT_OUT = Outcome(kept=False)
_FILTER = 0
"""The place of a filter among all expressions."""
_KEPT = pack_values([True])
_ALONE = {"returned"}
EVALUATION_STEPS, EXPRESSION_STEPS = 100, 15
BOUND_BYTES, BYTES_HELD = 8192, 4
"""What a program that is ready for an object holds: by itself, and for each byte of that."""
READ_BYTES_OF_STEP = 16
"""What it takes beside the expressions' own steps: for each outcome, column and value opened."""
SMALL_BYTES, SMALL_VALUE_BYTES = 1024, 8
"""In so little it is not counted how many values there are: one for so many bytes."""


class Compiled(NamedTuple):
    """A program's expressions, and what they last gave for what was returned, if only for that."""

    expressions: Expressions
    outcomes: dict[bytes, Outcome]


class BoundProgram:
    """A program for one object."""

    def __init__(self, program: Program, known: Compiled, sent: Sent) -> None:
        self._program = program
        self._expressions = expressions = known.expressions
        self._outcomes = known.outcomes
        compiled = expressions.all
        used = frozenset(name for each in compiled for name in each.variables)
        timed = {"lastReturnedUpdateTimestamp", "lastReportTime"}
        self._paths = {
            name: {path for each in compiled for path in each.shape.paths.get(name, ())}
            for name in used
        }
        asked = {path[0] if path else "" for path in self._paths.get("propagation", ())}
        self.traits = ProgramTraits("inventory" in used, bool(asked - timed), "propagation" in used)
        self._used = used
        self._shapes = [each.shape for each in compiled]
        self._loops = any(shape.deep or shape.joins for shape in self._shapes)
        self._values = ExpressionValues()
        self._largest = self._size = 0
        # Items and bytes that were not too much, and the steps that they take at most.
        self._admitted, self._steps = (-1, -1), 0
        self.spent = EVALUATION_STEPS
        self._reachable = True
        self._closed = set[int]()
        self._told = dict[tuple[int, bool], BlankValue]()
        if not isinstance(sent, bytes):
            self._told = {(blank.place, blank.reachable): blank for blank in sent}
            listed = enumerate(expressions.listed)
            self._closed = {at for at, each in listed if each and "obj" in each.variables}
        elif "obj" in used and program.source is None:
            obj = codec.unpack(sent, OBJECT_MAX_BYTES)
            obj = obj if program.reads_secrets else without_secret_values(obj)
            # To hold all of it takes much, and expressions mostly name little.
            self._values.put("obj", narrowed(obj, self._paths.get("obj", ())))
            self._largest, self._size = self._extent(obj, len(sent))
            self.spent += len(sent) // READ_BYTES_OF_STEP

    @property
    def weight(self) -> int:
        """About how many bytes it holds, if expressions look at all of the object."""
        return BOUND_BYTES + BYTES_HELD * self._size

    def lacks_object(self, seen: CopyView) -> bool:
        """Whether that can be said of no destination that is seen so, for want of the object."""
        told_as = seen.reachable or not self.traits.uses_reachable
        missing = {at for at in self._closed if (at, told_as) not in self._told}
        self.spent = EVALUATION_STEPS
        if not missing or self._expressions.faults:
            return False
        own = self._expressions.filter
        depends = own is None or not {"obj", "inventory"}.isdisjoint(own.variables)
        if depends and (_FILTER, told_as) not in self._told:
            return True
        try:
            self._put(seen, self._returned(seen))
            self.spent += self._steps
            return self._is_kept()
        except (EvaluationFailed, TooCostly, CodecError):
            # What fails here fails with the object, too.
            return False

    def blank_values(self, *, reachable: bool) -> Iterator[BlankValue]:
        """What the expressions that look at the object give for any blank row.

        If the filter rejects the row, only the filter's value is given.
        """
        self.spent = EVALUATION_STEPS
        try:
            seen = CopyView("", reachable=reachable)
            self._put(seen, self._returned(seen))
            self.spent += self._steps
        except (TooCostly, CodecError) as error:
            yield BlankValue(_FILTER, reachable, failed=True, value=str(error).encode())
            return
        matcher = self._values.matcher
        for place, each in enumerate(self._expressions.listed):
            if each is None or "inventory" in each.variables:
                continue
            taken = matcher.taken
            try:
                failed, value = False, self._packed(place, each)
            except (EvaluationFailed, CodecError) as error:
                failed, value = True, str(error).encode(errors="replace")
            self.spent += (matcher.taken - taken) // MATCH_STEPS_OF_STEP
            if "obj" in each.variables:
                yield BlankValue(place, reachable, failed, value)
            if place == _FILTER and value != _KEPT:
                return

    def outcome(self, seen: CopyView) -> Outcome:
        """What the program says of one destination."""
        self.spent = EVALUATION_STEPS
        if self._expressions.faults:
            failed = tuple((column, str(fault)) for column, fault in self._expressions.faults)
            return Outcome(kept=False, failed=failed)
        try:
            returned = self._returned(seen)
        except (TooCostly, CodecError) as error:
            return Outcome(kept=False, failed=((FILTER, str(error)),))
        if not self._used <= _ALONE:
            return self._evaluated(seen, returned)
        # Of many objects the fields that are named say the same.
        said = codec.pack(returned)
        known = self._outcomes.get(said)
        if known is None:
            known = self._evaluated(seen, returned)
            if len(self._outcomes) >= OUTCOMES_MAX:
                self._outcomes.clear()
            if len(said) <= OUTCOME_OF_BYTES_MAX:
                self._outcomes[said] = known
        return known

    def _evaluated(self, seen: CopyView, returned: object) -> Outcome:
        outcome = self._outcome_of(seen, returned)
        self.spent += self._steps + self._values.matcher.taken // MATCH_STEPS_OF_STEP
        return outcome

    def _outcome_of(self, seen: CopyView, returned: object) -> Outcome:
        try:
            self._put(seen, returned)
            kept = self._is_kept()
        except (EvaluationFailed, CodecError) as error:
            return Outcome(kept=False, failed=((FILTER, str(error)),))
        if not kept:
            return _LEFT_OUT
        return self._combined() if self._program.combined else self._selected()

    def _returned(self, seen: CopyView) -> object:
        """What expressions need of what was returned; raises TooCostly and CodecError."""
        returned: Any = {}
        if seen.status is not None and "returned" in self._used:
            said = codec.unpack(seen.status, OBJECT_MAX_BYTES)
            if self._program.source is None:
                returned = {"status": said}
            else:
                returned = said if self._program.reads_secrets else without_secret_values(said)
        size = len(seen.status or b"")
        self.spent += size // READ_BYTES_OF_STEP
        largest, weight = self._extent(returned, size)
        self._admit(max(self._largest, largest), self._size + weight)
        return narrowed(returned, self._paths.get("returned", ()))

    def _extent(self, value: object, size: int) -> tuple[int, int]:
        """How many items a list or map in it has at most, and what all of it weighs."""
        if self._loops or size > SMALL_BYTES:
            largest, count = extent_of([value])
        else:
            largest, count = 0, size // SMALL_VALUE_BYTES
        return largest, weight_of(size, count)

    def _admit(self, largest: int, size: int) -> None:
        """Refuse what may cost too much, and is more than was admitted; raises TooCostly."""
        items, bytes_in_all = self._admitted
        if largest > items or size > bytes_in_all:
            check_all(self._shapes, largest, size)
            self._admitted = (largest, size)
            self._steps = steps_of(self._shapes, largest, size)
            self._steps += EXPRESSION_STEPS * len(self._shapes)

    def _put(self, seen: CopyView, returned: object) -> None:
        self._reachable = seen.reachable
        self._values.begin(self._steps / STEPS_MAX)
        if "returned" in self._used:
            # To convert a whole status would take longer than all else.
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
        kept = self._value(_FILTER, self._expressions.filter)
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
        first = 1 + len(names)
        subjects = zip(self._program.combined, self._expressions.subjects, strict=True)
        for place, (field, subject) in enumerate(subjects, first):
            try:
                value = None if subject is None else self._bounded(place, subject)[0]
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
        """The packed values of columns, the first ones after the filter; which of them failed."""
        values, failed = [], []
        for place, (name, expression) in enumerate(zip(names, expressions, strict=True), 1):
            try:
                packed = self._bounded(place, expression)[1] if expression else pack_values([None])
                values.append(packed)
            except (EvaluationFailed, CodecError) as error:
                failed.append((name, str(error)))
        return values, failed

    def _packed(self, place: int, expression: CompiledExpression) -> bytes:
        if place == _FILTER:
            return pack_values([self._is_kept()])
        return self._bounded(place, expression)[1]

    def _value(self, place: int, expression: CompiledExpression | None) -> Any:
        """What an expression gives, or gave where the object is open; without a filter, true."""
        told = self._told.get((place, self._reachable or not self.traits.uses_reachable))
        if told is None:
            return True if expression is None else expression.value(self._values)
        if told.failed:
            raise EvaluationFailed(told.value.decode())
        (value,) = unpack_values(told.value)
        return value

    def _bounded(self, place: int, expression: CompiledExpression) -> tuple[Any, bytes]:
        value = self._value(place, expression)
        packed = pack_values([value])
        if len(packed) > RESULT_MAX_BYTES:
            raise EvaluationFailed(
                f"a result of {len(packed)} bytes, at most {RESULT_MAX_BYTES} are allowed"
            )
        return value, packed


class CelEvaluator:
    """Compiles each program once."""

    def __init__(self) -> None:
        self._known: dict[Program, Compiled] = {}

    def bind(self, program: Program, sent: Sent) -> BoundProgram:
        """A program for an object; what is wrong becomes its outcome."""
        known, compiled = self._known.get(program), 0
        if known is None:
            if len(self._known) >= PROGRAMS_MAX:
                self._known.clear()
            known = self._known[program] = Compiled(Expressions(program), {})
            compiled = COMPILED_STEPS * sum(each.shape.tokens for each in known.expressions.all)
        bound = BoundProgram(program, known, sent)
        bound.spent += compiled
        return bound

    def blanks(self, program: Program, plain: bytes) -> Blanks:
        """What those need for blank rows who cannot open the object."""
        return self.blanks_and_steps(program, plain)[0]

    def blanks_and_steps(self, program: Program, plain: bytes) -> tuple[Blanks, int]:
        """The same, and how many steps it takes at most to say it: the same whenever it is said."""
        closed = self.bind(program, ())
        cases = (True, False) if closed.traits.uses_reachable else (True,)
        steps, lacks = EVALUATION_STEPS, False
        for case in cases:
            lacks |= closed.lacks_object(CopyView("", reachable=case))
            steps += closed.spent
        if not lacks:
            return (), steps
        bound = self.bind(program, plain)
        steps += bound.spent
        said = list[BlankValue]()
        for case in cases:
            said += bound.blank_values(reachable=case)
            steps += bound.spent
        return tuple(said), steps

    def merging(
        self, key: ObjectKey, status: bytes | None, content: bytes = b"", generation: int = 0
    ) -> tuple[bytes, MergeNode] | None:
        """The status of a copy, and how it is merged with others; None if that copy counts not."""
        if status is None and not counts_without_status(key):
            return None
        said = _NO_STATUS if status is None else status
        value = codec.unpack(said, OBJECT_MAX_BYTES)
        return said, merging_of_copy(key, value, content, generation)


def _sample(field: CombinedField, value: Any) -> tuple[CellSample, str]:
    """What a value gives for a column; and what is wrong with it, which makes a 0 of it."""
    if value is None or field.type == "COUNT":
        return CellSample(), ""
    if field.type == "DISTINCT":
        return CellSample(value=value), ""
    number, fault = _number(value)
    if field.type == "QUANTILE":
        return CellSample(bucket=bucket_of(float(number))), fault
    units = number << 1074 if isinstance(number, int) else in_units(number)
    return CellSample(units), fault


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
