"""Values of expressions as bytes whose order is theirs: what rows are sorted, and grouped, by.

Null, then false and true, numbers by size whatever their type, texts, lists, maps.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

from schemas.values import codec
from schemas.values.refusals import CodecError

_NULL, _FALSE, _TRUE, _NAN, _NUMBER, _TEXT, _LIST, _MAP = (
    b"\1",
    b"\2",
    b"\3",
    b"\4",
    *(bytes((first,)) for first in (5, 6, 7, 8)),
)
_END, _NUL, _ESCAPED = b"\0\1", b"\0", b"\0\xff"
_DOUBLE = struct.Struct(">d")
_NUMBER_BYTES = 10
_SIGN = 1 << 63
_ALL = (1 << 64) - 1
_REST_ZERO = 1 << 15
"""An integer that no double says exactly is off by less than this."""


def pack_values(values: Sequence[Any]) -> bytes:
    """The bytes of these values one after the other; raises CodecError for what has none."""
    return b"".join([_pack(value) for value in values])


def unpack_values(data: bytes) -> list[Any]:
    """What such bytes say; raises CodecError, whatever they are."""
    values, at = [], 0
    while at < len(data):
        value, at = _unpack(data, at)
        values.append(value)
    return values


def _pack(value: Any) -> bytes:
    match value:
        case None:
            return _NULL
        case bool():
            return _TRUE if value else _FALSE
        case int() | float():
            return _pack_number(value)
        case str():
            try:
                return _TEXT + _closed(value.encode())
            except UnicodeEncodeError as error:
                raise CodecError("", "a lone surrogate is no text") from error
        case list() | tuple():
            return _LIST + _closed(codec.canonical(value))
        case dict():
            return _MAP + _closed(codec.canonical(value))
        case _:
            raise CodecError("", f"a {type(value).__name__} has no form")


def _pack_number(value: int | float) -> bytes:
    """Doubles by their bits; of an integer that none says, besides how far off the nearest is."""
    if value != value:  # noqa: PLR0124 - NaN, and nothing else
        return _NAN
    near = float(value) + 0.0
    rest = 0
    if isinstance(value, int):
        rest = value - int(near)
        if not -_REST_ZERO <= rest < _REST_ZERO:
            raise CodecError("", "an integer beyond 64 bits")
    (bits,) = struct.unpack(">Q", _DOUBLE.pack(near))
    bits = bits ^ _ALL if bits & _SIGN else bits | _SIGN
    said: bytes = bits.to_bytes(8, "big") + (rest + _REST_ZERO).to_bytes(2, "big")
    return _NUMBER + said


def _closed(raw: bytes) -> bytes:
    return raw.replace(_NUL, _ESCAPED) + _END


def _unpack(data: bytes, at: int) -> tuple[Any, int]:
    first, at = data[at : at + 1], at + 1
    match first:
        case b"\1":
            return None, at
        case b"\2" | b"\3":
            return first == _TRUE, at
        case b"\4":
            return math.nan, at
        case b"\5":
            return _unpack_number(data[at : at + _NUMBER_BYTES]), at + _NUMBER_BYTES
        case b"\6" | b"\7" | b"\10":
            return _unpack_closed(first, data, at)
        case _:
            raise CodecError("", f"no value begins with {first!r}")


def _unpack_number(raw: bytes) -> float:
    if len(raw) != _NUMBER_BYTES:
        raise CodecError("", "a number is cut off")
    bits = int.from_bytes(raw[:8], "big")
    bits = bits & ~_SIGN if bits & _SIGN else bits ^ _ALL
    near = float(_DOUBLE.unpack(bits.to_bytes(8, "big"))[0])
    rest = int.from_bytes(raw[8:], "big") - _REST_ZERO
    if math.isnan(near) or (rest and not near.is_integer()):
        raise CodecError("", "no such number")
    return int(near) + rest if rest or (near.is_integer() and abs(near) < 2**64) else near


def _unpack_closed(first: bytes, data: bytes, at: int) -> tuple[Any, int]:
    end = data.find(_END, at)
    if end < 0:
        raise CodecError("", "a value is cut off")
    raw = data[at:end].replace(_ESCAPED, _NUL)
    if first != _TEXT:
        return _as_lists(codec.unpack(raw)), end + len(_END)
    try:
        return raw.decode(), end + len(_END)
    except UnicodeDecodeError as error:
        raise CodecError("", "no text") from error


def _as_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_lists(item) for key, item in value.items()}
    return [_as_lists(item) for item in value] if isinstance(value, tuple) else value
