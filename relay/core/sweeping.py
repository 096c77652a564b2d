"""What no record leads to any more leaves the blob store, an hour after that was first seen.

Mark and sweep: from all records held, and from what is being fetched, to every blob they lead to. A
blob goes only if two sweeps, an hour apart, found nothing that leads to it; a structure that cannot
be read ends the sweep, and nothing goes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from relay.core.book import is_delta
from relay.core.effects import DropBlobs, LoadBlob, Noted
from relay.core.events import BlobArrived
from relay.core.state import State
from schemas import blobs
from schemas.blobs import Reference
from schemas.chunks import read_manifest_chunk, read_root
from schemas.identity import INDEX_KEY, ContentHash
from schemas.refusals import BlobRefused, WireRefused

SWEEP_FIRST_SECONDS = 600.0
SWEEP_EVERY_SECONDS = 3600.0
SWEEP_RETRY_SECONDS = 60.0
READS_AT_ONCE = 32
_BRANCHING = frozenset({blobs.MANIFEST, blobs.MANIFEST_CHUNK, blobs.INDEX_LIST})
_LEAVES = frozenset({blobs.OBJECT, blobs.INDEX_CHUNK, blobs.PROGRAM, blobs.PART})


class Sweeper:
    """The sweep of one node; `suspects` are the blobs that the last one found no way to.

    `ended` counts the sweeps that came to their end, or could not.
    """

    def __init__(self, state: State) -> None:
        self.suspects: frozenset[ContentHash] = frozenset()
        self.ended = 0
        self._state = state
        self._due = state.now.seconds + SWEEP_FIRST_SECONDS
        self._marked: set[ContentHash] | None = None
        self._unread: deque[Reference] = deque()
        self._reading: dict[ContentHash, Reference] = {}

    def deadline(self) -> float | None:
        return self._due if self._marked is None else None

    def tick(self) -> None:
        """Begin a sweep if one is due, and if what the node holds is all that it should hold."""
        if self._marked is not None or self._due > self._state.now.seconds:
            return
        if not self._knows_all():
            self._due = self._state.now.seconds + SWEEP_RETRY_SECONDS
            return
        self._due = self._state.now.seconds + SWEEP_EVERY_SECONDS
        self._marked = set()
        self._go_on()

    def arrived(self, event: BlobArrived) -> None:
        """Go on from a structure that was read."""
        reference = self._reading.pop(event.reference.address, None)
        if reference is None or self._marked is None:
            return
        try:
            for child in _children(reference, event):
                self._mark(child)
        except WireRefused as error:
            self._end()
            subject = f"{reference.kind} {reference.address[:12]}"
            self._state.out.append(Noted("SweepEnded", subject, str(error)))
            return
        self._go_on()

    def _knows_all(self) -> bool:
        """Whether every record in force is here, and every reference in it is understood."""
        state = self._state
        if not state.is_root and not (state.inbox.remembers and state.inbox.calm):
            return False
        if INDEX_KEY not in state.held:
            return False
        understood = _BRANCHING | _LEAVES
        return all(root.kind in understood for root in self._roots())

    def _roots(self) -> Iterator[Reference]:
        state = self._state
        for held in state.held.values():
            if not held.record.deleted and (is_delta(held) or held.kind == "index"):
                yield from held.record.references
        for index in (state.index.record, state.index.former):
            if index is not None:
                yield from index.references
        if state.edge is not None:
            for wanted in state.edge.wanted.values():
                yield wanted.reference

    def _mark(self, reference: Reference) -> None:
        assert self._marked is not None
        if reference.address in self._marked:
            return
        self._marked.add(reference.address)
        in_parts = reference.size >= blobs.PART_MAX_BYTES
        if (reference.kind in _BRANCHING or in_parts) and (
            reference.address in self._state.content.held
        ):
            self._unread.append(reference)

    def _go_on(self) -> None:
        """Read on; with nothing left to read, look whether records came meanwhile, then sweep."""
        assert self._marked is not None
        if not self._unread and not self._reading:
            for root in self._roots():
                self._mark(root)
        while self._unread and len(self._reading) < READS_AT_ONCE:
            reference = self._unread.popleft()
            self._reading[reference.address] = reference
            self._state.out.append(LoadBlob(reference))
        if not self._unread and not self._reading:
            self._sweep(self._marked)

    def _sweep(self, marked: set[ContentHash]) -> None:
        content = self._state.content
        self._end()
        unmarked = content.held - marked - content.in_use()
        gone = unmarked & self.suspects
        self.suspects = frozenset(unmarked - gone)
        if gone:
            content.forget(gone)
            self._state.out.append(DropBlobs(tuple(sorted(gone))))

    def _end(self) -> None:
        self.ended += 1
        self._marked = None
        self._unread.clear()
        self._reading.clear()


def _children(reference: Reference, event: BlobArrived) -> Iterator[Reference]:
    """What a blob leads to, its parts included; raises if it is missing or damaged."""
    if event.value is None:
        raise BlobRefused(reference.address, "it is missing")
    yield from blobs.parts_of(reference, event.value)
    plain = blobs.open_value(reference, event.value, dict(event.parts))
    if reference.kind in (blobs.MANIFEST, blobs.INDEX_LIST):
        yield from read_root(plain).chunks
    elif reference.kind == blobs.MANIFEST_CHUNK:
        yield from (entry.reference for entry in read_manifest_chunk(plain))
