"""Manifests as blobs: a root and chunks, split so that one change touches one chunk.

A manifest lists a placement's objects. They are sorted by key and split by the leading bits of the
key's hash into 2**k chunks, so many that one chunk and the root that lists them are about as long.
Of a sealed one only that can be read which leads further: addresses and sizes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from schemas.content import blobs
from schemas.content.blobs import Reference, StoredBlob
from schemas.content.sealing import MARK_BYTES, SealingKey, named
from schemas.objects.annotations import DELETE, KEEP, ORPHAN
from schemas.objects.objects import ObjectKey
from schemas.objects.source_objects import SourceObject
from schemas.reports.upsync import UpsyncClause
from schemas.values.identity import ContentHash, check_hash
from schemas.values.refusals import RecordRefused
from schemas.values.wire import Natural, WireRecord, asdict, astuple, decode, encode, replace

SPLIT_FROM = 2
"""How many objects a chunk of an only one has at most; of 4**k times as many 2**k chunks have."""
BITS_MAX = 16
SEALED_VERSION = 2
"""Of chunks."""
CHUNKS_KEPT = 256
"""So many chunks are kept as they were made last, for lists in which they stay as they are."""
KINDS = (blobs.OBJECT, blobs.TEMPLATE, blobs.CUSTOMIZER)
ADDRESS_BYTES = 32
UNSAID_MAX = 512
"""So many fields of an object travel as unsaid; the others count as said."""
_LATER_FIELDS = 3
"""How many of the last fields of an entry are left out where they say nothing."""

T = TypeVar("T")

CREATE_ONLY = 1
WANT_SINGLETON = 2
WANT_MULTI = 4
TEMPLATE = 8
"""The object is customized at each destination."""
CLEANED = 128
"""Fields are taken off that a person may have said; what another sends whole goes before it."""
_ON_REMOVAL: dict[str, int] = {DELETE: 16, ORPHAN: 32, KEEP: 64}
"""What the object, or else its placement, says becomes of a copy that is wanted no more.

Of several the highest counts. None of them if neither says anything.
"""
ON_REMOVAL_BITS = sum(_ON_REMOVAL.values())


def removal_flag(word: str) -> int:
    """The flag of what a placement says; 0 if it says nothing."""
    return _ON_REMOVAL.get(word, 0)


def removal_word(flags: int) -> str:
    """What these flags say becomes of a copy that is wanted no more; "" if nothing."""
    said = (word for word, flag in reversed(_ON_REMOVAL.items()) if flags & flag)
    return next(said, "")


class ListRoot(WireRecord, frozen=True):
    """A manifest's root: how many items, split by how many bits, the chunks; what comes up."""

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

    def chunk_of(self, key: ObjectKey) -> Reference:
        """The chunk that an object is in, if it is in the manifest."""
        return self.chunks[_place_of(_object_hash(key), self.bits)]


class ManifestEntry(WireRecord, frozen=True):
    """One object of a placement: its key, its blob, where it came from and how to treat it."""

    group: str
    resource: str
    namespace: str
    name: str
    address: str
    size: Natural
    space: str
    revision: Natural
    flags: Natural = 0
    order: Natural = 0
    # Of a sealed object what its plain bytes are known by; empty in clear.
    mark: str = ""
    # How it is customized, beside what the object says itself.
    customizer: Reference | None = None
    # Of the source's object: when it was created, in seconds since 1970, and its UID, if known.
    created_s: Natural = 0
    uid: str = ""
    # By their numbers (`relay.objects.unsaid_fields`), the fields that nobody said.
    unsaid: tuple[Natural, ...] = ()

    def __post_init__(self) -> None:
        check_hash(self.address)
        _check_unsaid(self.unsaid)

    @property
    def identity(self) -> ContentHash:
        """Equal for equal objects, whatever they are sealed under."""
        return ContentHash(self.mark or self.address)

    @property
    def content(self) -> tuple[ContentHash, Reference | None]:
        """By what a destination tells two entries of an object apart."""
        return self.identity, self.customizer

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.group, self.resource, self.namespace, self.name)

    @property
    def reference(self) -> Reference:
        kind = blobs.TEMPLATE if self.flags & TEMPLATE else blobs.OBJECT
        return Reference(kind, ContentHash(self.address), self.size)

    @property
    def source_object(self) -> SourceObject | None:
        """The object of the source that it tells of; None if that is not known."""
        if not self.uid:
            return None
        return SourceObject(self.space, self.uid, self.created_s, self.revision)

    @property
    def references(self) -> tuple[Reference, ...]:
        """All that the entry leads to."""
        own = self.reference
        return (own,) if self.customizer is None else (own, self.customizer)


