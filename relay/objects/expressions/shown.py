"""What collectors look at in an object: that part of it which gives the same rows as all of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from relay.objects.expressions.bounds import TooCostly, largest_in, literal_tokens
from relay.objects.expressions.programs import Expressions
from schemas.codec import canonical
from schemas.collectors import SHOWN_MAX_BYTES, Program
from schemas.objects import ObjectKey

Path = tuple[str, ...]
PROGRAMS_MAX = 256
_VARIABLE: Final = "obj"
_SECRETS = ("", "secrets")
_CONFIDENTIAL = ("data", "stringData", "binaryData")
_ANNOTATIONS = ("metadata", "annotations")
_LABELS = ("metadata", "labels")


def paths_in(text: str) -> frozenset[Path] | None:
    """The paths at which an expression looks; None if that may be anywhere."""
    tokens = literal_tokens(text)
    paths = set()
    for at, token in enumerate(tokens):
        if token != _VARIABLE:
            continue
        path = _path_after(tokens, at + 1)
        # A dot before it is a field, or the variable of that name at the root.
        if not path or tokens[at - 1 : at] == ["."]:
            return None
        paths.add(path)
    # Escapes and quoted names are read by CEL alone: they may hide where a text ends.
    is_plain = _VARIABLE not in text or {"\\", "`"}.isdisjoint(text)
    return frozenset(paths) if is_plain else None


def shown_of(
    key: ObjectKey, obj: Mapping[str, Any], size: int, programs: Iterable[Program]
) -> bytes:
    """The canonical bytes of what programs look at in an object of so many bytes.

    Empty if they look nowhere, at what is confidential, or at more than labels and single values:
    of a list or a map their rows may say less than it does.
    """
    paths = set[Path]()
    largest = largest_in([obj])
    for program in programs:
        looked = _looked_at(program, largest, size)
        if looked is None or any(_is_hidden(key, obj, path) for path in looked):
            return b""
        paths |= looked
    shown = canonical(_reduced(obj, paths)) if paths else b""
    return shown if len(shown) <= SHOWN_MAX_BYTES else b""


def _looked_at(program: Program, largest: int, size: int) -> frozenset[Path] | None:
    expressions, paths = _of_program(program)
    try:
        for each in expressions.all if paths else ():
            if each.shape.deep or each.shape.joins:
                each.shape.check(largest, size)
    except TooCostly:
        # It would not be over less.
        return None
    return paths


@lru_cache(PROGRAMS_MAX)
def _of_program(program: Program) -> tuple[Expressions, frozenset[Path] | None]:
    expressions = Expressions(program)
    if expressions.faults or program.source is not None:
        return expressions, frozenset()
    columns = (*program.group_by, *program.select)
    subjects = (item.subject for item in program.combined)
    found = [paths_in(it) for it in (program.filter, *(c.definition for c in columns), *subjects)]
    if any(paths is None for paths in found):
        return expressions, None
    return expressions, frozenset[Path]().union(*(paths for paths in found if paths))


def _path_after(tokens: list[str], at: int) -> Path:
    path: list[str] = []
    while True:
        following = tokens[at : at + 3]
        if following[:1] == ["."] and following[1].isidentifier() and following[2:] != ["("]:
            path.append(following[1])
            at += 2
        elif following[:1] == ["["] and following[2:] == ["]"] and _is_plain(following[1]):
            path.append(following[1][1:-1])
            at += 3
        else:
            return tuple(path)


def _is_plain(token: str) -> bool:
    return token[0] in "'\"" and not token.startswith(("'''", '"""'))


def _is_hidden(key: ObjectKey, obj: Mapping[str, Any], path: Path) -> bool:
    """Whether nobody is to see what lies there: what is confidential, and what rows say less of."""
    is_secret = (key.group, key.resource) == _SECRETS
    if path[0] in _CONFIDENTIAL or (is_secret and path[:2] == _ANNOTATIONS):
        return True
    value: Any = obj
    for name in path:
        if not isinstance(value, Mapping) or name not in value:
            return not isinstance(value, Mapping)
        value = value[name]
    return isinstance(value, Mapping | list) and path != _LABELS


def _reduced(value: Any, paths: Iterable[Path]) -> Any:
    """The value with nothing beside these paths; where one ends early, what is there instead."""
    if not isinstance(value, Mapping) or () in paths:
        return value
    below: dict[str, set[Path]] = {}
    for name, *rest in paths:
        below.setdefault(name, set()).add(tuple(rest))
    return {name: _reduced(value[name], below[name]) for name in below if name in value}
