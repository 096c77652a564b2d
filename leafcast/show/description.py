"""One object told at length, as `kubectl describe` does: what it is, what it says, how it goes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from leafcast.show.object_cells import (
    NONE,
    at,
    collected_object,
    count,
    listed,
    selector_text,
    text,
)
from leafcast.show.object_tables import laid_out
from schemas.records.asks import REDACTED
from schemas.reports.collectors import COMPLETE_ANNOTATION, PLACEMENT_ANNOTATION
from schemas.values.wording import many

_INDENT = "  "
_HEAD = ("apiVersion", "kind", "metadata")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[^A-Za-z0-9]+")

Object = Mapping[str, Any]
_Row = tuple[str, str | None, int]
"""A name, its value, and how deep it is.

The name "" is of a line of its own, " " of one more value; the value None says that rows below tell
it.
"""
_FORMS: Mapping[Any, str] = {
    "String": "string",
    "Number": "float",
    "Bool": "bool",
    "Object": "object",
    "Array": "array",
}
"""Which field of a value holds it, by its type."""


def described(obj: Object, placements: Sequence[str] | None = None) -> str:
    """The description; ends in a newline. Data of Secrets are sizes.

    `placements` are those that carry the object, if it is known which.
    """
    rows = list(_rows(obj, placements))
    lines = [_line(row, room) for row, room in zip(rows, _rooms(rows), strict=True)]
    return "\n".join(lines) + "\n"


def _line(row: _Row, room: int) -> str:
    name, value, depth = row
    label = f"{name}:" if name.strip() else ""
    shown = label if value is None else f"{label.ljust(room)}{value}"
    return f"{_INDENT * depth}{shown}".rstrip()


def _rooms(rows: Sequence[_Row]) -> list[int]:
    """How wide each row's name is, with the gap after it: as wide as its neighbours' widest."""
    rooms = [0] * len(rows)
    open_: dict[int, list[int]] = {}
    for at_, (name, value, depth) in enumerate(rows):
        for deeper in [known for known in open_ if known > depth]:
            _close(rooms, rows, open_.pop(deeper))
        if name and value is not None:
            open_.setdefault(depth, []).append(at_)
    for neighbours in open_.values():
        _close(rooms, rows, neighbours)
    return rooms


def _close(rooms: list[int], rows: Sequence[_Row], neighbours: Sequence[int]) -> None:
    widest = max(len(rows[at_][0]) for at_ in neighbours)
    for at_ in neighbours:
        rooms[at_] = widest + len(":  ")


def _rows(obj: Object, placements: Sequence[str] | None) -> Iterator[_Row]:
    metadata = obj["metadata"]
    yield "Name", text(metadata["name"]), 0
    if metadata.get("namespace"):
        yield "Namespace", str(metadata["namespace"]), 0
    yield from _pairs("Labels", metadata.get("labels"), "=")
    yield from _pairs("Annotations", metadata.get("annotations"), ": ")
    yield "API Version", str(obj["apiVersion"]), 0
    yield "Kind", str(obj["kind"]), 0
    yield "Created", text(metadata.get("creationTimestamp")), 0
    yield "Generation", text(metadata.get("generation")), 0
    if placements is not None:
        yield "Placements", ", ".join(placements) or f"{NONE} (it stays at the centre)", 0
    match obj["kind"]:
        case "ConfigMap":
            yield from _config_map(obj)
        case "Secret":
            yield from _secret(obj)
        case "EdgePlacement":
            yield from _placement(obj, "locationSelectors")
        case "BindingPolicy":
            yield from _placement(obj, "clusterSelectors")
        case "CombinedStatus":
            yield from _collected(obj)
        case _:
            rest = {name: value for name, value in obj.items() if name not in _HEAD}
            yield from _fields(rest, 0)


def _pairs(name: str, pairs: Any, joint: str) -> Iterator[_Row]:
    """Labels or annotations, one a line under each other."""
    lines = [f"{key}{joint}{_one_line(value)}" for key, value in sorted((pairs or {}).items())]
    yield name, lines[0] if lines else NONE, 0
    for line in lines[1:]:
        yield " ", line, 0


def _one_line(value: Any) -> str:
    said = str(value)
    return said if "\n" not in said else f"{said.splitlines()[0]} ..."


def _fields(fields: Object, depth: int) -> Iterator[_Row]:
    for name, value in fields.items():
        title = _title(name) if depth == 0 or re.fullmatch(r"[a-z][A-Za-z0-9]*", name) else name
        yield from _field(title, value, depth)


def _field(title: str, value: Any, depth: int) -> Iterator[_Row]:
    match value:
        case Mapping() if value:
            yield title, None, depth
            yield from _fields(value, depth + 1)
        case [*items] if items:
            yield title, None, depth
            yield from _items(items, depth + 1)
        case str() if "\n" in value:
            yield title, None, depth
            yield from (("", line, depth + 1) for line in value.splitlines())
        case Mapping() | [*_]:
            yield title, NONE, depth
        case _:
            yield title, text(value, ""), depth


def _items(items: Sequence[Any], depth: int) -> Iterator[_Row]:
    for at_, item in enumerate(items):
        if isinstance(item, Mapping):
            if at_:
                yield "", "", 0
            yield from _fields(item, depth)
        else:
            yield "", _one_line(item), depth


def _title(name: str) -> str:
    """`matchLabels` as `Match Labels`."""
    return " ".join(word[0].upper() + word[1:] for word in _WORD.findall(name) if word.strip())


def _config_map(obj: Object) -> Iterator[_Row]:
    yield "", "", 0
    yield from _headed("Data")
    for key, value in sorted((obj.get("data") or {}).items()):
        yield key, None, 0
        yield "", "----", 0
        yield from (("", line, 0) for line in str(value).splitlines() or [""])
        yield "", "", 0
    binary = obj.get("binaryData") or {}
    if binary:
        yield from _headed("BinaryData")
        yield from (
            ("", f"{key}: {_bytes(value)} bytes", 0) for key, value in sorted(binary.items())
        )


def _secret(obj: Object) -> Iterator[_Row]:
    yield "Type", text(obj.get("type"), "Opaque"), 0
    yield "", "", 0
    yield from _headed("Data")
    for key, value in sorted((obj.get("data") or {}).items()):
        size = value if value == REDACTED else f"{_bytes(value)} bytes"
        yield "", f"{key}:  {size}", 0
    for key, value in sorted((obj.get("stringData") or {}).items()):
        size = value if value == REDACTED else f"{len(str(value).encode())} bytes"
        yield "", f"{key}:  {size}", 0


def _headed(title: str) -> Iterator[_Row]:
    yield "", title, 0
    yield "", "=" * len(title), 0


def _bytes(encoded: Any) -> int:
    """How many bytes a base64 text stands for."""
    said = str(encoded).rstrip("=\n")
    return len(said) * 3 // 4


def _collected(obj: Object) -> Iterator[_Row]:
    yield "Object", collected_object(obj), 0
    for name, annotation in (
        ("Placement", PLACEMENT_ANNOTATION),
        ("Complete", COMPLETE_ANNOTATION),
    ):
        yield name, text(at(obj, "metadata", "annotations", annotation)), 0
    yield from (("", line, 0) for line in collected_lines(obj))


def _held(held: Sequence[Any]) -> Iterator[_Row]:
    """What keeps the newest content from destinations, each with the next command."""
    yield "Held", None if held else NONE, 0
    for hold in held:
        number = at(hold, "destinations")
        who = f"{many(number, 'destination')}, " if number is not None else ""
        said = f"{who}since {text(at(hold, 'since'))}: {text(at(hold, 'message'), '')}"
        yield str(at(hold, "reason")), said, 1
        if remedy := text(at(hold, "remedy"), ""):
            yield " ", f"next: {remedy}", 1


def _placement(obj: Object, field: str) -> Iterator[_Row]:
    said = [selector_text(form) for form in listed(obj, "spec", field)]
    yield _title(field), " | ".join(said) or f"{NONE} (no destination is selected)", 0
    spec = obj.get("spec") or {}
    others = {name: value for name, value in spec.items() if name != field}
    yield from _fields({"spec": others}, 0)
    status = obj.get("status")
    if not status:
        yield "Status", "not seen by the centre's controllers yet", 0
        return
    least = "" if at(status, "complete") else "at least "
    whole = count(status, "destinations")
    yield "Selected Objects", text(at(status, "selectedObjects")), 0
    yield "Destinations", f"{least}{whole}", 0
    for name in ("synced", "healthy", "pending", "failing", "frozen", "unreachable"):
        figure = count(status, name)
        shown = f"{least}{figure} of {whole}" if name in ("synced", "healthy") else str(figure)
        yield _title(name), shown, 0
    if absent := count(status, "neverJoined"):
        yield "Never Joined", str(absent), 0
    yield "Complete", text(at(status, "complete")), 0
    yield from _held(listed(status, "held"))
    yield "Conditions", None, 0
    for one in listed(status, "conditions"):
        why = ": ".join(filter(None, (text(at(one, "reason"), ""), text(at(one, "message"), ""))))
        yield str(at(one, "type")), f"{text(at(one, 'status'))}  {why}", 1
    errors = listed(status, "errors")
    yield "Errors", None if errors else NONE, 0
    yield from (("", str(line), 1) for line in errors)


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
