"""Reading a new snapshot: what a node lacks of it, and what is kept.

Two snapshots share all but the changed paths, so the work is that of what changed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import dataclass

from relay.core.records.snapshot import SnapshotInterest, children_for
from schemas.content.blobs import Reference
from schemas.records.snapshots import Entry, EntryKey, SnapshotRecord, Subtree, read_terms
from schemas.values.identity import ContentHash

FETCHES_MAX = 64


@dataclass(frozen=True, slots=True, eq=False)
class WholeReading:
    """What was read of a snapshot to its end: all nodes that its interest needs."""

    record: SnapshotRecord
    interest: SnapshotInterest
    addresses: frozenset[ContentHash]


class SnapshotReading:
    """Reads of one snapshot what an interest needs, from the root down.

    It ends when `missing()` is empty: then each key of the interest can be judged.
    """

    def __init__(
        self,
        record: SnapshotRecord,
        interest: SnapshotInterest,
        nodes: MutableMapping[ContentHash, bytes],
        earlier: WholeReading | None = None,
    ) -> None:
        self.record = record
        self.interest = interest
        # What it has read is not looked at again, as far as it had the same interest.
        self.earlier = earlier
        # The plain bytes that the node keeps; what is read is put there.
        self._nodes = nodes
        self._otherwise = (
            SnapshotInterest() if earlier is None else interest.differing(earlier.interest)
        )
        # What it went through, and what it left aside: the earlier one has it, and all below it.
        self._fresh: list[Subtree] = []
        self._shared: set[ContentHash] = set()
        self._missing: dict[ContentHash, Subtree | None] = {}
        if record.terms_reference.address not in nodes:
            self._missing[record.terms_reference.address] = None
        self._descend(record.tree)

    def missing(self, most: int = FETCHES_MAX) -> tuple[Reference, ...]:
        """What to fetch now, those nearest to the root first; empty when all is read."""
        subtrees = list(self._missing.values())[:most]
        terms = self.record.terms_reference
        return tuple(terms if subtree is None else subtree.reference for subtree in subtrees)

    def take(self, address: ContentHash, plain: bytes) -> None:
        """A blob came, its hash checked. Raises SnapshotRefused, and still lacks it then."""
        if address not in self._missing:
            return
        subtree = self._missing[address]
        if subtree is None:
            read_terms(plain)
        elif subtree.height:
            subtree.inner(plain)
        else:
            subtree.leaf(plain)
        self._nodes[address] = plain
        del self._missing[address]
        if subtree is not None:
            self._descend(subtree)

    def whole(self) -> WholeReading:
        """All that is read now, of this snapshot alone."""
        read = {subtree.address for subtree in self._fresh}
        read.add(self.record.terms_reference.address)
        if self.earlier is not None:
            gone = {subtree.address for subtree in self._replaced()}
            gone.add(self.earlier.record.terms_reference.address)
            read |= self.earlier.addresses - gone
        return WholeReading(self.record, self.interest, frozenset(read))

    def changed(self) -> set[EntryKey]:
        """The keys that it lists otherwise than the earlier one; all, if there is none."""
        now = set(self._entries(self._fresh))
        return {entry.key for entry in now.symmetric_difference(self._entries(self._replaced()))}

    def _entries(self, subtrees: Iterable[Subtree]) -> Iterator[Entry]:
        for subtree in subtrees:
            if not subtree.height:
                yield from subtree.leaf(self._nodes[subtree.address]).entries

    def _replaced(self) -> Iterator[Subtree]:
        """The nodes of the earlier one, but for what is shared with it."""
        earlier = self.earlier
        level = deque([earlier.record.tree] if earlier is not None else ())
        while level and earlier is not None:
            subtree = level.popleft()
            if subtree.address in self._shared:
                continue
            yield subtree
            if subtree.height:
                plain = self._nodes[subtree.address]
                level.extend(children_for(subtree, plain, earlier.interest))

    def _descend(self, top: Subtree) -> None:
        whole = self.earlier.addresses if self.earlier is not None else frozenset()
        level = deque([top])
        while level:
            subtree = level.popleft()
            plain = self._nodes.get(subtree.address)
            if plain is None:
                self._missing[subtree.address] = subtree
            elif subtree.address in whole and not self._otherwise.concerns(subtree):
                self._shared.add(subtree.address)
            else:
                self._fresh.append(subtree)
                if subtree.height:
                    level.extend(children_for(subtree, plain, self.interest))
