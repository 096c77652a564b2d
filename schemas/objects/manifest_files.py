"""YAML text to Kubernetes objects: JSON types only, every fault with file, line and column.

A stream may hold many documents; empty ones are skipped, and lists (`kind: List`, `RoleList`) are
taken apart. Scalars are read as kubectl reads them (see scalars.py), merge keys (`<<`) and anchors
work. What kubectl lets pass and no one means is refused: a key given twice in one mapping,
tags that have no JSON form, aliases that blow a small text up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.objects.annotations import annotation_faults
from schemas.objects.misread_keys import MisreadKey, misread_keys
from schemas.objects.objects import title_of, validate_object
from schemas.objects.scalars import resolve
from schemas.objects.yaml_documents import Document, InvalidManifest, Position, Problem, read_all
from schemas.values.faults import Fault, InvalidObject

_LIST_DEPTH_MAX = 10

__all__ = ["InvalidManifest", "LoadedObject", "Problem", "load_manifests", "read_objects"]


@dataclass(frozen=True, slots=True)
class LoadedObject:
    """A valid object (a mapping of JSON types), the file it came from and its line, from 1.

    `notes` say, each with its place, what of it reads otherwise than it is written.
    """

    object: Mapping[str, Any]
    origin: str
    line: int
    notes: tuple[str, ...] = ()


def load_manifests(text: str, origin: str) -> list[LoadedObject]:
    """Read all objects of a text; `origin` names it in errors.

    Raises InvalidManifest if any part is wrong: with the first place in each document that is not
    YAML, and all objects that are not valid (no kind, a bad name, labels that are not strings, …).
    """
    loaded, problems = read_objects(text, origin)
    if problems:
        raise InvalidManifest(problems)
    return loaded


def read_objects(text: str, origin: str) -> tuple[list[LoadedObject], list[Problem]]:
    """The valid objects of a text, and all that is wrong with the rest."""
    loaded: list[LoadedObject] = []
    problems: list[Problem] = []
    for document in read_all(text, origin):
        if isinstance(document, InvalidManifest):
            problems.extend(document.problems)
            continue
        for obj, position in _objects(document, document.root, document.position, 0, problems):
            misread = list(misread_keys(document, obj))
            wrong = [_told(document, obj, key) for key in misread if key.selects]
            try:
                validate_object(obj)
                _check_annotations(obj)
            except InvalidObject as error:
                wrong += _located(document, obj, error)
            if wrong:
                problems += wrong
                continue
            notes = tuple(str(_told(document, obj, key)) for key in misread)
            loaded.append(LoadedObject(obj, origin, position.line, notes))
    return loaded, sorted(dict.fromkeys(problems), key=lambda problem: problem.position)


def _check_annotations(obj: Mapping[str, Any]) -> None:
    """Refuse annotations of ours that nobody reads, or that say nothing; raises InvalidObject."""
    if faults := list(annotation_faults(obj)):
        raise InvalidObject(*title_of(obj), faults)


def _objects(
    document: Document, value: object, position: Position, depth: int, problems: list[Problem]
) -> Iterator[tuple[Mapping[str, Any], Position]]:
    """The objects that a value holds: itself, or the items of a list of objects."""
    if not isinstance(value, dict):
        said = "not an object; write apiVersion, kind and metadata"
        problems.append(Problem(document.origin, position, said))
        return
    items = _items(value)
    if items is None:
        yield value, position
        return
    if not isinstance(items, list):
        said = f"{value['kind']}: items: not a list; write - before each object"
        problems.append(Problem(document.origin, position, said))
        return
    if depth >= _LIST_DEPTH_MAX:
        said = f"lists nested deeper than {_LIST_DEPTH_MAX}; write their objects in one list"
        problems.append(Problem(document.origin, position, said))
        return
    for at, item in enumerate(items):
        where = document.positions.get((id(items), at), position)
        if isinstance(item, dict):
            _complete(item, value)
        yield from _objects(document, item, where, depth + 1, problems)


def _items(value: Mapping[str, Any]) -> object:
    """What a list of objects lists; None if the value is no such list."""
    kind = value.get("kind")
    if not isinstance(kind, str) or not kind.endswith("List"):
        return None
    if kind == "List":
        return value.get("items") or []
    # A custom kind may be named `AllowList`: it then has a name, which lists never have.
    metadata = value.get("metadata")
    named = isinstance(metadata, Mapping) and "name" in metadata
    return None if named or "items" not in value else value["items"] or []


def _complete(item: dict[str, Any], holder: Mapping[str, Any]) -> None:
    """Give an item of a typed list the kind that the list implies, as the API server writes it."""
    kind = holder["kind"]
    if kind != "List" and "kind" not in item:
        item["kind"] = kind.removesuffix("List")
        item.setdefault("apiVersion", holder.get("apiVersion"))


def _located(document: Document, obj: Mapping[str, Any], error: InvalidObject) -> Iterator[Problem]:
    for fault in error.faults:
        position, written = _position_of(document, obj, fault)
        said = str(InvalidObject(error.kind, error.name, [_as_written(fault, written)]))
        yield Problem(document.origin, position, said)


def _told(document: Document, obj: Mapping[str, Any], key: MisreadKey) -> Problem:
    said = InvalidObject(*title_of(obj), [key.fault])
    return Problem(document.origin, key.position, str(said))


def _as_written(fault: Fault, written: str) -> Fault:
    """The fault of a plain scalar in the words of who wrote it: `y`, where it is read as true."""
    read = json.dumps(resolve(written)) if written else ""
    if read in ("", written) or fault.message != f"{read} is not a string":
        return fault
    return Fault(fault.path, f"{written} is not a string, YAML reads it as {read}", fault.remedy)


def _position_of(document: Document, obj: Mapping[str, Any], fault: Fault) -> tuple[Position, str]:
    """Where the fault's field stands, or the nearest that holds it; how a scalar is written."""
    written = ""
    position = document.positions.get((id(obj), None), document.position)
    value: object = obj
    for part in _parts(fault.path):
        if not isinstance(value, dict) or part not in value:
            break
        position = document.positions.get((id(value), part), position)
        written = document.written.get((id(value), part), "")
        value = value[part]
    return position, written


def _parts(path: str) -> Sequence[str]:
    """Take apart `metadata.labels[app.kubernetes.io/name]`."""
    return [first or second for first, second in re.findall(r"([^.\[\]]+)|\[([^\]]*)\]", path)]
