"""Bytes and values: canonical bytes, msgpack of plain values, JSON of files, content addresses.

The one importer of msgpack.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgpack
import msgspec

from schemas.values.identity import ContentHash
from schemas.values.refusals import CodecError

RECORD_MAX_BYTES = 1024 * 1024
VALUES_MAX = 1_000_000
"""In what is longer than a record: an empty map of one byte takes 64 once it is opened."""
JSON_VALUES_MAX = 2_000_000
"""In JSON that is longer than a record: an empty list of three bytes takes 64 once it is read."""
FILE_MAX_BYTES = 16 * 1024 * 1024
"""Of the JSON of a small file, or of an answer."""
PACKED_MEAN_BYTES = 1024
"""Room is made for so much at first: msgpack itself would begin with a megabyte."""
DEPTH_MAX = 100
OPENED_DEPTH_MAX = DEPTH_MAX + 28
"""Of what is opened: canonical values, and the lists and maps that they travel in."""
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1
_EXACT_FLOAT = 2**53
_ORDERED = msgspec.json.Encoder(order="deterministic")
_DECODED = msgspec.msgpack.Encoder(order="deterministic")
_FLOATS = b"\xca\xcb"
_HOLDERS = frozenset({dict, list, tuple})
_OPENING = bytes((*range(0x80, 0xA0), *range(0xDC, 0xE0)))
"""With what maps and arrays begin."""
_JSON = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_ESCAPE = re.compile(r"\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|.)")


def canonical(value: object) -> bytes:
    """The one byte string of a JSON-like value, however it came (protocol.md, "Canonical bytes").

    Map keys sorted by UTF-8 bytes, integers shortest, floats with an integral value below 2**53 as
    integers. Raises CodecError with the path of what cannot be said.
    """
    try:
        return pack(_sorted(value, 0))
    except (_Unusual, UnicodeEncodeError):
        # Once more, by the rules and not by the exact types, and with the path of what is wrong.
        return pack(_plain(value, "", 0))


def canonical_of_decoded(value: object) -> bytes:
    """The same of what was decoded from bytes: JSON's own types need not be looked for in it."""
    try:
        said = _DECODED.encode(value)
    except (TypeError, ValueError, ArithmeticError, RecursionError):
        return canonical(value)
    # Bytes of text may look like a float or like the begin of a map, and never the other way round.
    plain = len(said.translate(None, _OPENING)) > len(said) - DEPTH_MAX
    return said if plain and len(said.translate(None, _FLOATS)) == len(said) else canonical(value)


def digest(value: object) -> str:
    """32 hex digits of a JSON-like value, equal as long as nothing in it changes.

    Told of what one source says again and again, in no time: two ways to say the same may differ.
    Raises CodecError.
    """
    try:
        said = _ORDERED.encode(value)
    except (TypeError, ValueError, RecursionError):
        said = canonical(value)
    return hashlib.sha256(said).hexdigest()[:32]


def pack(value: object) -> bytes:
    """Encode a value: arrays, strings, integers, booleans, bytes and nil."""
    # As `packb`, which takes longer to pass its settings on than to pack a small value.
    packed: bytes = msgpack.Packer(buf_size=PACKED_MEAN_BYTES).pack(value)
    return packed


def unpack(
    data: bytes,
    limit: int = RECORD_MAX_BYTES,
    *,
    lists: bool = False,
    deepest: int = OPENED_DEPTH_MAX,
) -> Any:
    """Decode one value and nothing after it; raises CodecError, whatever the bytes are.

    Arrays are tuples, or `lists`. What walks over the value needs no bound of its own: it is nested
    at most so many levels.
    """
    check_size(data, limit)
    try:
        value = msgpack.unpackb(
            data,
            raw=False,
            use_list=lists,
            strict_map_key=True,
            max_str_len=limit,
            max_bin_len=limit,
            # Each item has a byte at least: what claims more is refused before room is made.
            max_array_len=len(data),
            max_map_len=len(data) // 2,
            max_ext_len=0,
        )
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise CodecError("", f"not msgpack: {error}") from error
    # Most values do not open so many maps and lists in all; a byte of a text counts as one.
    if len(data) - len(data.translate(None, _OPENING)) > deepest:
        check_depth(value, deepest)
    return value


