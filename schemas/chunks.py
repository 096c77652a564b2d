"""Long lists as blobs: a root and chunks, split so that one change touches one chunk.

Manifests list a placement's objects, the index lists the placements in force. Items are sorted by
key and split by the leading bits of the key's hash into 2**k chunks of a set average size.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TypeVar

from schemas import blobs
from schemas.blobs import Reference, StoredBlob
from schemas.identity import ContentHash, MailKey, check_hash, mail_key_bytes, short_key
from schemas.objects import ObjectKey
from schemas.refusals import RecordRefused
from schemas.wire import Natural, WireRecord, decode, encode

MANIFEST_CHUNK_MEAN = 64
INDEX_CHUNK_MEAN = 128
BITS_MAX = 16

T = TypeVar("T")

CREATE_ONLY = 1
WANT_SINGLETON = 2
WANT_MULTI = 4


class ListRoot(WireRecord, frozen=True):
    """Of a chunked list: how many items, split by how many bits, and the chunks in order."""

    version: Natural
    count: Natural
    bits: Natural
    chunks: tuple[Reference, ...]

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

    def __post_init__(self) -> None:
        check_hash(self.address)

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.group, self.resource, self.namespace, self.name)

    @property
    def reference(self) -> Reference:
        return Reference(blobs.OBJECT, ContentHash(self.address), self.size)


class ManifestChunk(WireRecord, frozen=True):
    version: Natural
    entries: tuple[ManifestEntry, ...]


class IndexEntry(WireRecord, frozen=True):
    """A placement in force: the 20 bytes of its mail key, and its generation."""

    key: bytes
    generation: Natural


class IndexChunk(WireRecord, frozen=True):
    version: Natural
    entries: tuple[IndexEntry, ...]


def build_manifest(entries: Iterable[ManifestEntry]) -> list[StoredBlob]:
    """The blobs of a manifest, its root first."""
    ordered = sorted(entries, key=lambda entry: entry.key)
    hashed = [(_object_hash(entry.key), entry) for entry in ordered]
    bits = _bits(len(ordered), MANIFEST_CHUNK_MEAN)
    chunks = [
        _blob(blobs.MANIFEST_CHUNK, ManifestChunk(1, tuple(part))) for part in _split(hashed, bits)
    ]
    return [_root(blobs.MANIFEST, len(ordered), bits, chunks), *chunks]


def build_index(in_force: Iterable[tuple[MailKey, int]]) -> list[StoredBlob]:
    """The blobs of an index list, its root first."""
    listed = sorted((mail_key_bytes(key), generation) for key, generation in in_force)
    bits = _bits(len(listed), INDEX_CHUNK_MEAN)
    items = [(raw, IndexEntry(raw, generation)) for raw, generation in listed]
    chunks = [_blob(blobs.INDEX_CHUNK, IndexChunk(1, tuple(part))) for part in _split(items, bits)]
    return [_root(blobs.INDEX_LIST, len(listed), bits, chunks), *chunks]


def read_root(plain: bytes) -> ListRoot:
    """The root of a manifest or an index list; raises RecordRefused."""
    return decode(ListRoot, plain, blobs.BLOB_MAX_BYTES, "root")


def read_manifest_chunk(plain: bytes) -> tuple[ManifestEntry, ...]:
    """The entries of a manifest chunk; raises RecordRefused."""
    return decode(ManifestChunk, plain, blobs.BLOB_MAX_BYTES, "chunk").entries


def read_index_chunk(plain: bytes) -> dict[MailKey, int]:
    """Mail key to generation; raises RecordRefused."""
    chunk = decode(IndexChunk, plain, blobs.BLOB_MAX_BYTES, "chunk")
    if any(len(entry.key) != 20 for entry in chunk.entries):
        raise RecordRefused("chunk: a mail key is not of 20 bytes")
    return {short_key(entry.key): entry.generation for entry in chunk.entries}


def index_chunk_of(root: ListRoot, key: MailKey) -> Reference:
    """The chunk that lists the key, if the index lists it at all."""
    return root.chunks[_leading(mail_key_bytes(key), root.bits)]


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


def _root(kind: str, count: int, bits: int, chunks: Sequence[StoredBlob]) -> StoredBlob:
    return _blob(kind, ListRoot(1, count, bits, tuple(chunk.reference for chunk in chunks)))
