"""What is fuzzed: a name, what is done with any bytes, and real bytes to begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum


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
