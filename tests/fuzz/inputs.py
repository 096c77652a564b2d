"""How an input says several things: as fields of msgpack, or as any text."""

from __future__ import annotations

from schemas.values import codec
from schemas.values.refusals import CodecError


def fields(data: bytes, *kinds: type) -> tuple | None:
    """The fields of an input that has several, None if it has not just these."""
    try:
        found = codec.unpack(data)
    except CodecError:
        return None
    fitting = isinstance(found, tuple) and len(found) == len(kinds)
    return found if fitting and all(map(isinstance, found, kinds)) else None


def text_of(data: bytes) -> str:
    """Any text, halves of characters among them."""
    return data.decode(errors="surrogateescape")
