"""Manifests as blobs: a root and chunks, split so that one change touches one chunk.

A manifest lists a placement's objects. They are sorted by key and split by the leading bits of the
key's hash into 2**k chunks of a set average size. Of a sealed one only that can be read which leads
further: addresses and sizes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from schemas import blobs
from schemas.blobs import Reference, StoredBlob
from schemas.identity import ContentHash, check_hash
from schemas.objects import ObjectKey
from schemas.refusals import RecordRefused
from schemas.sealing import SealingKey, named
from schemas.upsync import UpsyncClause
from schemas.wire import Natural, WireRecord, decode, encode

MANIFEST_CHUNK_MEAN = 64
BITS_MAX = 16
SEALED_VERSION = 2
"""Of chunks."""

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
    # Of a sealed manifest: the id of its key, and what comes up.
    key: bytes = b""
    sealed: bytes = b""

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
    # Of a sealed object the address of its plain bytes; empty in clear.
    enc: str = ""
    # How it is customized, beside what the object says itself.
    customizer: Reference | None = None

    def __post_init__(self) -> None:
        check_hash(self.address)

    @property
    def identity(self) -> ContentHash:
        """Equal for equal objects, whatever they are sealed under."""
        return ContentHash(self.enc or self.address)

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


class ClearReference(WireRecord, frozen=True):
    """What a sealed entry leads to; the address has 32 bytes here."""

    kind: str
    address: bytes
    size: Natural

    @property
    def reference(self) -> Reference:
        return Reference(self.kind, ContentHash(self.address.hex()), self.size)


class SealedEntry(WireRecord, frozen=True):
    """The rest of an entry: all but references. `plain` is the address (32 bytes) in clear."""

    group: str
    resource: str
    namespace: str
    name: str
    plain: bytes
    space: str
    uid: str
    revision: Natural
    flags: Natural = 0
    order: Natural = 0
    # Whether a second reference of its own follows.
    has_customizer: bool = False


class SealedEntries(WireRecord, frozen=True):
    entries: tuple[SealedEntry, ...]


class SealedUpsync(WireRecord, frozen=True):
    clauses: tuple[UpsyncClause, ...]


class SealedChunk(WireRecord, frozen=True):
    """The references of all entries in their order; the rest of them is bound to these."""

    version: Natural
    references: tuple[ClearReference, ...]
    sealed: bytes

    def __post_init__(self) -> None:
        if self.version != SEALED_VERSION:
            raise ValueError(f"a chunk of version {self.version}, this program reads 1 and 2")


@dataclass(frozen=True, slots=True)
class Manifest:
    """All that a manifest says; `key` is what it is sealed under, if it is."""

    entries: tuple[ManifestEntry, ...]
    upsync: tuple[UpsyncClause, ...]
    key: SealingKey | None


def build_manifest(
    entries: Iterable[ManifestEntry],
    upsync: Iterable[UpsyncClause] = (),
    key: SealingKey | None = None,
) -> list[StoredBlob]:
    """The blobs of a manifest, its root first; under a key all objects are sealed with it, too."""
    ordered = sorted(entries, key=lambda entry: entry.key)
    hashed = [(_object_hash(entry.key), entry) for entry in ordered]
    bits = _bits(len(ordered), MANIFEST_CHUNK_MEAN)
    chunks = [_chunk(tuple(part), key) for part in _split(hashed, bits)]
    return [_root(len(ordered), bits, chunks, sorted(set(upsync), key=encode), key), *chunks]


def read_root(plain: bytes) -> ListRoot:
    """The root of a manifest; raises RecordRefused."""
    return decode(ListRoot, plain, blobs.BLOB_MAX_BYTES, "root")


def chunk_references(plain: bytes) -> tuple[Reference, ...]:
    """What a chunk leads to, sealed or not; raises RecordRefused."""
    if _is_sealed(plain):
        return tuple(each.reference for each in _sealed_chunk(plain).references)
    return tuple(it for entry in read_manifest_chunk(plain) for it in entry.references)


def read_manifest_chunk(plain: bytes, key: SealingKey | None = None) -> tuple[ManifestEntry, ...]:
    """The entries of a manifest chunk; raises RecordRefused, or NotOpened."""
    if key is None:
        entries = decode(ManifestChunk, plain, blobs.BLOB_MAX_BYTES, "chunk").entries
        if any(entry.enc for entry in entries):
            raise RecordRefused("chunk: an entry is sealed, and the list is not")
        return entries
    chunk = _sealed_chunk(plain)
    bound = encode(chunk.references)
    opened = key.unseal(blobs.MANIFEST_CHUNK, chunk.sealed, bound)
    rest = decode(SealedEntries, opened, blobs.BLOB_MAX_BYTES, "sealed entries").entries
    if sum(1 + each.has_customizer for each in rest) != len(chunk.references):
        raise RecordRefused("chunk: it has other references than entries")
    references = iter(chunk.references)
    return tuple(_joined(each, references) for each in rest)


def read_manifest(
    root: bytes, chunks: Mapping[ContentHash, bytes], keys: Iterable[SealingKey] = ()
) -> Manifest:
    """What a root and its chunks say, opened with one of the keys if it is sealed.

    Raises RecordRefused, NotOpened without its key, and KeyError without a chunk.
    """
    said = read_root(root)
    key = named(keys, said.key) if said.key else None
    entries = tuple(e for it in said.chunks for e in read_manifest_chunk(chunks[it.address], key))
    if key is None or not said.sealed:
        return Manifest(entries, said.upsync, key)
    opened = key.unseal(blobs.MANIFEST, said.sealed, _root_bound(said.count, said.chunks))
    return Manifest(entries, decode(SealedUpsync, opened, name="sealed upsync").clauses, key)


def _chunk(entries: tuple[ManifestEntry, ...], key: SealingKey | None) -> StoredBlob:
    if key is None:
        return blobs.store(blobs.MANIFEST_CHUNK, encode(ManifestChunk(1, entries)))
    references = tuple(
        ClearReference(it.kind, bytes.fromhex(it.address), it.size)
        for entry in entries
        for it in entry.references
    )
    rest = encode(SealedEntries(tuple(_rest(entry) for entry in entries)))
    sealed = key.seal(blobs.MANIFEST_CHUNK, rest, encode(references))
    chunk = SealedChunk(SEALED_VERSION, references, sealed)
    return blobs.store(blobs.MANIFEST_CHUNK, encode(chunk))


def _rest(entry: ManifestEntry) -> SealedEntry:
    return SealedEntry(
        entry.group,
        entry.resource,
        entry.namespace,
        entry.name,
        bytes.fromhex(entry.enc),
        entry.space,
        entry.uid,
        entry.revision,
        entry.flags,
        entry.order,
        entry.customizer is not None,
    )


def _joined(rest: SealedEntry, references: Iterator[ClearReference]) -> ManifestEntry:
    own = next(references).reference
    customizer = next(references).reference if rest.has_customizer else None
    entry = ManifestEntry(
        group=rest.group,
        resource=rest.resource,
        namespace=rest.namespace,
        name=rest.name,
        address=own.address,
        size=own.size,
        space=rest.space,
        uid=rest.uid,
        revision=rest.revision,
        flags=rest.flags,
        order=rest.order,
        enc=check_hash(rest.plain.hex()),
        customizer=customizer,
    )
    if entry.reference != own:
        raise RecordRefused(f"chunk: {entry.key} leads to a {own.kind}")
    return entry


def _is_sealed(plain: bytes) -> bool:
    """Whether the array that the bytes begin with is of the sealed version."""
    return plain[:1] >= b"\x90" and plain[:1] < b"\xa0" and plain[1:2] == bytes([SEALED_VERSION])


def _sealed_chunk(plain: bytes) -> SealedChunk:
    return decode(SealedChunk, plain, blobs.BLOB_MAX_BYTES, "chunk")


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


def _root(
    count: int,
    bits: int,
    chunks: Sequence[StoredBlob],
    upsync: Sequence[UpsyncClause],
    key: SealingKey | None,
) -> StoredBlob:
    references = tuple(chunk.reference for chunk in chunks)
    said = [1, count, bits, references]
    if key is not None:
        bound = _root_bound(count, references)
        plain = encode(SealedUpsync(tuple(upsync)))
        said += [(), key.id, key.seal(blobs.MANIFEST, plain, bound) if upsync else b""]
    elif upsync:
        # Without any, the bytes and so the address are what they were before there were clauses.
        said.append(list(upsync))
    return blobs.store(blobs.MANIFEST, encode(said))


def _root_bound(count: int, chunks: tuple[Reference, ...]) -> bytes:
    return encode([count, chunks])
