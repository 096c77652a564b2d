"""What came as an answer to an ask, read with care: who gives it may be anyone, and says anything.

Answers to `node` are in `elsewhere`, those to `status` in `destinations`. A list comes page by
page, each beyond the one before, so that it ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from schemas.records.answer_bounds import MOMENT_MAX_MS, TEXT_MAX_CHARACTERS
from schemas.values.identity import NodePath
from schemas.values.refusals import BadIdentity

OBJECTS_MAX = 100_000
_TERM = re.compile(r"[0-9a-f]{16}\Z")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")


class BadAnswer(ValueError):
    """An answer that is none to what was asked; says what it should be."""


def read_objects(
    answer: object, after: str, *, kept: bool = False
) -> tuple[list[dict[str, Any]], str]:
    """The objects of a page, and where the next begins ("" at the end); raises BadAnswer.

    With `kept` it must say that it lists only these: an older program lists all.
    """
    if kept and not (isinstance(answer, Mapping) and answer.get("kept") is True):
        raise BadAnswer("its program does not tell what is kept; upgrade it")
    objects = _list_in(answer, "objects")
    if not all(isinstance(obj, dict) and isinstance(obj.get("metadata"), dict) for obj in objects):
        raise BadAnswer("it lists what is no object")
    return objects, _next_in(answer, after, objects, _place)


class CopyForm(NamedTuple):
    """An object that an edge brought up, as it was there at a moment."""

    path: NodePath
    as_of_ms: int
    object: dict[str, Any]


def read_copies(
    answer: object, path: NodePath, after: str
) -> tuple[list[CopyForm], list[str], str]:
    """Copies of a page of a relay's, its children that are relays, where the next page begins.

    Raises BadAnswer.
    """
    copies = [_copy(item, path) for item in _list_in(answer, "copies")]
    relays = _list_in(answer, "relays")
    if not all(isinstance(name, str) and _NAME.match(name) for name in relays):
        raise BadAnswer("it lists what is no child")
    following = _field(answer, "next")
    if not isinstance(following, str) or len(following) > TEXT_MAX_CHARACTERS:
        raise BadAnswer("its next page has no name")
    # A page may be empty: so many copies were read for it, and none was wanted.
    if following and _copies_place(following) <= _copies_place(after):
        raise BadAnswer("its next page is no later one")
    return copies, relays, following


def _copy(item: object, path: NodePath) -> CopyForm:
    if not isinstance(item, Mapping):
        raise BadAnswer("it lists what is no copy")
    text, as_of, obj = item.get("path"), item.get("asOfMs"), item.get("object")
    try:
        edge = NodePath.parse(text) if isinstance(text, str) else None
    except BadIdentity:
        edge = None
    if edge is None or edge.is_root or edge.parent != path:
        raise BadAnswer("a copy is of none of its edges")
    if type(as_of) is not int or not 0 <= as_of <= MOMENT_MAX_MS:
        raise BadAnswer("a copy says no time")
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
        raise BadAnswer("it lists what is no object")
    if not isinstance(obj["metadata"].get("name"), str):
        raise BadAnswer("it lists an object without a name")
    return CopyForm(edge, as_of, obj)


def _copies_place(name: str) -> tuple[str, int]:
    edge, _, sequence = name.rpartition("/")
    if not name:
        return "", 0
    if not sequence.isdecimal() or len(sequence) > 20:
        raise BadAnswer("its next page has no name")
    return edge, int(sequence)


class OrphanForm(NamedTuple):
    """A record that a node holds and whose term the centre does not know."""

    key: str
    kind: str
    namespace: str
    name: str
    generation: int
    # 16 hex digits.
    term: str
    # Of a node, whose path is its name: its public key.
    nkey: str


class OrphansPage(NamedTuple):
    """A page of a node's orphans, its children, those that never joined, where the next begins."""

    found: list[OrphanForm]
    children: list[str]
    absent: frozenset[str]
    after: str


def read_orphans(answer: object, after: str) -> OrphansPage:
    """Raises BadAnswer."""
    found = [_orphan(item) for item in _list_in(answer, "orphans")]
    children = _list_in(answer, "children")
    # Older nodes do not say it.
    told = isinstance(answer, Mapping) and "absent" in answer
    absent = _list_in(answer, "absent") if told else []
    if not all(isinstance(name, str) and _NAME.match(name) for name in (*children, *absent)):
        raise BadAnswer("it lists what is no child")
    return OrphansPage(found, children, frozenset(absent), _next_in(answer, after, found, str))


def _orphan(item: object) -> OrphanForm:
    if not isinstance(item, Mapping):
        raise BadAnswer("it lists what is no orphan")
    texts = [item.get(name) for name in ("key", "kind", "namespace", "name", "term", "nkey")]
    generation = item.get("generation")
    if type(generation) is not int or generation < 0:
        raise BadAnswer("an orphan has no generation")
    if not all(isinstance(text, str) and len(text) <= TEXT_MAX_CHARACTERS for text in texts):
        raise BadAnswer("an orphan lacks a text")
    key, kind, namespace, name, term, nkey = map(str, texts)
    if not _TERM.match(term):
        raise BadAnswer("an orphan has no term")
    return OrphanForm(key, kind, namespace, name, generation, term, nkey)


def _field(answer: object, name: str) -> object:
    if not isinstance(answer, Mapping) or name not in answer:
        raise BadAnswer(f"it has no {name!r}")
    return answer[name]


def _list_in(answer: object, name: str) -> list[Any]:
    found = _field(answer, name)
    if not isinstance(found, (list, tuple)):
        raise BadAnswer(f"its {name!r} is no list")
    return list(found)


def _next_in(
    answer: object, after: str, page: Sequence[object], order: Callable[[str], Any]
) -> str:
    """Where the next page begins: behind this one, which holds something, so that a list ends."""
    following = _field(answer, "next")
    if not isinstance(following, str):
        raise BadAnswer("its next page has no name")
    if following and (not page or order(following) <= order(after)):
        raise BadAnswer("its next page is no later one")
    return following


def _place(name: str) -> tuple[str, ...]:
    """The order of objects: by namespace, then by name."""
    return tuple(name.split("/", 1))
