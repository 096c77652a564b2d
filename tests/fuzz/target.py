"""What is fuzzed: a name, what is done with any bytes, and real bytes to begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

from schemas import codec


class Form(Enum):
    """How the bytes are changed besides blindly: as msgpack and as JSON, value by value."""

    BYTES = "bytes"
    MSGPACK = "msgpack"
    JSON = "json"


@dataclass(frozen=True)
class Target:
    """`run` raises only if there is a defect; `chosen` bytes at the front choose the decoder."""

    run: Callable[[bytes], None]
    seeds: Callable[[], Iterable[bytes]]
    form: Form = Form.BYTES
    chosen: int = 0
    bytes_max: int = 64 * 1024


def fields(data: bytes, *kinds: type) -> tuple | None:
    """The fields of an input that has several, None if it has not just these."""
    try:
        found = codec.unpack(data)
    except codec.CodecError:
        return None
    fitting = isinstance(found, tuple) and len(found) == len(kinds)
    return found if fitting and all(map(isinstance, found, kinds)) else None


def text_of(data: bytes) -> str:
    """Any text, halves of characters among them."""
    return data.decode(errors="surrogateescape")
