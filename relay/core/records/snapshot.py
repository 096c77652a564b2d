"""A verified snapshot, read as far as its blobs are here."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from schemas.content.blobs import Reference
from schemas.records.snapshots import (
    NO_SNAPSHOT,
    Entry,
    EntryKey,
    InnerNode,
    SnapshotRecord,
    Subtree,
    Term,
    TermEntry,
    path_entry_prefix,
    read_terms,
)
from schemas.values.identity import ContentHash, NodePath


@dataclass(frozen=True, slots=True)
class ListedAt:
    """In force at this generation."""

    generation: int


@dataclass(frozen=True, slots=True)
class NotListed:
    """Not in force, by a leaf that was read."""


@dataclass(frozen=True, slots=True)
class UnreadBlobs:
    """These blobs would tell; there may be more behind them."""

    missing: tuple[Reference, ...]


NOT_LISTED = NotListed()
SnapshotListing: TypeAlias = ListedAt | NotListed | UnreadBlobs


class SnapshotInterest:
    """Which part of the tree a node needs: these keys, and all at its path and below."""

    __slots__ = ("_first", "_keys", "_last")

    def __init__(self, keys: Sequence[EntryKey] = (), subtree: NodePath | None = None) -> None:
        self._keys = sorted(keys)
        self._first = b"" if subtree is None else path_entry_prefix(subtree)
        # No byte of a key of a path is 255 where the next name would stand.
        self._last = b"" if subtree is None else self._first + b"\xff"

    @classmethod
    def everything(cls) -> SnapshotInterest:
        interest = cls()
        interest._last = b"\xff"
        return interest

    def differing(self, other: SnapshotInterest) -> SnapshotInterest:
        """The keys of one of them alone; both are of one subtree."""
        if self._keys == other._keys:
            return SnapshotInterest()
        return SnapshotInterest(list(set(self._keys).symmetric_difference(other._keys)))

    def concerns(self, subtree: Subtree) -> bool:
        """Whether a key of it would stand below there, listed or not."""
        lower, upper = subtree.lower, subtree.upper
        if lower < self._last and (upper is None or self._first < upper):
            return True
        at = bisect_left(self._keys, lower)
        return at < len(self._keys) and (upper is None or self._keys[at] < upper)


class SnapshotView:
    """What a snapshot says of keys and terms; raises SnapshotRefused where a blob is malformed."""

    def __init__(self, record: SnapshotRecord, nodes: Mapping[ContentHash, bytes]) -> None:
        self.record = record
        # The plain bytes of blobs whose hash was checked.
        self.nodes = nodes
        self._terms: dict[Term, TermEntry] | None = None

    @property
    def generation(self) -> int:
        return self.record.generation

    def generation_of(self, key: EntryKey) -> SnapshotListing:
        """What it lists for the key, or the one blob that is missing on the way there."""
        at = self.record.tree
        while (plain := self.nodes.get(at.address)) is not None:
            if not at.height:
                found = at.leaf(plain).generation_of(key)
                return NOT_LISTED if found is None else ListedAt(found)
            node = at.inner(plain)
            at = at.child(node, node.position(key))
        return UnreadBlobs((at.reference,))

    def generations_of(
        self, keys: Iterable[EntryKey]
    ) -> Iterator[tuple[EntryKey, SnapshotListing]]:
        """The same for many keys, ascending; each blob is read once."""
        ordered = sorted(keys)
        waiting = [(self.record.tree, 0, len(ordered))]
        while waiting:
            at, low, high = waiting.pop()
            plain = self.nodes.get(at.address)
            if plain is None:
                unread = UnreadBlobs((at.reference,))
                for key in ordered[low:high]:
                    yield key, unread
            elif not at.height:
                listed = {entry.key: entry.generation for entry in at.leaf(plain).entries}
                for key in ordered[low:high]:
                    found = listed.get(key)
                    yield key, NOT_LISTED if found is None else ListedAt(found)
            else:
                below = self._split(at, at.inner(plain), ordered, low, high)
                waiting.extend(reversed(list(below)))

    def term_of(self, term: Term) -> TermEntry | UnreadBlobs | None:
        """The entry of a term, None if the centre does not know it."""
        if self._terms is None:
            reference = self.record.terms_reference
            plain = self.nodes.get(reference.address)
            if plain is None:
                return UnreadBlobs((reference,))
            self._terms = {entry.term: entry for entry in read_terms(plain).terms}
        return self._terms.get(term)

    def subtrees(self, interest: SnapshotInterest) -> Iterator[tuple[Subtree, bytes | None]]:
        """The nodes that the interest needs, with their bytes if they are here, breadth first.

        Nothing is known of what lies below one that is not here.
        """
        level = [self.record.tree]
        while level:
            below: list[Subtree] = []
            for subtree in level:
                plain = self.nodes.get(subtree.address)
                yield subtree, plain
                if plain is not None and subtree.height:
                    below.extend(children_for(subtree, plain, interest))
            level = below

    def entries(self) -> Iterator[Entry] | UnreadBlobs:
        """All entries, ascending; what is missing if not all nodes are here."""
        everything = SnapshotInterest.everything()
        missing = [tree.reference for tree, plain in self.subtrees(everything) if plain is None]
        if missing:
            return UnreadBlobs(tuple(missing))
        return self.listed(everything)

    def listed(self, interest: SnapshotInterest) -> Iterator[Entry]:
        """The entries of all leaves that the interest needs and that are here, ascending."""
        for subtree, plain in self.subtrees(interest):
            if plain is not None and not subtree.height:
                yield from subtree.leaf(plain).entries

    @staticmethod
    def _split(
        at: Subtree, node: InnerNode, keys: Sequence[EntryKey], low: int, high: int
    ) -> Iterator[tuple[Subtree, int, int]]:
        """Which child covers which of the keys from `low` to `high`."""
        while low < high:
            child = at.child(node, node.position(keys[low]))
            end = high if child.upper is None else bisect_left(keys, child.upper, low, high)
            yield child, low, end
            low = end


def children_for(subtree: Subtree, plain: bytes, interest: SnapshotInterest) -> Iterator[Subtree]:
    """The children of an inner node that the interest needs; raises SnapshotRefused."""
    node = subtree.inner(plain)
    for at in range(len(node.children)):
        child = subtree.child(node, at)
        if interest.concerns(child):
            yield child


STALE_AFTER_SECONDS = 1200.0


class ViewAge:
    """How far the newest snapshot's time lags, beside the least lag of this run.

    Clocks need not agree: only how the lag grows counts. The centre's may be set back.
    """

    def __init__(self, now: float) -> None:
        self._started = now
        self._rank = NO_SNAPSHOT
        # Seconds of the newest snapshot's own time, and the least that ours was ahead of one.
        self._newest: float | None = None
        self._least = 0.0

    def observe(self, record: SnapshotRecord, now: float) -> None:
        """A verified snapshot was shown."""
        if record.rank <= self._rank:
            return
        time, former = record.time_ms / 1000, self._newest
        if former is None or time < former:
            self._least = now - time
        self._rank, self._newest = record.rank, time
        self._least = min(self._least, now - time)

    def stale(self, now: float) -> bool:
        """Whether the newest is 20 minutes older than one that a good parent would show."""
        if self._newest is None:
            return now - self._started >= STALE_AFTER_SECONDS
        return now - self._newest - self._least >= STALE_AFTER_SECONDS