def check_depth(value: object, deepest: int = OPENED_DEPTH_MAX) -> None:
    """Refuse what is nested too deeply to be sent or walked over; raises CodecError."""
    level: list[Any] = [value] if type(value) in _HOLDERS else []
    for _ in range(deepest):
        if not level:
            return
        below: list[Any] = []
        for holder in level:
            items = holder.values() if type(holder) is dict else holder
            below += [item for item in items if type(item) in _HOLDERS]
        level = below
    if level:
        raise CodecError("", f"nested deeper than {deepest} levels")


def fields_end(data: bytes, count: int) -> int:
    """Where the first so many items of an array end in its bytes; raises CodecError."""
    unpacker = msgpack.Unpacker(max_buffer_size=max(len(data), 1))
    try:
        unpacker.feed(data)
        items: int = unpacker.read_array_header()
        for _ in range(min(items, count)):
            unpacker.skip()
    except (ValueError, TypeError, RecursionError, msgpack.UnpackException) as error:
        raise CodecError("", f"not msgpack: {error}") from error
    if items < count:
        raise CodecError("", f"fewer than {count} items")
    end: int = unpacker.tell()
    return end


def from_json(text: str | bytes, limit: int = FILE_MAX_BYTES) -> Any:
    """Read JSON of finite numbers; raises CodecError, whatever the text is."""
    if len(text) > limit:
        raise CodecError("", f"{len(text)} bytes, at most {limit} are read")
    if has_too_many_values(text):
        raise CodecError("", f"more than {JSON_VALUES_MAX} values")
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CodecError("", f"not JSON: {error}") from error


def has_too_many_values(text: str | bytes) -> bool:
    """Whether JSON has more than JSON_VALUES_MAX values; counted without reading it."""
    if len(text) <= RECORD_MAX_BYTES:
        return False
    data = text.encode(errors="replace") if isinstance(text, str) else text
    if _json_values(data) <= JSON_VALUES_MAX:
        return False
    # Texts hold commas and brackets, too: count those beside them. A value has two texts at most.
    data = data.replace(rb"\\", b"").replace(rb"\"", b"")
    if data.count(b'"') > 4 * JSON_VALUES_MAX:
        return True
    return _json_values(b"".join(data.split(b'"')[::2])) > JSON_VALUES_MAX


def _json_values(data: bytes) -> int:
    """Each value but the first of a list or map follows a comma."""
    return sum(data.count(mark) for mark in (b",", b"[", b"{"))


def to_json(value: object) -> bytes:
    """JSON on one line, of finite numbers, that is YAML, too; raises CodecError with the path.

    Whoever reads it as YAML, as API servers do with an apply, knows no pair of escapes for one
    character: such go out as they are. All others stay escapes, for YAML takes some of these for
    blanks and refuses others.
    """
    try:
        said = _JSON.encode(value)
        return (_ESCAPE.sub(_joined, said) if "\\ud" in said else said).encode()
    except (TypeError, ValueError, RecursionError) as error:
        canonical(value)
        raise CodecError("", f"not to be said in JSON: {error}") from error


def _joined(escape: re.Match[str]) -> str:
    high, low = escape.groups()
    if high is None:
        return escape.group()
    return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + (int(low, 16) - 0xDC00))


def address(kind: str, plain: bytes) -> ContentHash:
    """SHA-256 over type prefix, length and canonical bytes (protocol.md, "Content")."""
    head = b"leafcast/" + kind.encode() + b"/1\0" + len(plain).to_bytes(8, "big")
    return ContentHash(hashlib.sha256(head + plain).hexdigest())


def check_size(data: bytes, limit: int) -> None:
    """Refuse what is too much to open, of bytes or of values; raises CodecError."""
    if len(data) > limit:
        raise CodecError("", f"{len(data)} bytes, at most {limit} are read")
    if len(data) > RECORD_MAX_BYTES:
        _check_count(data, VALUES_MAX)


