"""Records as arrays: a frozen dataclass becomes a positional msgpack array, and comes back checked.

Fields are added at the end, with a default: an older reader ignores what it does not know, a newer
one fills in what is missing. Any value gives a record or a ShapeError, never another exception.

What is said by a program of this version takes a short way, by code that `schemas.shape_code` wrote
for its kind. All else is read here, which says what is right, and where a value is not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from typing import Any, TypeVar, cast

from schemas.identity import NodePath
from schemas.shape_code import (
    INT_MAX,
    REFUSALS,
    SCALARS,
    fields_of,
    item_of,
    map_of,
    optional_of,
    reader,
    writer,
)

__all__ = ["INT_MAX", "ShapeError", "from_array", "to_array"]

_T = TypeVar("_T")
_Decoder = Callable[[Any, str], Any]
"""Takes a value and its place."""


class ShapeError(ValueError):
    """A value that does not have the shape of its record; names the place and what is expected."""

    def __init__(self, path: str, expected: str, got: object) -> None:
        super().__init__(f"{path}: expected {expected}, got {type(got).__name__}")
        self.path = path


def to_array(record: object) -> list[Any]:
    """The array form of a record, recursively."""
    return writer(type(record))(record)  # type: ignore[arg-type]


def from_array(kind: type[_T], value: object, path: str = "") -> _T:
    """The record that the array says; raises ShapeError."""
    decoded: _T
    try:
        decoded = reader(kind)(value)  # type: ignore[arg-type]
    except REFUSALS:
        decoded = _record(cast("Hashable", kind))(value, path or kind.__name__)
    return decoded


@cache
def _record(kind: Any) -> _Decoder:
    fields = [(name, _decoder(hint)) for name, hint in fields_of(kind).items()]
    required = sum(field.default is dataclasses.MISSING for field in dataclasses.fields(kind))

    def decode(value: Any, path: str) -> Any:
        if not isinstance(value, (tuple, list)) or len(value) < required:
            raise ShapeError(path, f"an array of {required} or more", value)
        arguments = [
            decoder(item, f"{path}.{name}")
            for (name, decoder), item in zip(fields, value, strict=False)
        ]
        try:
            return kind(*arguments)
        except ShapeError:
            raise
        except ValueError as error:
            raise ShapeError(path, str(error), value) from error

    return decode


def _decoder(hint: Any) -> _Decoder:
    if (inner := optional_of(hint)) is not None:
        return _optional(_decoder(inner))
    if (item := item_of(hint)) is not None:
        return _array(_decoder(item))
    if (pair := map_of(hint)) is not None:
        return _mapping(_decoder(pair[0]), _decoder(pair[1]))
    if hint in SCALARS:
        return _scalar(hint)
    if hint is NodePath:
        return _parsed(NodePath.parse)
    if hasattr(hint, "from_wire"):
        return _parsed(hint.from_wire)
    return _record(hint)


def _optional(inner: _Decoder) -> _Decoder:
    return lambda value, path: None if value is None else inner(value, path)


def _array(inner: _Decoder) -> _Decoder:
    def decode(value: Any, path: str) -> Any:
        if not isinstance(value, (tuple, list)):
            raise ShapeError(path, "an array", value)
        return tuple([inner(item, path) for item in value])

    return decode


def _mapping(key_decoder: _Decoder, value_decoder: _Decoder) -> _Decoder:
    def decode(value: Any, path: str) -> Any:
        if not isinstance(value, Mapping):
            raise ShapeError(path, "a map", value)
        return {
            key_decoder(key, path): value_decoder(item, f"{path}.{key}")
            for key, item in value.items()
        }

    return decode


def _scalar(kind: type[Any]) -> _Decoder:
    def decode(value: Any, path: str) -> Any:
        if type(value) is not kind:
            raise ShapeError(path, kind.__name__, value)
        if kind is int and not 0 <= value <= INT_MAX:
            raise ShapeError(path, "an integer from 0 to 2**63 - 1", value)
        return value

    return decode


def _parsed(parse: Callable[[Any], Any]) -> _Decoder:
    def decode(value: Any, path: str) -> Any:
        try:
            return parse(value)
        except REFUSALS as error:
            raise ShapeError(path, str(error), value) from error

    return decode
