"""A CombinedStatus told at length: of each collector a table of its rows, and what is wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leafcast.show.object_cells import NONE, at, listed, text
from leafcast.show.object_tables import laid_out

_FORMS: Mapping[Any, str] = {
    "String": "string",
    "Number": "float",
    "Bool": "bool",
    "Object": "object",
    "Array": "array",
}
"""Which field of a value holds it, by its type."""
_INDENT = "  "


def collected_lines(obj: Mapping[str, Any]) -> Iterator[str]:
    """The lines of all its results, each collector's after an empty one."""
    for result in listed(obj, "results"):
        yield ""
        yield f"Collector {text(at(result, 'name'))}"
        lines = [*_table(result), *_remarks(result)]
        yield from (f"{_INDENT}{line}" for line in lines)


def _table(result: Any) -> list[str]:
    rows = [_cells(row) for row in listed(result, "rows")]
    if at(result, "rest"):
        rest = _cells(at(result, "rest"))
        rows.append([*rest, f"(of {at(result, 'rest', 'count')} beyond the limit)"])
    if not rows:
        return [f"{NONE} (no row)"]
    names = [str(name) for name in listed(result, "columnNames")]
    wide = max(map(len, (names, *rows)))
    return laid_out([[*cells, *[""] * (wide - len(cells))] for cells in (names, *rows)])


def _cells(row: Any) -> list[str]:
    return [_value(form) for form in listed(row, "columns")]


def _value(form: Any) -> str:
    value = at(form, _FORMS.get(at(form, "type"), ""))
    if isinstance(value, Mapping | Sequence) and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, sort_keys=True)
    # A text of several lines, or one that looks like another value, is told from it.
    plain = isinstance(value, str) and value.isprintable() and value not in ("", "null")
    return value if plain else json.dumps(value, ensure_ascii=False)


def _remarks(result: Any) -> Iterator[str]:
    for one in listed(result, "rowErrors"):
        where = f"column {at(one, 'columnName')}" if at(one, "columnName") else "filter"
        who = at(one, "wec", "clusterId")
        said = f"Row error at {text(who)}, {where}: {text(at(one, 'error'))}"
        many = at(one, "count")
        yield said if many in (None, "", "1") else f"{said} ({many} rows)"
    for one in listed(result, "aggregationErrors"):
        yield f"Error in column {text(at(one, 'columnName'))}: {text(at(one, 'error'))}"
    for one in listed(result, "notes"):
        yield f"Note on column {text(at(one, 'columnName'))}: {text(at(one, 'note'))}"
    if at(result, "truncated"):
        yield "Truncated: not all found room on its way"
