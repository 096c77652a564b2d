"""The tree over all records in force, changed path by path; what did not change is shared.

Nodes are split by content, not by history: where a node may begin is told by the keys alone, so
equal contents have equal roots. A node begins at a key whose hash says so, once the one before it
has its least size, and at the latest when that has its greatest.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from schemas.content import blobs
from schemas.content.blobs import StoredBlob
from schemas.records.snapshots import (
    INNER_MAX,
    LEAF_MAX,
    SNAPSHOT_INNER,
    SNAPSHOT_LEAF,
    BlobPointer,
    Child,
    Entry,
    EntryKey,
    InnerNode,
    LeafNode,
    encode,
    read_inner,
    read_leaf,
)
from schemas.values import codec

# The least size, and how many bits of a key's hash must be 0 for a node to begin there: on average
# 32 entries in a leaf and 16 references in an inner node. Twice that costs a change more bytes.
_LEAF_MIN, _LEAF_BITS = 16, 4
_INNER_MIN, _INNER_BITS = 8, 3


@dataclass(frozen=True, slots=True)
class _Node:
    height: int
    first: EntryKey
    pointer: BlobPointer
    plain: bytes


_Item: TypeAlias = Entry | Child


@dataclass(frozen=True, slots=True)
class _Level:
    """All nodes of one height in order, and their first keys."""

    firsts: list[EntryKey] = field(default_factory=list)
    nodes: list[_Node] = field(default_factory=list)

    def node(self, first: EntryKey) -> _Node | None:
        at = bisect_left(self.firsts, first)
        return self.nodes[at] if at < len(self.firsts) and self.firsts[at] == first else None


class SnapshotTree:
    """Immutable; `changed` makes the next one. Starts from `empty()`."""

    __slots__ = ("_levels", "count")

    def __init__(self, levels: tuple[_Level, ...], count: int) -> None:
        self._levels = levels
        self.count = count

    @classmethod
    def empty(cls) -> SnapshotTree:
        return cls((_Level(),), 0)

    @property
    def root(self) -> BlobPointer:
        return self._root.pointer

    @property
    def height(self) -> int:
        """Levels of inner nodes above the leaves."""
        return len(self._levels) - 1

    @property
    def _root(self) -> _Node:
        nodes = self._levels[-1].nodes
        return nodes[0] if nodes else _EMPTY_LEAF

    def changed(self, changes: Mapping[EntryKey, int | None]) -> SnapshotTree:
        """The tree in which these keys have these generations; None is not listed."""
        items: dict[EntryKey, _Item | None] = {
            key: None if generation is None else Entry(key, generation)
            for key, generation in changes.items()
        }
        gained = 0
        levels: list[_Level] = []
        while not levels or len(levels[-1].nodes) > 1:
            height = len(levels)
            if height < len(self._levels):
                before = self._levels[height]
            else:
                before = _Level()
                items = {node.first: _child(node) for node in levels[-1].nodes}
            work = _Rechunk(before, items, height)
            level, items = work.run()
            levels.append(level)
            gained += work.gained if not height else 0
        return SnapshotTree(tuple(levels), self.count + gained)

    def entries(self) -> Iterator[Entry]:
        """All entries, ascending."""
        for node in self._levels[0].nodes:
            yield from read_leaf(node.plain).entries

    def blobs(self) -> Iterator[StoredBlob]:
        """All nodes, the root first."""
        return self._blobs(self._root, ())

    def blobs_since(self, previous: SnapshotTree) -> Iterator[StoredBlob]:
        """The nodes that the previous tree does not have at the same place, the root first."""
        return self._blobs(self._root, previous._levels)

    def _blobs(self, node: _Node, known: tuple[_Level, ...]) -> Iterator[StoredBlob]:
        if node.height < len(known):
            there = known[node.height].node(node.first)
            if there is not None and there.pointer == node.pointer:
                return
        yield blobs.store(SNAPSHOT_INNER if node.height else SNAPSHOT_LEAF, node.plain)
        if node.height:
            below = self._levels[node.height - 1]
            for child in read_inner(node.plain).children:
                found = below.node(child.key)
                assert found is not None
                yield from self._blobs(found, known)

    def assert_invariants(self) -> None:
        """Assert that each level is what the rule makes of the level below."""
        items: list[_Item] = list(self.entries())
        assert len(items) == self.count
        for height, level in enumerate(self._levels):
            assert level.firsts == [node.first for node in level.nodes]
            assert [item for node in level.nodes for item in _items(node)] == items
            for at, node in enumerate(level.nodes[:-1]):
                held = list(_items(node))
                assert not any(_begins(held[:n], held[n].key, height) for n in range(1, len(held)))
                assert _begins(held, level.firsts[at + 1], height)
            items = [_child(node) for node in level.nodes]
        assert len(items) <= 1


class _Rechunk:
    """Splits one level anew, around what changed in it.

    Where a node begins depends on the node before it and on its own first key only. So the work
    starts at the node that holds a changed key, and ends where a new node begins as a former one.
    """

    def __init__(
        self, before: _Level, changes: Mapping[EntryKey, _Item | None], height: int
    ) -> None:
        self.before = before
        self.changes = changes
        self.height = height
        self.keys = sorted(changes)
        # Entries more than before.
        self.gained = 0

    def run(self) -> tuple[_Level, dict[EntryKey, _Item | None]]:
        """The level after the changes, and what it changes in the level above."""
        before = self.before
        regions: list[tuple[int, int, list[_Node]]] = []
        above: dict[EntryKey, _Item | None] = {}
        at = stop = 0
        while at < len(self.keys):
            start = max(bisect_right(before.firsts, self.keys[at]) - 1, 0)
            # Never into the last region: that ends where the next first key stays.
            while start and self._gone(before.firsts[start]):
                start -= 1
            assert start >= stop, "regions do not overlap"
            stop, made = self._region(start)
            regions.append((start, stop, made))
            above |= _difference(before.nodes[start:stop], made)
            at = len(self.keys)
            if stop < len(before.firsts):
                at = bisect_left(self.keys, before.firsts[stop])
        after = _Level(before.firsts.copy(), before.nodes.copy())
        for start, stop, made in reversed(regions):
            after.nodes[start:stop] = made
            after.firsts[start:stop] = [node.first for node in made]
        return after, above

    def _region(self, start: int) -> tuple[int, list[_Node]]:
        """Make nodes from `start` on; returns where the former ones go on, and the new ones."""
        firsts = self.before.firsts
        made: list[_Node] = []
        held: list[_Item] = []
        at = start
        while True:
            for item in self._merged(at):
                if held and _begins(held, item.key, self.height):
                    made.append(_node(held, self.height))
                    held = []
                held.append(item)
            at += 1
            ends = at >= len(firsts)
            if ends or (
                not self._gone(firsts[at]) and (not held or _begins(held, firsts[at], self.height))
            ):
                if held:
                    made.append(_node(held, self.height))
                return min(at, len(firsts)), made

    def _merged(self, at: int) -> list[_Item]:
        """The items of a node with the changes that fall within it."""
        firsts = self.before.firsts
        items = list(_items(self.before.nodes[at])) if firsts else []
        low = bisect_left(self.keys, firsts[at]) if at else 0
        high = bisect_left(self.keys, firsts[at + 1]) if at + 1 < len(firsts) else len(self.keys)
        if low == high:
            return items
        size = len(items)
        merged: dict[EntryKey, _Item | None] = {item.key: item for item in items}
        for key in self.keys[low:high]:
            merged[key] = self.changes[key]
        items = [item for _, item in sorted(merged.items()) if item is not None]
        self.gained += len(items) - size
        return items

    def _gone(self, key: EntryKey) -> bool:
        return key in self.changes and self.changes[key] is None


def _begins(held: list[_Item], key: EntryKey, height: int) -> bool:
    """Whether a node begins at the key, after one that holds these."""
    size = len(held)
    if not height:
        return size >= LEAF_MAX or (
            size >= _LEAF_MIN and not _hash_of(key) & ((1 << _LEAF_BITS) - 1)
        )
    # Each level looks at bits of its own: those below are 0 in nearly all first keys.
    bits = _hash_of(key) >> (_LEAF_BITS + _INNER_BITS * (height - 1))
    return size >= INNER_MAX or (size >= _INNER_MIN and not bits & ((1 << _INNER_BITS) - 1))


def _hash_of(key: EntryKey) -> int:
    # The end of a key is of a mail key, which is a hash already.
    return int.from_bytes(key[-8:], "big")


def _items(node: _Node) -> tuple[_Item, ...]:
    if node.height:
        return read_inner(node.plain).children
    return read_leaf(node.plain).entries


def _node(items: list[_Item], height: int) -> _Node:
    if height:
        children = tuple(item for item in items if isinstance(item, Child))
        return _stored(height, items[0].key, encode(InnerNode(height, children)))
    entries = tuple(item for item in items if isinstance(item, Entry))
    return _stored(height, items[0].key, encode(LeafNode(entries)))


def _stored(height: int, first: EntryKey, plain: bytes) -> _Node:
    kind = SNAPSHOT_INNER if height else SNAPSHOT_LEAF
    pointer = BlobPointer(bytes.fromhex(codec.address(kind, plain)), len(plain))
    return _Node(height, first, pointer, plain)


def _child(node: _Node) -> Child:
    return Child(node.first, node.pointer.address, node.pointer.size)


def _difference(before: list[_Node], after: list[_Node]) -> dict[EntryKey, _Item | None]:
    """By first key, what the level above must name otherwise."""
    former = {node.first: node.pointer for node in before}
    changed: dict[EntryKey, _Item | None] = dict.fromkeys(former)
    for node in after:
        if former.get(node.first) == node.pointer:
            del changed[node.first]
        else:
            changed[node.first] = _child(node)
    return changed


_EMPTY_LEAF = _stored(0, EntryKey(b""), encode(LeafNode(())))
