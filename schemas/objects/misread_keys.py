"""Keys that YAML reads as something else than is written: `y:` is "true", `0x10:` is "16".

And what no label selector can hold: `matchLabels: {ring: on}` asks for true, which is no label. Nor
does a ConfigMap, a label of a Pod template, or a variable of a container (`value: 8080`): an API
server would refuse it, and at an edge only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from schemas.objects.objects import CRD_GROUP, is_of_kubernetes
from schemas.objects.yaml_documents import Document, Position
from schemas.values.faults import Fault

_SELECTORS = ("selector", "selectors", "matchlabels")
_OF_LABELS = ("matchLabels", "matchExpressions")
_OF_METADATA = ("labels", "annotations")
_TEXTS_OF_PODS = re.compile(
    r"(?:^|\.)(?:nodeSelector|(?:initC|c|ephemeralC)ontainers\[\d+\]\."
    r"(?:args|command|image|env\[\d+\]\.value))$"
)
_TEXTS = {
    "ConfigMap": re.compile(r"^data$"),
    "Secret": re.compile(r"^(?:data|stringData)$"),
    "Service": re.compile(r"^spec\.selector$"),
}
"""The paths of Kubernetes' own kinds at which, and below which, all scalars are texts."""


@dataclass(frozen=True, slots=True)
class MisreadKey:
    """Such a key: what is to be said of it, where it stands, whether it chooses by a label."""

    fault: Fault
    position: Position
    selects: bool


def misread_keys(document: Document, obj: Mapping[str, Any]) -> Iterator[MisreadKey]:
    """Those of an object of the document."""
    # A definition names fields of others: none of them selects here.
    may_select = not str(obj.get("apiVersion")).startswith(f"{CRD_GROUP}/")
    if document.written_keys or may_select:
        yield from _below(document, obj, "", selects=False, may_select=may_select)
    if is_of_kubernetes(obj):
        texts = _TEXTS.get(str(obj["kind"]), _TEXTS_OF_PODS)
        yield from _at_texts(document, obj, "", texts)


def _below(
    document: Document, value: object, path: str, *, selects: bool, may_select: bool
) -> Iterator[MisreadKey]:
    match value:
        case dict():
            for key, item in value.items():
                if written := document.written_keys.get((id(value), key)):
                    said = f'the key {written} is read by YAML as "{key}"'
                    position = document.positions[id(value), key]
                    yield MisreadKey(Fault(path, said, "quote it"), position, selects)
                chooses = selects or (may_select and key.lower().endswith(_SELECTORS))
                below = f"{path}.{key}" if path else key
                if chooses and key in _OF_LABELS:
                    yield from _no_labels(document, item, below)
                # Of the object's own metadata others say more.
                if may_select and path.endswith(".metadata") and key in _OF_METADATA:
                    yield from _no_text(document, item, below)
                yield from _below(document, item, below, selects=chooses, may_select=may_select)
        case list():
            for at, item in enumerate(value):
                below = f"{path}[{at}]"
                yield from _below(document, item, below, selects=selects, may_select=may_select)
        case _:
            return


def _at_texts(
    document: Document, value: object, path: str, texts: re.Pattern[str]
) -> Iterator[MisreadKey]:
    """What is no text below the paths at which all is text."""
    items: Iterable[tuple[object, object]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        below = f"{path}[{key}]" if isinstance(value, list) else f"{path}.{key}".lstrip(".")
        if texts.search(below):
            for found in _no_label(document, (id(value), key), item, below):
                yield replace(found, selects=False)
        else:
            yield from _at_texts(document, item, below, texts)


def _no_text(document: Document, value: object, path: str) -> Iterator[MisreadKey]:
    """The same of a mapping that selects nothing."""
    if isinstance(value, dict):
        for found in _no_labels(document, value, path):
            yield replace(found, selects=False)


def _no_labels(document: Document, value: object, path: str) -> Iterator[MisreadKey]:
    """The scalars in these parts of a label selector that are no text."""
    match value:
        case dict():
            for key, item in value.items():
                yield from _no_label(document, (id(value), key), item, f"{path}.{key}")
        case list():
            for at, item in enumerate(value):
                yield from _no_label(document, (id(value), at), item, f"{path}[{at}]")
        case _:
            return


def _no_label(
    document: Document, at: tuple[int, object], item: object, path: str
) -> Iterator[MisreadKey]:
    if isinstance(item, (dict, list)):
        yield from _no_labels(document, item, path)
    elif isinstance(item, (bool, int, float)):
        read, written = json.dumps(item), document.written.get(at, "")
        said = f"{written or read} is not a string"
        said += f", YAML reads it as {read}" if written not in ("", read) else ""
        position = document.positions.get(at, document.position)
        yield MisreadKey(Fault(path, said, "quote it"), position, selects=True)
