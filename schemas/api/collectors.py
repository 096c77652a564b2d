"""StatusCollector, what is asked of all copies of an object, and CombinedStatus, the answer.

Input is one row for each destination. A filter leaves rows out; what is left is either selected as
it is, or grouped and combined; the limit comes last.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from schemas.api.placement import UpsyncSet
from schemas.api.shared import ApiValue, ControlObject, JudgedStatus, ListOf
from schemas.reports.collectors import (
    COLUMNS_MAX,
    EXPRESSION_MAX_BYTES,
    LIMIT_DEFAULT,
    LIMIT_MAX,
    QUANTILE_PATTERN,
    SCOPE_OBJECT,
    TOP_DEFAULT,
    TOP_MAX,
    CombinedField,
    Expression,
    Program,
)
from schemas.values.faults import Fault, Faulty

COLUMN_MAX_CHARACTERS = 63
SHOWN_CHARACTERS = 40
_NUMBERLESS = ("COUNT",)


def _expression(text: str) -> str:
    size = len(text.encode())
    if size > EXPRESSION_MAX_BYTES:
        raise Faulty(Fault("", f"{size} bytes", f"write at most {EXPRESSION_MAX_BYTES}"))
    if not text.strip():
        raise Faulty(Fault("", "empty", "write an expression, or leave the field out"))
    return text


def _unquoted(form: object) -> object:
    """YAML reads a plain `n`, which many call a count, as false: and no one names a column so."""
    return {False: "n", True: "y"}[form] if isinstance(form, bool) else form


def _column(text: str) -> str:
    if not 0 < len(text) <= COLUMN_MAX_CHARACTERS:
        remedy = f"use 1 to {COLUMN_MAX_CHARACTERS} characters"
        raise Faulty(Fault("", f"{len(text)} characters", remedy))
    return text


def _quantile(text: str) -> str:
    if not re.fullmatch(QUANTILE_PATTERN, text):
        remedy = 'write it as "0.95", with at most six digits'
        raise Faulty(Fault("", f'"{text[:SHOWN_CHARACTERS]}" is no part of 1', remedy))
    return text


CelExpression = Annotated[str, AfterValidator(_expression)]
_Column = Annotated[str, BeforeValidator(_unquoted), AfterValidator(_column)]


class NamedExpression(ApiValue):
    """A column, and the CEL expression that gives it."""

    name: _Column
    """The column's name."""
    definition: CelExpression = Field(alias="def")
    """CEL over obj, returned, inventory and propagation."""


class NamedAggregator(ApiValue):
    """A column of each group: how the subjects of its rows are combined."""

    name: _Column
    """The column's name."""
    type: Literal["COUNT", "SUM", "AVG", "MIN", "MAX", "QUANTILE", "TOP", "DISTINCT"]
    """How it is combined. A QUANTILE is off by 1 % at most, a DISTINCT is an estimate."""
    subject: CelExpression | None = None
    """CEL, a number, or for DISTINCT any value; null does not count. Not for COUNT."""
    quantile: Annotated[str, AfterValidator(_quantile)] | None = None
    """Of a QUANTILE: which one, as "0.95"."""
    top: Annotated[int, Field(ge=1, le=TOP_MAX)] | None = None
    """Of a TOP: how many destinations are named."""

    @model_validator(mode="after")
    def _has_what_its_type_takes(self) -> NamedAggregator:
        if (self.subject is None) != (self.type in _NUMBERLESS):
            what = "a COUNT has no subject" if self.subject else f"{self.type} needs a subject"
            remedy = "leave it out" if self.subject else "say what is combined"
            raise Faulty(Fault("subject", what, remedy))
        for field, value, type_ in (
            ("quantile", self.quantile, "QUANTILE"),
            ("top", self.top, "TOP"),
        ):
            if value is not None and self.type != type_:
                raise Faulty(Fault(field, f"only a {type_} has one", "leave it out"))
        if self.type == "QUANTILE" and self.quantile is None:
            raise Faulty(Fault("quantile", "missing", 'write which one, as "0.95"'))
        return self


class CollectorSource(ApiValue):
    """Over which objects a collector is, in the place of copies of what was sent."""

    upsync: UpsyncSet
    """Objects that come up from destinations; returned is the object."""


