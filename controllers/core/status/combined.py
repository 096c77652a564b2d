"""CombinedStatus: what collectors collected of one object, as users of the field read it."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from relay.core.collectors.cells import (
    average,
    distinct_estimate,
    from_units,
    is_upper_bound,
    quantile_bucket,
)
from relay.core.collectors.collected_results import Result
from relay.core.collectors.tables import CollectedRow, CollectedTable
from relay.objects.expressions.sketch import value_of
from schemas.objects.objects import Object, ObjectKey
from schemas.objects.source_objects import uid_of
from schemas.reports.collectors import (
    COMPLETE_ANNOTATION,
    DISTINCT_HASHES,
    LABEL_PREFIX,
    PLACEMENT_ANNOTATION,
    QUANTILE_ACCURACY,
    CombinedField,
    Program,
)
from schemas.reports.reports import COUNT_MAX
from schemas.values import names
from schemas.values.groups import CONTROL_GROUP, CONTROL_VERSION
from schemas.values.ordered_values import unpack_values
from schemas.values.refusals import CodecError
from schemas.values.wording import namespace_first

REPORT_NAMESPACE = "kubestellar-report"
"""Where lies what is said about cluster-scoped objects."""
NO_VALUES = "no values to average"
_HASH_CHARACTERS = 8
_IN_NO_LABEL = re.compile(r"[^-._0-9A-Za-z]")
_EXPONENT_MIN, _EXPONENT_FROM = -4, 21


CombinedSubject = tuple[ObjectKey, Object]
"""What a CombinedStatus is about: an object, or the placement as a whole."""


def combined_status(
    subject: CombinedSubject,
    placement: CombinedSubject,
    results: Iterable[Result],
    *,
    title: str,
    complete: bool,
) -> dict[str, Any]:
    """One object's CombinedStatus; `complete` if all that is expected is counted in it.

    The placement goes by the title.
    """
    (key, obj), (placement_key, placement_obj) = subject, placement
    labels, full = _labels(
        {
            "api-group": key.group,
            "resource": key.resource,
            "namespace": key.namespace,
            "name": key.name,
            "binding-policy": placement_key.name,
        }
    )
    version = str(obj.get("apiVersion", "")).rpartition("/")[2]
    owner = {
        "apiVersion": "/".join(filter(None, (key.group, version))),
        "kind": str(obj.get("kind", "")),
        "name": key.name,
        "uid": uid_of(obj),
    }
    metadata = {
        "name": f"{uid_of(obj)}.{uid_of(placement_obj)}",
        "namespace": key.namespace or REPORT_NAMESPACE,
        "labels": labels,
        "annotations": {
            **full,
            COMPLETE_ANNOTATION: str(complete).lower(),
            PLACEMENT_ANNOTATION: title,
        },
        "ownerReferences": [owner],
    }
    listed = sorted(results, key=lambda result: result.program.name)
    return {
        "apiVersion": f"{CONTROL_GROUP}/{CONTROL_VERSION}",
        "kind": "CombinedStatus",
        "metadata": metadata,
        "results": [_result(item.program, item.rows) for item in listed],
    }


def label_text(text: str) -> str:
    """A text as the value of a label: one that is no such value is made one, with its hash."""
    if names.label_value_fault(text) is None:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH_CHARACTERS]
    plain = _IN_NO_LABEL.sub("-", text)[: names.LABEL_MAX - _HASH_CHARACTERS - 1].strip("-._")
    return f"{plain}-{digest}" if plain else digest


def number_text(number: float) -> str:
    """A number by its shortest digits, plain; an exponent as Go writes it from 1e+21 on."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(number)).normalize().as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    point = len(text) + exponent
    minus = "-" if sign else ""
    if not number:
        return f"{minus}0"
    if not _EXPONENT_MIN <= point - 1 < _EXPONENT_FROM:
        rest = f".{text[1:]}" if len(text) > 1 else ""
        return f"{minus}{text[0]}{rest}e{point - 1:+03d}"
    if point <= 0:
        return f"{minus}0.{'0' * -point}{text}"
    if point >= len(text):
        return f"{minus}{text}{'0' * (point - len(text))}"
    return f"{minus}{text[:point]}.{text[point:]}"


def value_form(value: Any) -> dict[str, Any]:
    """A value in the form that CombinedStatus has for it."""
    match value:
        case None:
            return {"type": "Null"}
        case bool():
            return {"type": "Bool", "bool": value}
        case int():
            exact = abs(value) < 10**_EXPONENT_FROM
            return {"type": "Number", "float": str(value) if exact else number_text(float(value))}
        case float():
            return {"type": "Number", "float": number_text(value)}
        case str():
            return {"type": "String", "string": value}
        case list() | tuple():
            return {"type": "Array", "array": list(value)}
        case _:
            return {"type": "Object", "object": value}


