"""How values stand in the vectors' files: bytes as hex, records as arrays by position."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from schemas.values import codec
from schemas.values.wire import encode

Json = Any


class Case(NamedTuple):
    """One vector: `given` goes in; `expected` is what is stated by hand of what comes out."""

    name: str
    rule: str
    given: Mapping[str, Json]
    expected: Mapping[str, Json] = {}


def as_json(value: object) -> Json:
    """A decoded msgpack value as JSON; bytes are `{"hex": ...}`."""
    match value:
        case bytes():
            return {"hex": value.hex()}
        case Mapping():
            return {str(name): as_json(item) for name, item in value.items()}
        case list() | tuple():
            return [as_json(item) for item in value]
        case _:
            return value


def from_json(value: Json) -> Any:
    """The value that `as_json` showed."""
    match value:
        case {"hex": str(text)} if len(value) == 1:
            return bytes.fromhex(text)
        case dict():
            return {name: from_json(item) for name, item in value.items()}
        case list():
            return [from_json(item) for item in value]
        case _:
            return value


def fields_of(record: object) -> Json:
    """All fields of a record by position, those that were left out with their defaults."""
    return as_json(codec.unpack(encode(record)))
