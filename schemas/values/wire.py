"""Records on the wire: frozen structs as positional msgpack arrays, checked when they are read.

Fields are added at the end, with a default: an older reader ignores what it does not know, a newer
one fills in what is missing. Any bytes give a record or a RecordRefused, never another exception.

Snapshots have forms of their own (`schemas.records.snapshots`); all else is read and written here.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta as Meta
from msgspec import field as field
from msgspec import to_builtins as to_builtins
from msgspec.inspect import DictType, StructType, type_info
from msgspec.structs import asdict as asdict
from msgspec.structs import astuple as astuple
from msgspec.structs import force_setattr as force_setattr
from msgspec.structs import replace as replace

from schemas.values.codec import RECORD_MAX_BYTES, check_size
from schemas.values.identity import NodePath
from schemas.values.refusals import CodecError, RecordRefused

INT_MAX = 2**63 - 1
"""So that one more than any integer that was read can still be said."""
Natural = Annotated[int, Meta(ge=0, le=INT_MAX)]
"""The integers of the wire."""

_R = TypeVar("_R", bound="WireRecord")
_T = TypeVar("_T")
_PLACE = re.compile(r" - at (?:`key` in )?`\$([][0-9.]*)`\Z")
_STEP = re.compile(r"[0-9.]+")


class WireRecord(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The base of all records; a class of one says `frozen=True` again, for the type checker.

    Fields are of str, bytes, bool, Natural, NodePath, LabelSelector and other records, in optional
    ones, tuples and maps. What `__post_init__` raises as a ValueError refuses the record.
    """


def encode(record: object) -> bytes:
    """The bytes of a record, or of a plain value with records in it; maps are sorted by key."""
    return _ENCODER.encode(record)


def decode(kind: type[_R], data: bytes, limit: int = RECORD_MAX_BYTES, name: str = "") -> _R:
    """The record that the bytes say; raises RecordRefused, which calls it by the name."""
    name = name or kind.__name__
    try:
        check_size(data, limit)
        decoded: _R = _decoder(kind).decode(data)
    except msgspec.ValidationError as error:
        raise RecordRefused(_with_fields(str(error), name, kind)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, CodecError) as error:
        raise RecordRefused(f"{name}: {error}") from error
    return decoded


def convert(kind: type[_T], value: object, name: str) -> _T:
    """What a value of plain arrays says; raises RecordRefused, which calls it by the name."""
    try:
        return msgspec.convert(value, kind, dec_hook=_read)
    except (msgspec.ValidationError, RecursionError, UnicodeEncodeError) as error:
        # The last of a text that has no bytes: JSON can say half of a character.
        raise RecordRefused(_with_fields(str(error), name, kind)) from error


@cache
def _decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(kind, dec_hook=_read)


def _read(kind: Any, value: Any) -> object:
    """A value of a type that msgspec does not know."""
    if kind is not NodePath:
        return kind.from_wire(value)
    if not isinstance(value, str):
        raise TypeError(f"Expected `str`, got `{type(value).__name__}`")
    return NodePath.parse(value)


def _said(value: object) -> str:
    if isinstance(value, NodePath):
        return str(value)
    raise TypeError(f"a {type(value).__name__} has no form on the wire")


_ENCODER = msgspec.msgpack.Encoder(enc_hook=_said, order="deterministic")


@cache
def _type_of(kind: Any) -> Any:
    return type_info(kind)


def _with_fields(message: str, name: str, kind: Any) -> str:
    """The message of msgspec, with names of fields in the place of their numbers."""
    found = _PLACE.search(message)
    if found is None:
        return f"{name}: {message}"
    inner = _type_of(kind)
    for step in _STEP.findall(found[1]):
        # Of an optional field the type that is not None.
        inner = getattr(inner, "types", (inner,))[0]
        if isinstance(inner, StructType):
            field = inner.fields[int(step)]
            name, inner = f"{name}.{field.name}", field.type
        else:
            name = f"{name}[{step}]"
            inner = inner.value_type if isinstance(inner, DictType) else inner.item_type
    return f"{name}: {message[: found.start()]}"
