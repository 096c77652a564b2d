"""Code that reads and writes the records of one kind, written when the first of the kind comes.

It names each field, as one would by hand, and takes a quarter of the time of asking the types of
fields for each record anew. What is written for `Listed(key: MailKey, generation: int)`:

    def read(value):
        if type(value) is not tuple: refuse()
        v0, v1, = value
        if not (type(v0) is str and type(v1) is int and 0 <= v1 <= INT_MAX): refuse()
        return Listed(v0, v1)

    def write(record):
        return [record.key, record.generation]

The reader takes what has all fields and no others, in tuples as `codec.unpack` makes them; of
anything else it raises one of REFUSALS, which says nothing of what is wrong.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from itertools import count
from typing import Any, cast

from schemas.identity import NodePath

INT_MAX = 2**63 - 1
"""So that one more than any integer that was read can still be said."""
REFUSALS = (ValueError, TypeError, AttributeError, KeyError, IndexError)
"""What comes of a value that is not of its type."""
SCALARS = (int, str, bytes, bool)


def fields_of(kind: Any) -> dict[str, Any]:
    """The types of a record's fields, in their order."""
    hints = typing.get_type_hints(kind)
    return {field.name: _unnamed(hints[field.name]) for field in dataclasses.fields(kind)}


def optional_of(hint: Any) -> Any:
    """`T` of `T | None`; None of any other type."""
    if typing.get_origin(hint) not in (types.UnionType, typing.Union):
        return None
    return next(_unnamed(a) for a in typing.get_args(hint) if a is not type(None))


def item_of(hint: Any) -> Any:
    """`T` of `tuple[T, ...]`; None of any other type."""
    return _unnamed(typing.get_args(hint)[0]) if typing.get_origin(hint) is tuple else None


def map_of(hint: Any) -> tuple[Any, Any] | None:
    """`K` and `V` of `Mapping[K, V]`; None of any other type."""
    origin = typing.get_origin(hint)
    if not isinstance(origin, type) or not issubclass(origin, Mapping):
        return None
    key, value = typing.get_args(hint)
    return _unnamed(key), _unnamed(value)


@cache
def reader(kind: Any) -> Callable[[object], Any]:
    """What makes a record of the kind of its array; raises one of REFUSALS."""
    return _Author().reader(kind)


@cache
def writer(kind: Any) -> Callable[[object], list[Any]]:
    """What makes an array of a record of the kind."""
    return _Author().writer(kind)


def _unnamed(hint: Any) -> Any:
    """What a NewType is made of."""
    while hasattr(hint, "__supertype__"):
        hint = hint.__supertype__
    return hint


def _refuse() -> None:
    raise ValueError


class _Author:
    """Writes one function, and keeps what it names."""

    def __init__(self) -> None:
        self._named: dict[str, object] = {"refuse": _refuse, "INT_MAX": INT_MAX}
        self._numbers = count()

    def reader(self, kind: Any) -> Callable[[object], Any]:
        hints = fields_of(kind)
        values = [self._variable() for _ in hints]
        tests = [
            test for each in zip(hints.values(), values, strict=True) if (test := _test(*each))
        ]
        taken = [self._taken(*each) for each in zip(hints.values(), values, strict=True)]
        return self._function(
            "def made(value):",
            " if type(value) is not tuple: refuse()",
            f" {', '.join(values)}, = value",
            f" if not ({' and '.join(tests) or True}): refuse()",
            f" return {self._name(kind)}({', '.join(taken)})",
        )

    def writer(self, kind: Any) -> Callable[[object], list[Any]]:
        said = [self._said(hint, f"record.{name}") for name, hint in fields_of(kind).items()]
        return self._function("def made(record):", f" return [{', '.join(said)}]")

    def _taken(self, hint: Any, value: str) -> str:
        """What is made of a value that the test admits; refuses what it did not look at."""
        if hint in SCALARS:
            return value
        if (inner := optional_of(hint)) is not None:
            return _unless_none(value, self._taken(inner, value))
        if (item := item_of(hint)) is not None:
            each = self._variable()
            made = f"{self._taken(item, each)} for {each} in {value}"
            return f"tuple([{made}{_only(_test(item, each))}]) if {value} else ()"
        if (pair := map_of(hint)) is not None:
            key, each = self._variable(), self._variable()
            tests = [test for test in (_test(pair[0], key), _test(pair[1], each)) if test]
            made = f"{self._taken(pair[0], key)}: {self._taken(pair[1], each)}"
            items = f"for {key}, {each} in {value}.items()"
            return f"{{{made} {items}{_only(' and '.join(tests))}}} if {value} else {{}}"
        if hint is NodePath:
            return f"{self._name(NodePath.parse)}({value})"
        return f"{self._name(getattr(hint, 'from_wire', None) or reader(hint))}({value})"

    def _said(self, hint: Any, value: str) -> str:
        """The array form of a value."""
        if hint in SCALARS:
            return value
        if (inner := optional_of(hint)) is not None:
            return _unless_none(value, self._said(inner, value))
        if (item := item_of(hint)) is not None:
            each = self._variable()
            return f"[{self._said(item, each)} for {each} in {value}] if {value} else []"
        if (pair := map_of(hint)) is not None:
            key = self._variable()
            said = self._said(pair[1], f"{value}[{key}]")
            return f"{{{key}: {said} for {key} in sorted({value})}} if {value} else {{}}"
        if hint is NodePath:
            return f"str({value})"
        if hasattr(hint, "to_wire"):
            return f"{value}.to_wire()"
        return f"{self._name(writer(hint))}({value})"

    def _variable(self) -> str:
        return f"v{next(self._numbers)}"

    def _name(self, thing: object) -> str:
        name = f"c{len(self._named)}"
        self._named[name] = thing
        return name

    def _function(self, *lines: str) -> Callable[[object], Any]:
        exec("\n".join(lines), self._named)  # noqa: S102 - written here, of nothing but types
        return cast("Callable[[object], Any]", self._named["made"])


def _test(hint: Any, value: str) -> str:
    """What holds if the value may be of the type; empty if that is seen when it is taken."""
    if (inner := optional_of(hint)) is not None:
        test = _test(inner, value)
        return f"({value} is None or {test})" if test else ""
    if hint is int:
        return f"type({value}) is int and 0 <= {value} <= INT_MAX"
    if hint in SCALARS:
        return f"type({value}) is {hint.__name__}"
    if item_of(hint) is not None:
        return f"type({value}) is tuple"
    if map_of(hint) is not None:
        return f"type({value}) is dict"
    return ""


def _only(test: str) -> str:
    """The end of a comprehension in which all that comes meets the test."""
    return f" if {test} or refuse()" if test else ""


def _unless_none(value: str, taken: str) -> str:
    return value if taken == value else f"None if {value} is None else {taken}"