def check_holders(data: bytes, most: int) -> None:
    """Refuse what has so many values that it may have more maps and lists; raises CodecError."""
    if len(data) - len(data.translate(None, _OPENING)) > most:
        _check_count(data, most)


def _check_count(data: bytes, most: int) -> None:
    """Walk over the values without opening them; raises CodecError if they are too many."""
    at = 0
    for _ in range(most):
        if at >= len(data):
            return
        size, counted = _SIZES[data[at]]
        at += 1
        at += size + (int.from_bytes(data[at : at + counted], "big") if counted else 0)
    raise CodecError("", f"more than {most} values")


def _sizes() -> list[tuple[int, int]]:
    """By first byte: how many bytes follow, and of how many at their beginning tell of yet more."""
    sizes = [(0, 0)] * 256
    for first in range(0xA0, 0xC0):
        sizes[first] = (first & 31, 0)
    for at, length in enumerate((1, 2, 4)):
        sizes[0xC4 + at] = sizes[0xD9 + at] = (length, length)
    for first, size in zip(range(0xCA, 0xD4), (4, 8, 1, 2, 4, 8, 1, 2, 4, 8), strict=True):
        sizes[first] = (size, 0)
    for first, size in zip((0xDC, 0xDD, 0xDE, 0xDF), (2, 4, 2, 4), strict=True):
        sizes[first] = (size, 0)
    return sizes


_SIZES = _sizes()


_TEXT = frozenset({str})
_SAID_AS_IS = frozenset({str, bool, type(None)})


class _Unusual(Exception):
    """A value that is not just of JSON's own types, or cannot be said."""


def _sorted(value: Any, depth: int) -> Any:
    """What `_plain` returns, for values of exactly JSON's types: all that is read from bytes."""
    kind = type(value)
    if kind in _SAID_AS_IS:
        return value
    if kind is dict:
        if depth >= DEPTH_MAX or not _TEXT.issuperset(map(type, value)):
            raise _Unusual
        # The order of code points is that of their UTF-8 bytes. Most values are text.
        return {
            key: item if type(item := value[key]) in _SAID_AS_IS else _sorted(item, depth + 1)
            for key in sorted(value)
        }
    if kind is list or kind is tuple:
        if depth >= DEPTH_MAX:
            raise _Unusual
        return [item if type(item) in _SAID_AS_IS else _sorted(item, depth + 1) for item in value]
    if kind is int and _INT_MIN <= value <= _INT_MAX:
        return value
    raise _Unusual


def _plain(value: object, path: str, depth: int) -> object:
    if depth > DEPTH_MAX:
        raise CodecError(path, f"nested deeper than {DEPTH_MAX} levels")
    match value:
        case None | bool():
            return value
        case int():
            if not _INT_MIN <= value <= _INT_MAX:
                raise CodecError(path, "an integer beyond 64 bits; say it as a string")
            return int(value)
        case float():
            return _number(value, path)
        case str():
            return _text(value, path)
        case Mapping():
            return _mapping(value, path, depth)
        case bytes() | bytearray() | memoryview():
            raise CodecError(path, "bytes; encode them as a base64 string")
        case Sequence():
            return [_plain(item, f"{path}[{at}]", depth + 1) for at, item in enumerate(value)]
        case _:
            raise CodecError(path, f"a {type(value).__name__} has no JSON form")


def _mapping(value: Mapping[object, object], path: str, depth: int) -> dict[str, object]:
    texts = {}
    for key in value:
        if not isinstance(key, str):
            raise CodecError(path, f"the key {key!r} is not a string; quote it")
        texts[_text(key, path).encode()] = key
    return {
        texts[raw]: _plain(value[texts[raw]], f"{path}.{texts[raw]}", depth + 1)
        for raw in sorted(texts)
    }


def _number(value: float, path: str) -> float | int:
    if not math.isfinite(value):
        raise CodecError(path, "NaN and infinities have no JSON form")
    if value.is_integer() and abs(value) < _EXACT_FLOAT:
        return int(value)
    return value


def _text(value: str, path: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise CodecError(path, "a lone surrogate is no text") from error
    return str(value)
