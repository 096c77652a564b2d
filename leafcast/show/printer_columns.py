"""The columns that a definition names for its kind (`additionalPrinterColumns`), as in kubectl."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leafcast.show.durations import age_text
from leafcast.show.json_path_output import BadTemplate, Path, read_path, value_text
from leafcast.show.object_cells import at, listed
from leafcast.show.object_tables import AGE, Column

COLUMNS_MAX = 64

Fields = Mapping[str, Any]


def printer_columns(definition: Fields, version: str = "") -> list[Column]:
    """Those of a CustomResourceDefinition, of the version named, else of the first that is served.

    AGE alone if it names none; a column whose path cannot be read is left out.
    """
    served = [one for one in listed(definition, "spec", "versions") if at(one, "served")]
    meant = [one for one in served if at(one, "name") == version] or served
    named = listed(meant[0], "additionalPrinterColumns") if meant else []
    return list(_columns(named[:COLUMNS_MAX])) or [AGE]


def _columns(named: Sequence[Any]) -> Iterator[Column]:
    for one in named:
        try:
            path = read_path(str(at(one, "jsonPath") or ""))
        except BadTemplate:
            continue
        priority = at(one, "priority")
        wide = isinstance(priority, int) and priority > 0
        yield _column(str(at(one, "name") or "").upper(), path, str(at(one, "type")), wide=wide)


def _column(header: str, path: Path, type_: str, *, wide: bool) -> Column:
    def read(obj: Fields, now_ms: int) -> str:
        values = path.values(obj, obj)
        if not values or values[0] is None:
            return ""
        # One line is one object.
        text = age_text(values[0], now_ms) if type_ == "date" else value_text(values[0])
        return " ".join(text.split())

    return Column(header, read, wide)
