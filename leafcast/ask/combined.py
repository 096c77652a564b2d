"""What collectors say, read from the CombinedStatus objects of the centre."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from leafcast.ask.failures import BadAnswer
from relay.space_port import Object
from schemas.objects.objects import ObjectKey
from schemas.reports.collectors import COMPLETE_ANNOTATION, LABEL_PREFIX, PLACEMENT_ANNOTATION

_INTEGER = re.compile(r"-?[0-9]{1,21}")


@dataclass(frozen=True, slots=True)
class CombinedRows:
    """What one collector says of an object; a row is its values by column."""

    object: ObjectKey
    # A title such as `edgeplacement/shop`.
    placement: str
    collector: str
    # Whether all that was sent is answered.
    complete: bool
    # Whether not all found room on its way.
    truncated: bool
    rows: tuple[Mapping[str, Any], ...]
    # How many rows are beyond the collector's limit.
    rest: int


def read_combined(obj: Object) -> list[CombinedRows]:
    """What each collector says in a CombinedStatus; raises BadAnswer if it has another form."""
    try:
        return list(_rows(obj))
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise BadAnswer(f"a CombinedStatus has another form: {error!r}") from error


def _rows(obj: Object) -> Iterator[CombinedRows]:
    metadata = obj["metadata"]
    annotations = metadata.get("annotations") or {}
    said = {**(metadata.get("labels") or {}), **annotations}
    group, resource, namespace, name = (
        said.get(LABEL_PREFIX + part, "") for part in ("api-group", "resource", "namespace", "name")
    )
    for result in obj.get("results") or ():
        names, rows = result["columnNames"], result.get("rows") or ()
        yield CombinedRows(
            ObjectKey(group, resource, namespace, name),
            annotations.get(PLACEMENT_ANNOTATION, ""),
            result["name"],
            annotations.get(COMPLETE_ANNOTATION) == "true",
            bool(result.get("truncated")),
            tuple(dict(zip(names, map(_value, row["columns"]), strict=True)) for row in rows),
            int((result.get("rest") or {}).get("count", 0)),
        )


def _value(form: Mapping[str, Any]) -> Any:
    """A value from its form in a CombinedStatus."""
    match form["type"]:
        case "Null":
            return None
        case "Number":
            text = form["float"]
            # A double does not hold every integer that CEL has.
            return int(text) if _INTEGER.fullmatch(text) else float(text)
        case kind:
            return form[kind.lower()]
