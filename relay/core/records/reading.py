"""Reading a new snapshot: what a node lacks of it, and what is kept.

Two snapshots share all but the changed paths, so the work is that of what changed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, MutableMapping

from relay.core.records.snapshot import Interest, SnapshotView, children_for
from schemas.content.blobs import Reference
from schemas.identity import ContentHash
from schemas.snapshots import SnapshotRecord, Subtree, read_terms

FETCHES_MAX = 64


class SnapshotReading:
    """Reads of one snapshot what an interest needs, from the root down.

    `nodes` are the plain bytes that the node keeps; what is read is put there. It ends when
    `missing()` is empty: then each key of the interest can be judged.
    """

    def __init__(
        self,
        record: SnapshotRecord,
        interest: Interest,
        nodes: MutableMapping[ContentHash, bytes],
    ) -> None:
        self.record = record
        self.interest = interest
        self._nodes = nodes
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

    def _descend(self, top: Subtree) -> None:
        level = deque([top])
        while level:
            subtree = level.popleft()
            plain = self._nodes.get(subtree.address)
            if plain is None:
                self._missing[subtree.address] = subtree
            elif subtree.height:
                level.extend(children_for(subtree, plain, self.interest))


def addresses_kept(view: SnapshotView, interest: Interest) -> Iterator[ContentHash]:
    """The blobs of a snapshot that a node keeps for its interest; all else may be swept."""
    yield view.record.terms_reference.address
    for subtree, _ in view.subtrees(interest):
        yield subtree.address
