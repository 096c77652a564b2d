"""Blobs: immutable bytes named by their hash; how they are stored, and opened without trust.

A stored value is one byte (0 plain, 1 zstd) and the bytes, or byte 2 and the addresses of its parts
(protocol.md, "Content"). The address is over the plain bytes, and the size in the reference bounds
what is decompressed before anything is opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from schemas.content import compression
from schemas.values import codec
from schemas.values.identity import ContentHash, check_hash
from schemas.values.refusals import BlobRefused, CodecError
from schemas.values.wire import Natural, WireRecord

COMPRESS_FROM_BYTES = 256
PART_MAX_BYTES = 512 * 1024
BLOB_MAX_BYTES = 16 * 1024 * 1024
OBJECT_MAX_BYTES = 3 * 512 * 1024
_PLAIN, _ZSTD, _PARTS = b"\0", b"\1", b"\2"

OBJECT, MANIFEST, MANIFEST_CHUNK = "object", "manifest", "mchunk"
TEMPLATE, CUSTOMIZER = "template", "customizer"
"""An object that each destination customizes before it applies it, and what tells it how."""
PROGRAM, PART = "program", "part"


class Reference(WireRecord, frozen=True):
    """Names a blob: its type, its address and the size in bytes of its plain form."""

    kind: str
    address: ContentHash
    size: Natural

    def __post_init__(self) -> None:
        check_hash(self.address)
        if not 0 <= self.size <= BLOB_MAX_BYTES:
            raise BlobRefused(self.address, f"{self.size} bytes, at most {BLOB_MAX_BYTES}")


@dataclass(frozen=True, slots=True)
class StoredBlob:
    """A blob as it lies in the store: values by address, the named blob first, then its parts."""

    reference: Reference
    values: Mapping[ContentHash, bytes]


def store(kind: str, plain: bytes) -> StoredBlob:
    """Address, compress and split `plain`; raises BlobRefused if it is over the limit."""
    return _stored(kind, plain, compress(plain))


def store_sealed(kind: str, sealed: bytes) -> StoredBlob:
    """The same of bytes that no compression makes smaller."""
    return _stored(kind, sealed, _PLAIN + sealed)


def _stored(kind: str, plain: bytes, value: bytes) -> StoredBlob:
    reference = Reference(kind, codec.address(kind, plain), len(plain))
    if len(value) <= PART_MAX_BYTES:
        return StoredBlob(reference, {reference.address: value})
    pieces = [value[at : at + PART_MAX_BYTES] for at in range(0, len(value), PART_MAX_BYTES)]
    parts = {codec.address(PART, piece): _PLAIN + piece for piece in pieces}
    listed = [codec.address(PART, piece) for piece in pieces]
    return StoredBlob(reference, {reference.address: _PARTS + codec.pack(listed), **parts})


def open_stored(blob: StoredBlob) -> bytes:
    """The plain bytes of a blob that was stored here."""
    return open_value(blob.reference, blob.values[blob.reference.address], blob.values)


def compress(plain: bytes) -> bytes:
    """A value of one piece, whatever its size."""
    if len(plain) >= COMPRESS_FROM_BYTES:
        packed = compression.compress(plain)
        if len(packed) < len(plain):
            return _ZSTD + packed
    return _PLAIN + plain


def decompress(value: bytes, size: int) -> bytes:
    """What `compress` made of so many bytes, or of fewer; raises BlobRefused."""
    return _decompress("", size, value)


def parts_of(reference: Reference, value: bytes) -> tuple[Reference, ...]:
    """The parts that a stored value is made of; none if it stands alone. Raises BlobRefused."""
    if value[:1] != _PARTS:
        return ()
    try:
        listed = codec.unpack(value[1:], PART_MAX_BYTES)
        references = tuple(Reference(PART, check_hash(item), PART_MAX_BYTES) for item in listed)
    except (ValueError, TypeError) as error:
        raise BlobRefused(reference.address, f"its list of parts is unreadable: {error}") from error
    if not references or len(references) > BLOB_MAX_BYTES // PART_MAX_BYTES + 1:
        raise BlobRefused(reference.address, f"{len(references)} parts")
    return references


def open_value(
    reference: Reference, value: bytes, parts: Mapping[ContentHash, bytes] | None = None
) -> bytes:
    """The plain bytes, checked against the reference; raises BlobRefused on any difference."""
    if value[:1] == _PARTS:
        value = _join(reference, value, parts or {})
    plain = _decompress(reference.address, reference.size, value)
    if len(plain) != reference.size and (reference.kind != PART or len(plain) > reference.size):
        raise BlobRefused(reference.address, f"{len(plain)} bytes instead of {reference.size}")
    if codec.address(reference.kind, plain) != reference.address:
        raise BlobRefused(reference.address, "its bytes have another hash")
    return plain


def _join(reference: Reference, value: bytes, parts: Mapping[ContentHash, bytes]) -> bytes:
    pieces = []
    for part in parts_of(reference, value):
        if part.address not in parts:
            raise BlobRefused(reference.address, f"its part {part.address[:12]} is missing")
        pieces.append(open_value(part, parts[part.address]))
    joined = b"".join(pieces)
    if joined[:1] == _PARTS:
        raise BlobRefused(reference.address, "parts within parts")
    return joined


def _decompress(name: str, size: int, value: bytes) -> bytes:
    if value[:1] == _PLAIN:
        return value[1:]
    if value[:1] != _ZSTD:
        raise BlobRefused(name, "stored in an unknown form")
    try:
        return compression.decompress(value[1:], size)
    except CodecError as error:
        raise BlobRefused(name, str(error)) from error
