"""Manifests as text, with all in them that would act at a hub put into Denatureds.

What stays as it is is not written anew: its text goes through, with its comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

from controllers.core.workloads.denature import denature, would_act
from schemas.objects.yaml_documents import Document, InvalidManifest, Problem, read_all
from schemas.objects.yaml_writing import write_yaml
from schemas.values.faults import InvalidObject

LIST_DEPTH_MAX = 10
_FUNCTION_INPUT = "ResourceList"
"""What Kustomize gives to a function, and wants back."""
_BEGIN = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
# Where a document comes from, as Helm writes it, and blank lines.
_HEAD = re.compile(r"\A(?:---[ \t]*\r?\n)?((?:[ \t]*(?:#[^\n]*)?\n)*)")


def denatured_text(text: str, origin: str, namespace: str = "") -> str:
    """The same manifests, those that would act inside Denatureds; raises InvalidManifest."""
    documents = [*read_all(text, origin)]
    problems = [
        problem
        for found in documents
        for problem in (
            found.problems if isinstance(found, InvalidManifest) else _faults(found, namespace)
        )
    ]
    if problems:
        raise InvalidManifest(problems)
    read = [found for found in documents if isinstance(found, Document)]
    if not any(map(_acts, read)):
        return text
    begins = [0, *(found.start() for found in _BEGIN.finditer(text) if found.start()), len(text)]
    parts = [text[begin:end] for begin, end in pairwise(begins)]
    written = [_part(part, origin, namespace) for part in parts]
    if None in written:  # A part that is none alone, as behind a directive.
        return "---\n".join(_rewritten(read, namespace))
    return "".join(part for part in written if part is not None)


def _part(text: str, origin: str, namespace: str) -> str | None:
    """One document's text, or several in JSON; None if it cannot be read by itself."""
    found = [*read_all(text, origin)]
    documents = [each for each in found if isinstance(each, Document)]
    if len(documents) < len(found):
        return None
    if not any(map(_acts, documents)):
        return text if text.endswith("\n") else f"{text}\n"
    head = _HEAD.match(text)
    assert head is not None
    return "---\n" + head.group(1) + "---\n".join(_rewritten(documents, namespace))


def _rewritten(documents: Iterable[Document], namespace: str) -> Iterator[str]:
    for document in documents:
        if not _acts(document):
            yield write_yaml(document.root)
            continue
        listed = _objects(document.root)
        objects = [denature(obj, namespace) if would_act(obj) else obj for obj in listed]
        if document.root.get("kind") == _FUNCTION_INPUT:
            objects = [{**document.root, "items": objects}]
        yield from map(write_yaml, objects)


def _faults(document: Document, namespace: str) -> Iterator[Problem]:
    for obj in filter(would_act, _objects(document.root)):
        try:
            denature(obj, namespace)
        except InvalidObject as error:
            where = document.positions.get((id(obj), None), document.position)
            yield Problem(document.origin, where, str(error))


def _acts(document: Document) -> bool:
    return any(map(would_act, _objects(document.root)))


def _objects(value: Any, depth: int = 0) -> Iterator[Any]:
    """The objects that a document holds: itself, or the items of a list of objects."""
    items = value.get("items") if isinstance(value, dict) else None
    kind = value.get("kind") if isinstance(value, dict) else None
    named = isinstance(value, dict) and "name" in (value.get("metadata") or ())
    if not (isinstance(items, list) and isinstance(kind, str) and kind.endswith("List")) or named:
        yield value
        return
    for item in items if depth < LIST_DEPTH_MAX else ():
        of_kind = {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")}
        if isinstance(item, dict) and kind != "List" and "kind" not in item:
            item.update(of_kind)
        yield from _objects(item, depth + 1)
