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
from schemas.api.shared import Condition, Count, ListOf, ObjectMeta, Value
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


class NamedExpression(Value):
    """A column, and the CEL expression that gives it."""

    name: _Column
    definition: CelExpression = Field(alias="def")


class NamedAggregator(Value):
    """A column of each group: how the subjects of its rows are combined."""

    name: _Column
    type: Literal["COUNT", "SUM", "AVG", "MIN", "MAX", "QUANTILE", "TOP", "DISTINCT"]
    subject: CelExpression | None = None
    quantile: Annotated[str, AfterValidator(_quantile)] | None = None
    top: Annotated[int, Field(ge=1, le=TOP_MAX)] | None = None

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


class CollectorSource(Value):
    """Over which objects a collector is, in the place of copies of what was sent."""

    upsync: UpsyncSet


class StatusCollectorSpec(Value):
    """Which rows count, and what becomes of them."""

    filter: CelExpression | None = None
    group_by: Annotated[ListOf[NamedExpression], Field(max_length=COLUMNS_MAX)] = ()
    combined_fields: Annotated[ListOf[NamedAggregator], Field(max_length=COLUMNS_MAX)] = ()
    select: Annotated[ListOf[NamedExpression], Field(max_length=COLUMNS_MAX)] = ()
    limit: Annotated[int, Field(ge=1)] = LIMIT_DEFAULT
    scope: Literal["Object", "Placement"] = "Object"
    source: CollectorSource | None = None

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


class StatusCollectorStatus(Value):
    """What is wrong with it."""

    observed_generation: Count | None = None
    errors: ListOf[str] = ()
    conditions: ListOf[Condition] = ()


class StatusCollector(Value):
    """What is asked of the copies of an object at all its destinations; placements name it."""

    api_version: Literal["control.kubestellar.io/v1alpha1"]
    kind: Literal["StatusCollector"]
    metadata: ObjectMeta
    spec: StatusCollectorSpec
    status: StatusCollectorStatus | None = None

    @property
    def name(self) -> str:
        """The metadata.name."""
        return self.metadata.name

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


class CombinedValue(Value):
    """One value; a number is a string in the field `float`."""

    type: Literal["String", "Number", "Bool", "Null", "Object", "Array"]
    string: str | None = None
    float_: str | None = Field(default=None, alias="float")
    bool_: bool | None = Field(default=None, alias="bool")
    object: _Anything | None = None
    array: _Listed | None = None


class CombinedRow(Value):
    """One row."""

    columns: ListOf[CombinedValue] = ()


class CombinedRest(CombinedRow):
    """What lies beyond the limit, as one row, and how many rows it stands for."""

    count: str


class CombinedCluster(Value):
    """A destination, by the name of its SyncTarget."""

    cluster_id: str


class RowError(Value):
    """A row that could not be computed: the first one, and how many there are."""

    wec: CombinedCluster
    column_name: str = ""
    error: str
    count: str = ""


class ColumnNote(Value):
    """What is wrong with a column's values, or to be known of them."""

    column_name: str
    error: str = ""
    note: str = ""


class CombinedResult(Value):
    """What one collector collected; `truncated` if not all found room on its way."""

    name: str
    column_names: ListOf[str] = ()
    rows: ListOf[CombinedRow] = ()
    rest: CombinedRest | None = None
    row_errors: ListOf[RowError] = ()
    aggregation_errors: ListOf[ColumnNote] = ()
    notes: ListOf[ColumnNote] = ()
    truncated: bool = False


class CombinedStatus(Value):
    """What the collectors of one placement say of one object. Leafcast writes it."""

    api_version: Literal["control.kubestellar.io/v1alpha1"]
    kind: Literal["CombinedStatus"]
    metadata: ObjectMeta
    results: ListOf[CombinedResult] = ()

    @property
    def name(self) -> str:
        """The metadata.name."""
        return self.metadata.name
