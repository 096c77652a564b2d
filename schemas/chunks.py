"""Manifests as blobs: a root and chunks, split so that one change touches one chunk.

A manifest lists a placement's objects. They are sorted by key and split by the leading bits of the
key's hash into 2**k chunks of a set average size.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TypeVar

from schemas import blobs
from schemas.blobs import Reference, StoredBlob
from schemas.identity import ContentHash, check_hash
from schemas.objects import ObjectKey
from schemas.upsync import UpsyncClause
from schemas.wire import Natural, WireRecord, decode, encode

MANIFEST_CHUNK_MEAN = 64
BITS_MAX = 16

T = TypeVar("T")

CREATE_ONLY = 1
WANT_SINGLETON = 2
WANT_MULTI = 4
TEMPLATE = 8
"""The object is customized at each destination."""


class ListRoot(WireRecord, frozen=True):
    """Of a manifest: how many items, split by how many bits, the chunks in order; what comes up."""

    version: Natural
    count: Natural
    bits: Natural
    chunks: tuple[Reference, ...]
    # What comes up from who gets this; said only if there is any.
    upsync: tuple[UpsyncClause, ...] = ()

    def __post_init__(self) -> None:
        if self.version != 1:
            raise ValueError(f"a list of version {self.version}, this program reads 1")
        if self.bits > BITS_MAX or len(self.chunks) != 1 << self.bits:
            raise ValueError(f"{len(self.chunks)} chunks by {self.bits} bits")


class ManifestEntry(WireRecord, frozen=True):
    """One object of a placement: its key, its blob, where it came from and how to treat it."""

    group: str
    resource: str
    namespace: str
    name: str
    address: str
    size: Natural
    space: str
    uid: str
    revision: Natural
    flags: Natural = 0
    order: Natural = 0
    enc: str = ""
    # How it is customized, beside what the object says itself.
    customizer: Reference | None = None

    def __post_init__(self) -> None:
        check_hash(self.address)

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.group, self.resource, self.namespace, self.name)

    @property
    def reference(self) -> Reference:
        kind = blobs.TEMPLATE if self.flags & TEMPLATE else blobs.OBJECT
        return Reference(kind, ContentHash(self.address), self.size)

    @property
    def references(self) -> tuple[Reference, ...]:
        """All that the entry leads to."""
        own = self.reference
        return (own,) if self.customizer is None else (own, self.customizer)


class ManifestChunk(WireRecord, frozen=True):
    version: Natural
    entries: tuple[ManifestEntry, ...]


def build_manifest(
    entries: Iterable[ManifestEntry], upsync: Iterable[UpsyncClause] = ()
) -> list[StoredBlob]:
    """The blobs of a manifest, its root first."""
    ordered = sorted(entries, key=lambda entry: entry.key)
    hashed = [(_object_hash(entry.key), entry) for entry in ordered]
    bits = _bits(len(ordered), MANIFEST_CHUNK_MEAN)
    chunks = [
        _blob(blobs.MANIFEST_CHUNK, ManifestChunk(1, tuple(part))) for part in _split(hashed, bits)
    ]
    return [_root(len(ordered), bits, chunks, sorted(set(upsync), key=encode)), *chunks]


def read_root(plain: bytes) -> ListRoot:
    """The root of a manifest; raises RecordRefused."""
    return decode(ListRoot, plain, blobs.BLOB_MAX_BYTES, "root")


def read_manifest_chunk(plain: bytes) -> tuple[ManifestEntry, ...]:
    """The entries of a manifest chunk; raises RecordRefused."""
    return decode(ManifestChunk, plain, blobs.BLOB_MAX_BYTES, "chunk").entries


def _object_hash(key: ObjectKey) -> bytes:
    parts = (key.group, key.resource, key.namespace, key.name)
    return hashlib.sha256("\0".join(parts).encode()).digest()


def _bits(count: int, mean: int) -> int:
    bits = 0
    while count > mean << bits and bits < BITS_MAX:
        bits += 1
    return bits


def _leading(raw: bytes, bits: int) -> int:
    return int.from_bytes(raw[:4], "big") >> (32 - bits) if bits else 0


def _split(items: Sequence[tuple[bytes, T]], bits: int) -> list[list[T]]:
    split: list[list[T]] = [[] for _ in range(1 << bits)]
    for raw, item in items:
        split[_leading(raw, bits)].append(item)
    return split


def _blob(kind: str, value: object) -> StoredBlob:
    return blobs.store(kind, encode(value))


def _root(
    count: int, bits: int, chunks: Sequence[StoredBlob], upsync: Sequence[UpsyncClause]
) -> StoredBlob:
    said = [1, count, bits, [chunk.reference for chunk in chunks]]
    # Without any, the bytes and so the address are what they were before there were clauses.
    return _blob(blobs.MANIFEST, [*said, list(upsync)] if upsync else said)