class StatusCollectorSpec(ApiValue):
    """Which rows count, and what becomes of them."""

    filter: CelExpression | None = None
    """CEL, true or false for each destination; null is false. All count if absent."""
    group_by: Annotated[ListOf[NamedExpression], Field(max_length=COLUMNS_MAX)] = ()
    """Columns by which the rows are grouped; needs combinedFields."""
    combined_fields: Annotated[ListOf[NamedAggregator], Field(max_length=COLUMNS_MAX)] = ()
    """Columns of each group, combined of its rows."""
    select: Annotated[ListOf[NamedExpression], Field(max_length=COLUMNS_MAX)] = ()
    """Columns of each destination, as they are; not with the other two."""
    limit: Annotated[int, Field(ge=1)] = LIMIT_DEFAULT
    """How many rows, or groups, are kept, 1,000 at most: the first by destination, or by group.
    The rest is in one more row."""
    scope: Literal["Object", "Placement"] = "Object"
    """Object: over each object alone. Placement: over all objects that the placement names it
    for."""
    source: CollectorSource | None = None
    """Over which objects, in the place of copies of what was sent: one row for each."""

    @model_validator(mode="after")
    def _selects_or_combines(self) -> StatusCollectorSpec:
        if self.select and (self.group_by or self.combined_fields):
            message = "groupBy and combinedFields must be empty if select is not"
            raise Faulty(Fault("select", message, "write two collectors"))
        if self.group_by and not self.combined_fields:
            message = "groupBy must be empty if combinedFields is"
            raise Faulty(Fault("groupBy", message, "say what is combined of each group"))
        if not self.select and not self.combined_fields:
            message = "nothing is collected"
            raise Faulty(Fault("", message, "write select, or combinedFields"))
        combined = [item.name for item in self.group_by]
        combined += [item.name for item in self.combined_fields]
        for field, names in (
            ("select", [item.name for item in self.select]),
            ("combinedFields", combined),
        ):
            for name in {name for name in names if names.count(name) > 1}:
                raise Faulty(Fault(field, f'two columns are named "{name}"', "rename one"))
        return self


class StatusCollectorStatus(JudgedStatus):
    """What is wrong with it."""

    errors: ListOf[str] = ()
    """What is wrong, by field. A collector with errors counts as one that is missing."""


class StatusCollector(ControlObject):
    """What is asked of the copies of an object at all its destinations; placements name it."""

    kind: Literal["StatusCollector"]
    spec: StatusCollectorSpec
    """Which rows count, and what becomes of them."""
    status: StatusCollectorStatus | None = None
    """What is wrong with it. Leafcast writes it."""

    @property
    def program(self) -> Program:
        """The collector as it travels."""
        spec = self.spec
        return Program(
            self.name,
            spec.filter or "",
            tuple(Expression(item.name, item.definition) for item in spec.group_by),
            tuple(
                CombinedField(
                    item.name,
                    item.type,
                    item.subject or "",
                    item.quantile or "",
                    item.top or TOP_DEFAULT,
                )
                for item in spec.combined_fields
            ),
            tuple(Expression(item.name, item.definition) for item in spec.select),
            min(spec.limit, LIMIT_MAX),
            SCOPE_OBJECT if spec.source else spec.scope,
            spec.source.upsync.clause if spec.source is not None else None,
        )


_Anything = Annotated[Any, PlainValidator(lambda form: form), WithJsonSchema({"type": "object"})]
_Listed = Annotated[Any, PlainValidator(lambda form: form), WithJsonSchema({"type": "array"})]


class CombinedValue(ApiValue):
    """One value; a number is a string in the field `float`."""

    type: Literal["String", "Number", "Bool", "Null", "Object", "Array"]
    """Which of the other fields holds the value."""
    string: str | None = None
    """A text."""
    float_: str | None = Field(default=None, alias="float")
    """A number, as a text."""
    bool_: bool | None = Field(default=None, alias="bool")
    """True or false."""
    object: _Anything | None = None
    """A map."""
    array: _Listed | None = None
    """A list."""


class CombinedRow(ApiValue):
    """One row."""

    columns: ListOf[CombinedValue] = ()
    """The values, by column."""


class CombinedRest(CombinedRow):
    """What lies beyond the limit, as one row, and how many rows it stands for."""

    count: str
    """How many rows it stands for."""


class CombinedCluster(ApiValue):
    """A destination, by the name of its SyncTarget."""

    cluster_id: str
    """The name of the destination's SyncTarget."""


class RowError(ApiValue):
    """A row that could not be computed: the first one, and how many there are."""

    wec: CombinedCluster
    """The destination."""
    column_name: str = ""
    """The column; empty is the filter."""
    error: str
    """Why it could not be computed."""
    count: str = ""
    """How many destinations have no row for such a reason."""


class ColumnNote(ApiValue):
    """What is wrong with a column's values, or to be known of them."""

    column_name: str
    """The column."""
    error: str = ""
    """What is wrong."""
    note: str = ""
    """What is to be known."""


class CombinedResult(ApiValue):
    """What one collector collected; `truncated` if not all found room on its way."""

    name: str
    """The collector's name."""
    column_names: ListOf[str] = ()
    """The names of the columns, of groups first."""
    rows: ListOf[CombinedRow] = ()
    """The rows, in order."""
    rest: CombinedRest | None = None
    """The rows beyond the limit, as one."""
    row_errors: ListOf[RowError] = ()
    """The first row that could not be computed, by column."""
    aggregation_errors: ListOf[ColumnNote] = ()
    """What is wrong with values, by column."""
    notes: ListOf[ColumnNote] = ()
    """What is to be known of a column's values."""
    truncated: bool = False
    """Whether not all found room on its way: fewer rows, or values told apart."""


class CombinedStatus(ControlObject):
    """What the collectors of one placement say of one object. Leafcast writes it."""

    kind: Literal["CombinedStatus"]
    results: ListOf[CombinedResult] = ()
    """What each collector collected."""
