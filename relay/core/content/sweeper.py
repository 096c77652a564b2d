"""What no record leads to any more leaves the blob store, an hour after that was first seen.

Mark and sweep: from all records held, and from what is being fetched, to every blob they lead to. A
blob goes only if two sweeps, an hour apart, found nothing that leads to it; a structure that cannot
be read ends the sweep, and nothing goes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from relay.core.content.content import Content, references_in
from relay.core.effects import DropBlobs, Effect, LoadBlob, Noted
from relay.core.events import BlobArrived
from schemas.content import blobs
from schemas.content.blobs import Reference
from schemas.records.release_body import RELEASE
from schemas.records.snapshots import SNAPSHOT_INNER, SNAPSHOT_LEAF, SNAPSHOT_TERMS
from schemas.values.identity import ContentHash
from schemas.values.refusals import BlobRefused, WireRefused

SWEEP_FIRST_SECONDS = 600.0
SWEEP_EVERY_SECONDS = 3600.0
SWEEP_RETRY_SECONDS = 60.0
READS_AT_ONCE = 32
_BRANCHING = frozenset({blobs.MANIFEST, blobs.MANIFEST_CHUNK, SNAPSHOT_INNER})
_LEAVES = frozenset(
    {
        blobs.OBJECT,
        blobs.TEMPLATE,
        blobs.CUSTOMIZER,
        blobs.PROGRAM,
        blobs.PART,
        RELEASE,
        SNAPSHOT_LEAF,
        SNAPSHOT_TERMS,
    }
)


class Sweeper:
    """The sweep of one node."""

    def __init__(
        self,
        content: Content,
        roots: Callable[[], Iterable[Reference]],
        knows_all: Callable[[], bool],
        out: list[Effect],
        now: float,
    ) -> None:
        """`roots` lead to all content that records held, wants and snapshots name.

        `knows_all` says whether these are all that there should be. `now` is in monotonic seconds.
        """
        self._content = content
        self._out = out
        self._roots = roots
        self._knows_all = knows_all
        self._due = now + SWEEP_FIRST_SECONDS
        # What the last sweep found no way to.
        self._suspects: frozenset[ContentHash] = frozenset()
        # None while no sweep is under way.
        self._marked: set[ContentHash] | None = None
        self._unread: deque[Reference] = deque()
        self._reading: dict[ContentHash, Reference] = {}

    @property
    def is_sweeping(self) -> bool:
        return self._marked is not None

    def deadline(self) -> float | None:
        """When the next sweep is due, in monotonic seconds; None while one is under way."""
        return None if self.is_sweeping else self._due

    def tick(self, now: float) -> None:
        """Begin a sweep if one is due, and if what the node holds is all that it should hold."""
        if self.is_sweeping or self._due > now:
            return
        understood = _BRANCHING | _LEAVES
        if not self._knows_all() or any(root.kind not in understood for root in self._roots()):
            self._due = now + SWEEP_RETRY_SECONDS
            return
        self._due = now + SWEEP_EVERY_SECONDS
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
            self._out.append(Noted("SweepEnded", subject, str(error)))
            return
        self._go_on()

    def assert_invariants(self) -> None:
        """Assert that something is under way only during a sweep, and that all of it is marked."""
        marked = self._marked or set()
        assert {reference.address for reference in self._unread} <= marked
        assert self._reading.keys() <= marked

    def _mark(self, reference: Reference) -> None:
        assert self._marked is not None
        if reference.address in self._marked:
            return
        self._marked.add(reference.address)
        in_parts = reference.size >= blobs.PART_MAX_BYTES
        if (reference.kind in _BRANCHING or in_parts) and (reference.address in self._content.held):
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
            self._out.append(LoadBlob(reference))
        if not self._unread and not self._reading:
            self._sweep(self._marked)

    def _sweep(self, marked: set[ContentHash]) -> None:
        self._end()
        unmarked = self._content.held - marked - self._content.in_use()
        gone = unmarked & self._suspects
        self._suspects = frozenset(unmarked - gone)
        if gone:
            self._content.forget(gone)
            self._out.append(DropBlobs(tuple(sorted(gone))))

    def _end(self) -> None:
        self._marked = None
        self._unread.clear()
        self._reading.clear()


def _children(reference: Reference, event: BlobArrived) -> Iterator[Reference]:
    """What a blob leads to, its parts included; raises if it is missing or damaged."""
    if event.value is None:
        raise BlobRefused(reference.address, "it is missing")
    yield from blobs.parts_of(reference, event.value)
    plain = blobs.open_value(reference, event.value, dict(event.parts))
    yield from references_in(reference.kind, plain)
