"""Reading a new snapshot: what a node lacks of it, what a parent sends along, what is kept.

Two snapshots share all but the changed paths, so the work is that of what changed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterator, MutableMapping

from relay.core.records.snapshot import Interest, SnapshotView, children_for
from schemas import blobs
from schemas.blobs import Reference, StoredBlob
from schemas.identity import ContentHash
from schemas.snapshots import SnapshotRecord, Subtree, read_terms

PROOF_MAX_BYTES = 8192
FETCHES_MAX = 64


class SnapshotReading:
    """Reads of one snapshot what an interest needs, from the root down.

    `nodes` are the plain bytes that the node keeps; what is read is put there. `complete` is the
    union of `seen` of former readings that ended, for the same interest or a greater one: below
    these addresses nothing is missing. It ends when `missing()` is empty: then each key of the
    interest can be judged.
    """

    def __init__(
        self,
        record: SnapshotRecord,
        interest: Interest,
        nodes: MutableMapping[ContentHash, bytes],
        complete: Container[ContentHash] = (),
    ) -> None:
        self.record = record
        self._interest = interest
        self._nodes = nodes
        self._complete = complete
        self._missing: dict[ContentHash, Subtree | None] = {}
        # Blobs that are here and were looked at.
        self.seen: set[ContentHash] = set()
        # Leaves not seen in a former reading: the keys that they cover may stand otherwise.
        self.renewed: list[Subtree] = []
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
            if subtree.address in self._complete:
                continue
            plain = self._nodes.get(subtree.address)
            if plain is None:
                self._missing[subtree.address] = subtree
                continue
            self.seen.add(subtree.address)
            if subtree.height:
                level.extend(children_for(subtree, plain, self._interest))
            else:
                self.renewed.append(subtree)


def addresses_kept(view: SnapshotView, interest: Interest) -> Iterator[ContentHash]:
    """The blobs of a snapshot that a node keeps for its interest; all else may be swept."""
    yield view.record.terms_reference.address
    for subtree, _ in view.subtrees(interest):
        yield subtree.address


def proof(
    view: SnapshotView,
    interest: Interest,
    known: Container[ContentHash],
    limit_bytes: int = PROOF_MAX_BYTES,
) -> tuple[StoredBlob, ...]:
    """What goes along with a snapshot to a child of this interest, those nearest to the root first.

    `known` are the blobs that the child has of an older snapshot. Counted are stored bytes; what
    does not fit the child fetches.
    """
    sent: list[StoredBlob] = []
    terms = view.record.terms_reference
    if terms.address not in known:
        limit_bytes -= _send(terms, view, limit_bytes, sent)
    level = deque([view.record.tree])
    while level:
        subtree = level.popleft()
        if subtree.address in known:
            continue
        size = _send(subtree.reference, view, limit_bytes, sent)
        limit_bytes -= size
        if size and subtree.height:
            level.extend(children_for(subtree, view.nodes[subtree.address], interest))
    return tuple(sent)


def _send(
    reference: Reference, view: SnapshotView, limit_bytes: int, sent: list[StoredBlob]
) -> int:
    """Add a blob if it is here and fits; returns its stored bytes, 0 if it was not added."""
    plain = view.nodes.get(reference.address)
    if plain is None:
        return 0
    blob = blobs.store(reference.kind, plain)
    size = sum(len(value) for value in blob.values.values())
    if size > limit_bytes:
        return 0
    sent.append(blob)
    return size
