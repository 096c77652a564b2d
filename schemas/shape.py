"""Records as arrays: a frozen dataclass becomes a positional msgpack array, and comes back checked.

Fields are added at the end, with a default: an older reader ignores what it does not know, a newer
one fills in what is missing. Any value gives a record or a ShapeError, never another exception.
"""

from __future__ import annotations

import dataclasses
import operator
import types
import typing
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cache
from typing import Any, TypeVar, cast

from schemas.identity import BadIdentity, NodePath

T = TypeVar("T")
Decoder = Callable[[Any, str | None], Any]
"""Takes a value and its place; without a place the error names none, and reading is faster."""
Encoder = Callable[[Any], Any]
INT_MAX = 2**63 - 1
"""So that one more than any integer that was read can still be said."""


class ShapeError(ValueError):
    """A value that does not have the shape of its record; names the place and what is expected."""

    def __init__(self, path: str | None, expected: str, got: object) -> None:
        super().__init__(f"{path}: expected {expected}, got {type(got).__name__}")
        self.path = path or ""


def to_array(record: Any) -> Any:
    """The array form of a record, recursively."""
    kind = type(record)
    return record if kind in _SCALARS else _encoder(cast("Hashable", kind))(record)


def from_array(kind: type[T], value: object, path: str = "") -> T:
    """The record that the array says; raises ShapeError."""
    decode = _record(cast("Hashable", kind))
    decoded: T
    try:
        decoded = decode(value, None)
    except ShapeError:
        decoded = decode(value, path or kind.__name__)
    return decoded


_SCALARS = frozenset({int, str, bytes, bool, float, type(None)})


@cache
def _encoder(kind: Any) -> Encoder:
    if issubclass(kind, NodePath):
        return str
    if hasattr(kind, "to_wire"):
        return lambda record: record.to_wire()
    if dataclasses.is_dataclass(kind):
        names = tuple(field.name for field in dataclasses.fields(kind))
        return _fields_of(names)
    if issubclass(kind, (tuple, list)):
        return _items
    if issubclass(kind, Mapping):
        return _sorted_map
    return lambda record: record


def _items(items: Iterable[Any]) -> list[Any]:
    return [
        item if (kind := type(item)) in _SCALARS else _encoder(cast("Hashable", kind))(item)
        for item in items
    ]


def _sorted_map(record: Mapping[Any, Any]) -> dict[Any, Any]:
    if len(record) < 2:
        return {key: to_array(value) for key, value in record.items()}
    return {key: to_array(record[key]) for key in sorted(record)}


def _fields_of(names: tuple[str, ...]) -> Encoder:
    # Most fields are scalars: asked for here, they cost no call.
    fields, scalars = _reader_of(names), _SCALARS

    def encode(record: Any) -> list[Any]:
        return [
            v if (kind := type(v)) in scalars else _encoder(kind)(v)  # type: ignore[arg-type]
            for v in fields(record)
        ]

    return encode


def _reader_of(names: tuple[str, ...]) -> Callable[[Any], Iterable[Any]]:
    """All fields at once: two or more of them are read in one call."""
    if len(names) < 2:
        return lambda record: [getattr(record, name) for name in names]
    return operator.attrgetter(*names)


@cache
def _record(kind: Any) -> Decoder:
    hints = typing.get_type_hints(kind)
    fields = [(field.name, _decoder(hints[field.name])) for field in dataclasses.fields(kind)]
    # What is exactly of the type need not be looked at again, but for the range of integers.
    quick = [(_exact_kind(hints[name]), decoder) for name, decoder in fields]
    required = sum(field.default is dataclasses.MISSING for field in dataclasses.fields(kind))

    def decode(value: Any, path: str | None) -> Any:
        if not isinstance(value, (tuple, list)) or len(value) < required:
            raise ShapeError(path, f"an array of {required} or more", value)
        if path is None:
            arguments = [
                item
                if type(item) is exact and (exact is not int or 0 <= item <= INT_MAX)
                else decoder(item, None)
                for (exact, decoder), item in zip(quick, value, strict=False)
            ]
        else:
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


def _exact_kind(hint: Any) -> type[Any] | None:
    while hasattr(hint, "__supertype__"):  # NewType
        hint = hint.__supertype__
    return hint if hint in (int, str, bytes, bool) else None


def _decoder(hint: Any) -> Decoder:
    while hasattr(hint, "__supertype__"):  # NewType
        hint = hint.__supertype__
    origin = typing.get_origin(hint)
    arguments = typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _optional(_decoder(next(a for a in arguments if a is not type(None))))
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return _array(_decoder(arguments[0]))
    if origin is tuple:
        return _pair([_decoder(argument) for argument in arguments])
    if origin is not None and issubclass(origin, Mapping):
        return _mapping(_decoder(arguments[0]), _decoder(arguments[1]))
    if hint in (int, str, bytes, bool):
        return _scalar(hint)
    if hint is object or hint is Any:
        return lambda value, _: value
    if hint is NodePath:
        return _parsed(NodePath.parse)
    if hasattr(hint, "from_wire"):
        return _parsed(hint.from_wire)
    return _record(hint)


def _optional(inner: Decoder) -> Decoder:
    return lambda value, path: None if value is None else inner(value, path)


def _array(inner: Decoder) -> Decoder:
    def decode(value: Any, path: str | None) -> Any:
        if not isinstance(value, (tuple, list)):
            raise ShapeError(path, "an array", value)
        return tuple([inner(item, path) for item in value]) if value else ()

    return decode


def _pair(inner: list[Decoder]) -> Decoder:
    def decode(value: Any, path: str | None) -> Any:
        if not isinstance(value, (tuple, list)) or len(value) != len(inner):
            raise ShapeError(path, f"an array of {len(inner)}", value)
        return tuple([decoder(item, path) for decoder, item in zip(inner, value, strict=True)])

    return decode


def _mapping(key_decoder: Decoder, value_decoder: Decoder) -> Decoder:
    def decode(value: Any, path: str | None) -> Any:
        if type(value) is not dict and not isinstance(value, Mapping):
            raise ShapeError(path, "a map", value)
        if path is None:
            return {key_decoder(k, None): value_decoder(item, None) for k, item in value.items()}
        return {
            key_decoder(key, path): value_decoder(item, path and f"{path}.{key}")
            for key, item in value.items()
        }

    return decode


def _scalar(kind: type[Any]) -> Decoder:
    def decode(value: Any, path: str | None) -> Any:
        if type(value) is not kind:
            raise ShapeError(path, kind.__name__, value)
        if kind is int and not 0 <= value <= INT_MAX:
            raise ShapeError(path, "an integer from 0 to 2**63 - 1", value)
        return value

    return decode


def _parsed(parse: Callable[[Any], Any]) -> Decoder:
    def decode(value: Any, path: str | None) -> Any:
        try:
            return parse(value)
        except (BadIdentity, ValueError, TypeError, AttributeError, KeyError, IndexError) as error:
            raise ShapeError(path, str(error), value) from error

    return decode
