"""A value fits a bucket: compressed where that helps, and in parts where one message is too small.

A stored value is one byte (0 plain, 1 zstd) and the bytes; or byte 2, a token and a count: the
parts of such a value lie at keys of their own, that this token keeps apart from all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from relay.space_errors import SpaceError
from schemas.content import compression
from schemas.values.refusals import CodecError

PART_BYTES = 512 * 1024
VALUE_MAX_BYTES = 8 * 1024 * 1024
DIGITS_MAX = 9

_PLAIN, _ZSTD, _PARTS = b"\0", b"\1", b"\2"
_SPACE = "p"


@dataclass(frozen=True, slots=True)
class Parts:
    """Where the parts of the value at a key lie."""

    key: str
    token: str
    count: int

    def each(self) -> Iterator[str]:
        """Each part's own key, in order."""
        return (f"{_SPACE}.{self.key}.{self.token}.{at}" for at in range(self.count))

    @property
    def pattern(self) -> str:
        """What only the keys of these parts match."""
        return f"{_SPACE}.{self.key}.{self.token}.*"

    def named(self) -> bytes:
        """The stored value that names them."""
        return _PARTS + f"{self.token} {self.count}".encode()


EVERY_PART = f"{_SPACE}.>"


def part_of(key: str) -> tuple[str, str]:
    """The key whose value a part belongs to, and the token it was written under."""
    whole, token, _ = key.removeprefix(f"{_SPACE}.").rsplit(".", 2)
    return whole, token


def parts_named(key: str, stored: bytes) -> Parts | None:
    """The parts that a stored value names; None if it stands alone. Raises SpaceError."""
    if stored[:1] != _PARTS:
        return None
    token, _, count = stored[1:].decode(errors="replace").partition(" ")
    known = bool(token) and count.isdecimal() and len(count) < DIGITS_MAX
    if not known or int(count) > VALUE_MAX_BYTES // PART_BYTES + 1:
        raise SpaceError("InternalError", f"the entry at {key} names no parts that could be")
    return Parts(key, token, int(count))


def split(packed: bytes) -> list[bytes]:
    """A packed value as its parts; none if it stands alone."""
    if len(packed) <= PART_BYTES:
        return []
    return [packed[at : at + PART_BYTES] for at in range(0, len(packed), PART_BYTES)]


def unpack(stored: bytes) -> bytes:
    """What `blobs.compress` was given; raises SpaceError if it is not that."""
    if stored[:1] != _ZSTD:
        return stored[1:]
    try:
        return compression.decompress(stored[1:], VALUE_MAX_BYTES)
    except CodecError as error:
        raise SpaceError(
            "InternalError", f"an entry of the bucket is unreadable: {error}"
        ) from error