class ManifestChunk(WireRecord, frozen=True):
    version: Natural
    entries: tuple[ManifestEntry, ...]


class SealedEntry(WireRecord, frozen=True):
    """The rest of an entry: all but what it leads to, and its mark."""

    group: str
    resource: str
    namespace: str
    name: str
    space: str
    revision: Natural
    flags: Natural = 0
    order: Natural = 0
    created_s: Natural = 0
    uid: str = ""
    unsaid: tuple[Natural, ...] = ()

    def __post_init__(self) -> None:
        _check_unsaid(self.unsaid)


class SealedEntries(WireRecord, frozen=True):
    entries: tuple[SealedEntry, ...]
    # One after the other, MARK_BYTES each.
    marks: bytes


class SealedUpsync(WireRecord, frozen=True):
    clauses: tuple[UpsyncClause, ...]


class SealedChunk(WireRecord, frozen=True):
    """What all entries lead to, in their order; the rest of them is bound to it.

    A byte for each kind, those of objects at the end left out, and 32 for each address, one after
    the other: of a customizer after those of the template that it belongs to.
    """

    version: Natural
    kinds: bytes
    addresses: bytes
    sizes: tuple[Natural, ...]
    sealed: bytes

    def __post_init__(self) -> None:
        if self.version != SEALED_VERSION:
            raise ValueError(f"a chunk of version {self.version}, this program reads 1 and 2")
        count = len(self.sizes)
        if len(self.kinds) > count or len(self.addresses) != count * ADDRESS_BYTES:
            raise ValueError(f"{len(self.kinds)} kinds and {count} sizes of references")
        if any(kind >= len(KINDS) for kind in self.kinds):
            raise ValueError(f"a reference of kind {max(self.kinds)}")

    @property
    def references(self) -> tuple[Reference, ...]:
        """What the entries lead to."""
        kinds = self.kinds.ljust(len(self.sizes), b"\0")
        starts = range(0, len(self.addresses), ADDRESS_BYTES)
        addresses = (self.addresses[at : at + ADDRESS_BYTES] for at in starts)
        return tuple(
            Reference(KINDS[kind], ContentHash(address.hex()), size)
            for kind, address, size in zip(kinds, addresses, self.sizes, strict=True)
        )

    @property
    def bound(self) -> bytes:
        """What the sealed part can be opened with alone."""
        return encode([self.kinds, self.addresses, self.sizes])


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
    bits = _bits(len(ordered))
    chunks = [_chunk(tuple(part), key) for part in _split(hashed, bits)]
    return [_root(len(ordered), bits, chunks, sorted(set(upsync), key=encode), key), *chunks]


def read_root(plain: bytes) -> ListRoot:
    """The root of a manifest; raises RecordRefused."""
    return decode(ListRoot, plain, blobs.BLOB_MAX_BYTES, "root")


def chunk_references(plain: bytes) -> tuple[Reference, ...]:
    """What a chunk leads to, sealed or not; raises RecordRefused."""
    if _is_sealed(plain):
        return _sealed_chunk(plain).references
    return tuple(it for entry in read_manifest_chunk(plain) for it in entry.references)


def read_manifest_chunk(plain: bytes, key: SealingKey | None = None) -> tuple[ManifestEntry, ...]:
    """The entries of a manifest chunk; raises RecordRefused, or NotOpened."""
    if key is None:
        entries = decode(ManifestChunk, plain, blobs.BLOB_MAX_BYTES, "chunk").entries
        if any(entry.mark for entry in entries):
            raise RecordRefused("chunk: an entry is sealed, and the list is not")
        return entries
    chunk = _sealed_chunk(plain)
    opened = key.unseal(blobs.MANIFEST_CHUNK, chunk.sealed, chunk.bound)
    rest = decode(SealedEntries, opened, blobs.BLOB_MAX_BYTES, "sealed entries")
    owned = _owned(chunk.references)
    if len(rest.entries) != len(owned) or len(rest.marks) != len(owned) * MARK_BYTES:
        raise RecordRefused("chunk: it has other references than entries")
    marks = (rest.marks[at * MARK_BYTES :][:MARK_BYTES].hex() for at in range(len(owned)))
    return tuple(map(_joined, rest.entries, owned, marks))


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


