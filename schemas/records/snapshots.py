"""The signed snapshot on the wire: its record, the tree of what is in force, the list of terms.

The tree is sorted by entry key. Mail keys come first, paths after them; below a path lies all that
its subtree needs. Nodes are blobs: leaves of entries, inner nodes of references. What a blob says
is believed by its hash, but its form is checked all the same.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from operator import lt
from typing import Annotated, NamedTuple, NewType, TypeVar

import msgspec

from schemas.content.blobs import BLOB_MAX_BYTES, Reference
from schemas.records.records import Source
from schemas.values.identity import (
    ContentHash,
    MailKey,
    NodePath,
    TreeId,
    mail_key_bytes,
    short_key,
)
from schemas.values.refusals import CodecError

API_SNAPSHOT = "leafcast.io/Snapshot"
SNAPSHOT_LEAF, SNAPSHOT_INNER, SNAPSHOT_TERMS = "sleaf", "sinner", "sterms"

LEAF_MAX, INNER_MAX = 128, 64
HEIGHT_MAX = 16
TERMS_MAX = 65_536
TERM_BYTES = 8
_MAIL_KEY_BYTES = 20
_ENTRY_KEY_MAX = 2048
_BY_MAIL_KEY, _BY_PATH = b"\0", b"\1"

EntryKey = NewType("EntryKey", bytes)
"""The place of a record in the tree: branch, path if it has one, the 20 bytes of its mail key."""

Term = NewType("Term", bytes)
"""8 random bytes: one start of the centre."""

_Generation = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Size = Annotated[int, msgspec.Meta(ge=0, le=BLOB_MAX_BYTES)]
_Hash = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
_Term = Annotated[Term, msgspec.Meta(min_length=TERM_BYTES, max_length=TERM_BYTES)]
_Key = Annotated[EntryKey, msgspec.Meta(min_length=1 + _MAIL_KEY_BYTES, max_length=_ENTRY_KEY_MAX)]


class SnapshotRefused(CodecError):
    """A record, node or list that breaks the form of a snapshot."""


class BlobPointer(msgspec.Struct, array_like=True, frozen=True):
    """A blob whose kind its place tells."""

    address: _Hash
    size: _Size

    @classmethod
    def to(cls, reference: Reference) -> BlobPointer:
        return cls(bytes.fromhex(reference.address), reference.size)

    def reference(self, kind: str) -> Reference:
        return Reference(kind, ContentHash(self.address.hex()), self.size)


class SnapshotRank(NamedTuple):
    """The order of snapshots: by reign, and within one by generation."""

    reign: int
    generation: int


NO_SNAPSHOT = SnapshotRank(0, 0)
"""Below all that is signed."""


class SnapshotRecord(msgspec.Struct, array_like=True, frozen=True):
    """What the centre signs: all that is in force at `generation`, and which terms it knows."""

    # S. A record above it is in force without being listed.
    generation: _Generation
    # The term that signs; it knows all of its own records.
    term: _Term
    # Milliseconds since 1970.
    time_ms: _Count
    expires_ms: _Count
    # The newest generation that was issued 2 s before: removals up to it are carried out.
    settled: _Generation
    terms: BlobPointer
    root: BlobPointer
    # Levels of inner nodes above the leaves; 0 if the root is a leaf.
    height: Annotated[int, msgspec.Meta(ge=0, le=HEIGHT_MAX)]
    # Entries in the whole tree, for people.
    count: _Count
    # One more with each centre that takes another's place; a start of a centre keeps its own.
    reign: _Count = 0

    @property
    def rank(self) -> SnapshotRank:
        """What tells which of two snapshots is newer."""
        return SnapshotRank(self.reign, self.generation)

    @property
    def authors(self) -> tuple[int, BlobPointer]:
        """The reign, and the list of terms."""
        return self.reign, self.terms

    @property
    def terms_reference(self) -> Reference:
        return self.terms.reference(SNAPSHOT_TERMS)

    @property
    def tree(self) -> Subtree:
        return Subtree(self.root, self.height)

    @property
    def references(self) -> tuple[Reference, ...]:
        """Where its content begins."""
        return (self.tree.reference, self.terms_reference)


class TermEntry(msgspec.Struct, array_like=True, frozen=True):
    """A term that the centre knows, up to `highest`; None is whole: its own, or withdrawn."""

    term: _Term
    highest: _Generation | None

    def covers(self, generation: int) -> bool:
        return self.highest is None or generation <= self.highest


class TermList(msgspec.Struct, array_like=True, frozen=True):
    """Sorted by term, each once."""

    terms: Annotated[tuple[TermEntry, ...], msgspec.Meta(max_length=TERMS_MAX)]


class Entry(msgspec.Struct, array_like=True, frozen=True):
    """A record in force."""

    key: _Key
    generation: _Generation


class LeafNode(msgspec.Struct, array_like=True, frozen=True):
    """Entries, ascending; none only in the root of an empty tree."""

    entries: Annotated[tuple[Entry, ...], msgspec.Meta(max_length=LEAF_MAX)]

    def generation_of(self, key: EntryKey) -> int | None:
        """What it lists for the key."""
        at = bisect_left(self.entries, key, key=_key)
        found = at < len(self.entries) and self.entries[at].key == key
        return self.entries[at].generation if found else None


class Child(msgspec.Struct, array_like=True, frozen=True):
    """One node below."""

    # The first key in it.
    key: _Key
    address: _Hash
    size: _Size


class InnerNode(msgspec.Struct, array_like=True, frozen=True):
    """Nodes one level below, ascending by first key; `height` 1 is next above the leaves."""

    height: Annotated[int, msgspec.Meta(ge=1, le=HEIGHT_MAX)]
    children: Annotated[tuple[Child, ...], msgspec.Meta(min_length=1, max_length=INNER_MAX)]

    @property
    def references(self) -> tuple[Reference, ...]:
        """The nodes below it."""
        kind = SNAPSHOT_INNER if self.height > 1 else SNAPSHOT_LEAF
        return tuple(
            Reference(kind, ContentHash(child.address.hex()), child.size) for child in self.children
        )

    def position(self, key: EntryKey) -> int:
        """Which child covers the key."""
        return max(bisect_right(self.children, key, key=_key) - 1, 0)


@dataclass(frozen=True, slots=True)
class Subtree:
    """A node as its parent names it: the keys that it covers are `lower` <= key < `upper`."""

    pointer: BlobPointer
    height: int
    # The first key that it must hold; None for the root, which may hold any or none.
    first: EntryKey | None = None
    lower: EntryKey = EntryKey(b"")
    upper: EntryKey | None = None

    @property
    def address(self) -> ContentHash:
        return ContentHash(self.pointer.address.hex())

    @property
    def reference(self) -> Reference:
        return self.pointer.reference(SNAPSHOT_INNER if self.height else SNAPSHOT_LEAF)

    def leaf(self, plain: bytes) -> LeafNode:
        """Read it where `height` is 0; raises SnapshotRefused."""
        node = read_leaf(plain)
        self._check([entry.key for entry in node.entries])
        return node

    def inner(self, plain: bytes) -> InnerNode:
        """Read it where `height` is above 0; raises SnapshotRefused."""
        node = read_inner(plain)
        if node.height != self.height:
            raise SnapshotRefused("height", f"{node.height} where {self.height} is named")
        self._check([child.key for child in node.children])
        return node

    def child(self, node: InnerNode, at: int) -> Subtree:
        """The child of the node that it was read as."""
        child = node.children[at]
        return Subtree(
            BlobPointer(child.address, child.size),
            self.height - 1,
            child.key,
            child.key if at else self.lower,
            node.children[at + 1].key if at + 1 < len(node.children) else self.upper,
        )

    def _check(self, keys: list[EntryKey]) -> None:
        if self.first is not None and (not keys or keys[0] != self.first):
            raise SnapshotRefused("first", "another key than the node above names")
        if keys and self.upper is not None and keys[-1] >= self.upper:
            raise SnapshotRefused("last", "a key of the next node")


def snapshot_source(tree: TreeId) -> Source:
    """The clear key of the snapshot of a tree."""
    return Source(API_SNAPSHOT, tree, "", "snapshot")


def mail_entry_key(key: MailKey) -> EntryKey:
    """The place of a delta or Location; raises BadIdentity."""
    return EntryKey(_BY_MAIL_KEY + mail_key_bytes(key))


def path_entry_key(path: NodePath, key: MailKey) -> EntryKey:
    """The place of a profile or node at the path; raises BadIdentity."""
    # Names are never empty: what follows a path is a NUL, or the name of a child.
    return EntryKey(path_entry_prefix(path) + b"\0" + mail_key_bytes(key))


def path_entry_prefix(path: NodePath) -> bytes:
    """What the keys of all entries at the path and below begin with."""
    return _BY_PATH + b"".join(name.encode() + b"\0" for name in path.names)


def mail_key_of(key: EntryKey) -> MailKey:
    """The mail key that an entry names."""
    return short_key(key[-_MAIL_KEY_BYTES:])


def encode(value: SnapshotRecord | TermList | LeafNode | InnerNode) -> bytes:
    """The bytes of a value; equal values have equal bytes."""
    return _ENCODER.encode(value)


def read_snapshot(payload: bytes) -> SnapshotRecord:
    """Raises SnapshotRefused."""
    record = _read(_SNAPSHOT, payload)
    if record.settled > record.generation:
        raise SnapshotRefused("settled", "above the snapshot's own generation")
    return record


def read_terms(plain: bytes) -> TermList:
    """Raises SnapshotRefused."""
    known = _read(_TERMS, plain)
    _check_ascending([entry.term for entry in known.terms])
    return known


def read_leaf(plain: bytes) -> LeafNode:
    """Raises SnapshotRefused."""
    node = _read(_LEAF, plain)
    _check_ascending([entry.key for entry in node.entries])
    return node


def read_inner(plain: bytes) -> InnerNode:
    """Raises SnapshotRefused."""
    node = _read(_INNER, plain)
    _check_ascending([child.key for child in node.children])
    return node


_T = TypeVar("_T")
_ENCODER = msgspec.msgpack.Encoder()
_SNAPSHOT = msgspec.msgpack.Decoder(SnapshotRecord)
_TERMS = msgspec.msgpack.Decoder(TermList)
_LEAF = msgspec.msgpack.Decoder(LeafNode)
_INNER = msgspec.msgpack.Decoder(InnerNode)


def _key(item: Entry | Child) -> EntryKey:
    return item.key


def _read(decoder: msgspec.msgpack.Decoder[_T], data: bytes) -> _T:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SnapshotRefused("", f"not a snapshot's: {error}") from error


def _check_ascending(keys: list[EntryKey] | list[Term]) -> None:
    if not all(map(lt, keys, keys[1:])):
        raise SnapshotRefused("order", "not ascending")
