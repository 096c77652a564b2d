"""Objects as text in the formats of `-o`: tables, YAML, JSON, names; as kubectl lays them out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import Any

from leafcast.ask.resource_names import ResourceKind
from leafcast.show.object_formats import Format
from leafcast.show.object_tables import (
    LABELS,
    NAMESPACE,
    Column,
    annotation_column,
    columns_of,
    laid_out,
    widths_of,
)
from schemas.values.groups import AS_OF_ANNOTATION, EDGE_ANNOTATION

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ObjectGroup:
    """Objects of one kind."""

    kind: ResourceKind
    objects: Sequence[Object]


@dataclass(slots=True)
class TableStyle:
    """How tables look: which columns beside the kind's own, and whether there is a header."""

    wide: bool = False
    namespaces: bool = False
    labels: bool = False
    headers: bool = True
    # Of copies: whose they are, and of which moment.
    edges: bool = False
    as_of: bool = False
    # Of kinds that are not known here, what their definitions name.
    printers: dict[ResourceKind, list[Column]] = field(default_factory=dict)

    def columns(self, kind: ResourceKind) -> list[Column]:
        printer = self.printers.get(kind)
        own = columns_of(kind.group, kind.resource, wide=self.wide, printer=printer)
        first = [NAMESPACE] if self.namespaces and kind.namespaced else []
        whose = [annotation_column("EDGE", EDGE_ANNOTATION)] if self.edges else []
        when = [annotation_column("AS OF", AS_OF_ANNOTATION)] if self.as_of else []
        return [*whose, *first, *own, *when, *([LABELS] if self.labels else [])]


def table_lines(groups: Sequence[ObjectGroup], style: TableStyle, now_ms: int) -> Iterator[str]:
    """A table for each kind, a blank line between them; with several kinds, names tell theirs."""
    several = len(groups) > 1
    for at, group in enumerate(groups):
        if at:
            yield ""
        yield from Rows(group.kind, style, titled=several).lines(group.objects, now_ms)


@dataclass(slots=True)
class Rows:
    """A table of one kind that may go on: the header comes once, columns keep their widths."""

    kind: ResourceKind
    style: TableStyle
    titled: bool = False
    _widths: list[int] = field(default_factory=list)

    def lines(self, objects: Sequence[Object], now_ms: int) -> list[str]:
        columns = self.style.columns(self.kind)
        rows = [tuple(self._cell(it, obj, now_ms) for it in columns) for obj in objects]
        if self.style.headers and not self._widths:
            rows.insert(0, tuple(column.header for column in columns))
        self._widths = widths_of(rows, self._widths)
        return laid_out(rows, self._widths)

    def _cell(self, column: Column, obj: Object, now_ms: int) -> str:
        value = column.read(obj, now_ms)
        return self.kind.title(value) if self.titled and column.header == "NAME" else value


def document(objects: Sequence[Object], format_: Format, *, single: bool) -> str:
    """YAML or JSON: the object itself if it is the `single` one asked for, else a List."""
    shown = document_form(objects, single=single)
    return yaml_text(shown) if format_ == "yaml" else json_text(shown)


def document_form(objects: Sequence[Object], *, single: bool) -> Any:
    """The object itself if it is the `single` one asked for, else a List."""
    return objects[0] if single else _as_list(objects)


def _as_list(objects: Sequence[Object]) -> dict[str, Any]:
    """The List that kubectl makes of several objects."""
    items = [dict(obj) for obj in objects]
    return {"apiVersion": "v1", "items": items, "kind": "List", "metadata": {"resourceVersion": ""}}


def yaml_text(value: Any) -> str:
    # Tables, which are most, need none of it.
    from schemas.objects.yaml_writing import write_yaml  # noqa: PLC0415

    return write_yaml(value)


def diff_lines(before: Object, after: Object, name: str, made: str) -> list[str]:
    """How `diff -u` tells two objects apart: of `LIVE/name`, and of what it becomes."""
    old, new = (yaml_text(obj).splitlines() if obj else [] for obj in (before, after))
    return list(unified_diff(old, new, f"LIVE/{name}", f"{made}/{name}", lineterm=""))


def json_text(value: Any) -> str:
    return json.dumps(value, indent=4, sort_keys=True, ensure_ascii=False) + "\n"


def json_line(value: Any) -> str:
    """JSON in one line, for what comes one by one."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