def _labels(said: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The labels, and in full those that no label can hold, as annotations."""
    labels = {LABEL_PREFIX + name: label_text(text) for name, text in said.items()}
    full = {LABEL_PREFIX + name: text for name, text in said.items()}
    return labels, {name: text for name, text in full.items() if labels[name] != text}


def _result(program: Program, table: CollectedTable) -> dict[str, Any]:
    said: dict[str, Any] = {"name": program.name, "columnNames": list(program.columns)}
    groups = dict(table.rows)
    if program.combined and not program.group_by and not groups and table.rest is None:
        groups[b""] = CollectedRow(0, tuple(_EMPTY[item.type] for item in program.combined))
    rows, notes = [], dict[str, str]()
    for key in sorted(groups):
        row, empty = _row(program, key, groups[key])
        rows.append(row)
        notes |= dict.fromkeys(empty, NO_VALUES)
    said["rows"] = rows
    if table.rest is not None:
        row, _ = _row(program, None, table.rest)
        said["rest"] = {**row, "count": number_text(float(table.rest.count))}
    failed = [table.errors[place] for place in sorted(table.errors)]
    if row_errors := [
        {
            "wec": {"clusterId": _who(item.who)},
            "columnName": item.column,
            "error": f"{what}: {item.text}" if (what := _object(item.who)) else item.text,
            "count": str(item.count),
        }
        for item in failed
        if item.of_row
    ]:
        said["rowErrors"] = row_errors
    faults = {
        item.column: f"{item.text} (at {', '.join(_row_of(item.who).values())})"
        for item in failed
        if not item.of_row
    }
    if errors := [
        {"columnName": column, "error": text} for column, text in sorted((notes | faults).items())
    ]:
        said["aggregationErrors"] = errors
    coarse = _coarse(program, [*groups.values(), *filter(None, [table.rest])])
    if told := [
        {"columnName": f.name, "note": _NOTES[f.type] + coarse.get(f.name, "")}
        for f in program.combined
        if f.type in _NOTES
    ]:
        said["notes"] = told
    if table.truncated or coarse:
        said["truncated"] = True
    return said


def _coarse(program: Program, rows: Sequence[CollectedRow]) -> dict[str, str]:
    """The columns of which some rows say no more than an upper bound."""
    found = {}
    for at, item in enumerate(program.combined):
        if item.type == "QUANTILE":
            rank = Fraction(item.quantile)
            cells = [row.cells[at] for row in rows if row.cells[at]]
            many = sum(is_upper_bound(cell, quantile_bucket(cell, rank)) for cell in cells)
            if many:
                rows_ = f"{many} of {len(rows)} row{'s' if len(rows) > 1 else ''}"
                found[item.name] = f"; only an upper bound in {rows_}, whose values spread too far"
    return found


def _row(
    program: Program, key: bytes | None, row: CollectedRow
) -> tuple[dict[str, Any], list[str]]:
    """A row, without a key the rest; and the columns that have no values to combine."""
    if not program.combined:
        told = _values(row.cells[0], len(program.select)) if row.cells else None
        values = told or [None] * len(program.select)
        return {"columns": [value_form(value) for value in values]}, []
    groups: Sequence[Any] = [None] * len(program.group_by)
    if key is not None:
        groups = _values(key, len(program.group_by)) or groups
    columns, empty = [value_form(value) for value in groups], []
    for item, cell in zip(program.combined, row.cells, strict=True):
        value = _combined(item, row.count, cell)
        columns.append(value_form(value))
        if isinstance(value, float) and math.isnan(value):
            empty.append(item.name)
    return {"columns": columns}, empty


def _combined(item: CombinedField, count: int, cell: Any) -> Any:
    match item.type:
        case "COUNT":
            return min(count, COUNT_MAX)
        case "SUM":
            return from_units(cell)
        case "AVG":
            return average(cell) if cell[1] else math.nan
        case "MIN":
            return math.inf if cell is None else from_units(cell)
        case "MAX":
            return -math.inf if cell is None else from_units(cell)
        case "QUANTILE":
            bucket = quantile_bucket(cell, Fraction(item.quantile))
            return math.nan if bucket is None else value_of(bucket)
        case "TOP":
            return [
                {**_row_of(who), "value": number_text(from_units(units))} for units, who in cell
            ]
        case "DISTINCT":
            return distinct_estimate(cell)


_EMPTY: Mapping[str, Any] = {
    "COUNT": None,
    "SUM": 0,
    "AVG": (0, 0),
    "MIN": None,
    "MAX": None,
    "QUANTILE": (),
    "TOP": (),
    "DISTINCT": (),
}
_NOTES: Mapping[str, str] = {
    "QUANTILE": f"off by {QUANTILE_ACCURACY:.0%} of the value at most",
    "DISTINCT": f"exact below {DISTINCT_HASHES}; above, an estimate with a standard error of "
    f"{1 / math.sqrt(DISTINCT_HASHES - 2):.1%}",
}


def _values(packed: bytes, count: int) -> Sequence[Any] | None:
    """The values of columns; None if whoever said them said nonsense."""
    values = _unpacked(packed)
    return values if len(values) == count else None


def _row_of(packed: bytes) -> dict[str, str]:
    """Whose row it is, by what rows are ordered by; if rows are of several objects, of which."""
    what = _object(packed)
    return {"clusterId": _who(packed)} | ({"object": what} if what else {})


def _who(packed: bytes) -> str:
    """The name of a destination."""
    values = _unpacked(packed)
    return str(values[0]) if values else ""


def _object(packed: bytes) -> str:
    """The object of a row if they are of several; else ""."""
    match _unpacked(packed):
        case [_, _, str(group), str(resource), str(namespace), str(name)]:
            return namespace_first(str(ObjectKey(group, resource, namespace, name)))
        case _:
            return ""


def _unpacked(packed: bytes) -> Sequence[Any]:
    try:
        return unpack_values(packed)
    except CodecError:
        return ()