@lru_cache(maxsize=CHUNKS_KEPT)
def _chunk(entries: tuple[ManifestEntry, ...], key: SealingKey | None) -> StoredBlob:
    """The blob of a chunk; of the chunks of a manifest a change alters one, mostly."""
    if key is None:
        return blobs.store(blobs.MANIFEST_CHUNK, encode([1, [*map(_listed, entries)]]))
    references = [it for entry in entries for it in entry.references]
    marks = b"".join(bytes.fromhex(entry.mark) for entry in entries)
    assert len(marks) == len(entries) * MARK_BYTES
    chunk = SealedChunk(
        SEALED_VERSION,
        bytes(KINDS.index(it.kind) for it in references).rstrip(b"\0"),
        b"".join(bytes.fromhex(it.address) for it in references),
        tuple(it.size for it in references),
        b"",
    )
    rest = encode([[_listed(_rest(entry)) for entry in entries], marks])
    sealed = key.seal(blobs.MANIFEST_CHUNK, rest, chunk.bound)
    return blobs.store(blobs.MANIFEST_CHUNK, encode(replace(chunk, sealed=sealed)))


def _listed(entry: ManifestEntry | SealedEntry) -> object:
    """The entry as it is listed: without the fields that came later, where they say nothing.

    So the bytes, and the address, are those of a program that does not know them.
    """
    fields = astuple(entry)
    for _ in range(_LATER_FIELDS):
        if fields[-1]:
            break
        fields = fields[:-1]
    return fields


def _check_unsaid(numbers: tuple[int, ...]) -> None:
    if len(numbers) > UNSAID_MAX:
        raise ValueError(f"{len(numbers)} unsaid fields, at most {UNSAID_MAX}")


def _rest(entry: ManifestEntry) -> SealedEntry:
    return SealedEntry(*(getattr(entry, field) for field in SealedEntry.__struct_fields__))


def _owned(references: Iterable[Reference]) -> list[list[Reference]]:
    """The references of each entry: its own, and perhaps a customizer's; raises RecordRefused."""
    owned: list[list[Reference]] = []
    for reference in references:
        if reference.kind != blobs.CUSTOMIZER:
            owned.append([reference])
        elif owned and len(owned[-1]) == 1:
            owned[-1].append(reference)
        else:
            raise RecordRefused("chunk: a customizer belongs to no entry")
    return owned


def _joined(rest: SealedEntry, owned: Sequence[Reference], mark: str) -> ManifestEntry:
    own, *customizers = owned
    entry = ManifestEntry(
        **asdict(rest),
        address=own.address,
        size=own.size,
        mark=mark,
        customizer=customizers[0] if customizers else None,
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


def _bits(count: int) -> int:
    bits = 0
    while count > SPLIT_FROM << 2 * bits and bits < BITS_MAX:
        bits += 1
    return bits


def _split(items: Sequence[tuple[bytes, T]], bits: int) -> list[list[T]]:
    split: list[list[T]] = [[] for _ in range(1 << bits)]
    for raw, item in items:
        split[_place_of(raw, bits)].append(item)
    return split


def _place_of(raw: bytes, bits: int) -> int:
    return int.from_bytes(raw[:4], "big") >> 32 - bits


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


CONTENT_ID_BYTES = 16


def content_id(key: ObjectKey, identity: ContentHash) -> bytes:
    """The id of an object's content; `identity` is its entry's in the manifest.

    An edge names by it what is in force of an object: a relay learns whether two are equal only.
    """
    parts = (key.group, key.resource, key.namespace, key.name, identity)
    return hashlib.sha256("\0".join(parts).encode()).digest()[:CONTENT_ID_BYTES]
