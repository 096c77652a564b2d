"""One start of a centre, until it is sure of its ledger: whether that is lost, and what is awaited.

Nothing is issued that would say what is in force before every child has shown what it holds, or a
person goes on without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from controllers.core.ledger import Ledger
from controllers.core.notes import Notes
from controllers.core.recovery import Recalled, highest, missing, newest_index
from schemas import blobs, codec
from schemas.blobs import Reference
from schemas.chunks import read_index_chunk, read_manifest_chunk, read_root
from schemas.identity import INDEX_KEY, MailKey
from schemas.records import DeltaHead, NodeRecord
from schemas.refusals import WireRefused


class ReadingBack:
    """`lost` says that the ledger lacks what was issued; `enrolled` are children known besides.

    Nothing is stamped at or below what the notes know of, also before the children were heard.
    """

    def __init__(self, ledger: Ledger, notes: Notes, enrolled: Iterable[str] = ()) -> None:
        self.lost = notes.reading or ledger.highest < notes.generation
        notes.read_back(ended=not self.lost)
        ledger.raise_to(notes.generation)
        self._ledger = ledger
        self._notes = notes
        self._enrolled = frozenset(enrolled)
        self._waived: set[str] = set()
        self._silent: set[str] = set()
        self._read: set[str] = set()
        self._recalled: list[Recalled] = []

    # Is it lost?

    def unheard(self, shown: Mapping[str, int]) -> frozenset[str]:
        """Children by the ledger that have said nothing yet of the index that they hold."""
        return self._direct() - shown.keys()

    def suspects(self, shown: Mapping[str, int]) -> list[str]:
        """Children that say that they hold a newer index than the ledger."""
        return sorted(
            name for name, index in shown.items() if index > self._ledger.index_generation
        )

    def believe(self, recalled: Iterable[Recalled]) -> None:
        """Judge by what a child holds: what it says of itself proves nothing."""
        if newest_index(recalled) > self._ledger.index_generation:
            self.lost = True
            self._notes.read_back(ended=False)

    # It is.

    @property
    def asked(self) -> frozenset[str]:
        """All children that the ledger is read back from."""
        return self._direct() | self._enrolled

    @property
    def awaited(self) -> frozenset[str]:
        """Those that have not shown all that they hold, and that nobody goes on without."""
        return self.asked - self._read - self._waived

    @property
    def partial(self) -> frozenset[str]:
        """Those that nobody waits for, though they have not shown all: they may show some of it."""
        return (self.asked & self._waived) - self._read

    def showed(self, child: str, recalled: Iterable[Recalled], *, whole: bool = True) -> None:
        """Take what a child holds now, instead of what it showed before.

        What is not `whole` lacks something, so the child has not shown all that it holds.
        """
        self._recalled = [item for item in self._recalled if item.child != child]
        self._recalled += recalled
        if whole:
            self._read.add(child)

    def go_on_without(self, child: str) -> None:
        """Wait for this child no more; what only it holds and cannot show now is lost."""
        self._waived.add(child)

    def is_waived(self, child: str) -> bool:
        """Whether someone goes on without this child."""
        return child in self._waived

    def was_silent(self, child: str) -> None:
        """A child gave no answer: if someone goes on without it, it is not asked again."""
        if child in self._waived:
            self._silent.add(child)

    def is_given_up(self, child: str) -> bool:
        """Whether this child is asked for nothing any more."""
        return child in self._silent

    def holders(self, item: Recalled) -> list[str]:
        """The children that may have what a record leads to, first the one that showed it."""
        others = {i.child for i in self._recalled if i.slot == item.slot} - {item.child}
        return [item.child, *sorted(others)]

    def restored(self) -> list[Recalled]:
        """What the ledger lacks; what is stamped from now on lies above all that was shown."""
        found = missing(self._recalled, self._ledger.records)
        self._notes.recover(item.slot for item in found if item.envelope.kind != "node")
        self._ledger.raise_to(highest(self._recalled))
        return found

    def confirmed(self) -> list[Recalled]:
        """Deltas of the ledger that a child holds as they are: it has their content, too."""
        known = {item.slot: item for item in self._recalled if item.envelope.body is not None}
        records = self._ledger.records
        return [
            item
            for slot, item in sorted(known.items())
            if slot in records and records[slot].generation == item.record.generation
        ]

    def indexes(self) -> list[Recalled]:
        """What children showed of indexes newer than the ledger's, the newest first.

        A child may show one whose content it has not fetched yet; another may have it.
        """
        held = self._ledger.index_generation
        shown = [item for item in self._recalled if item.slot == INDEX_KEY]
        newer = [item for item in shown if item.record.generation > held]
        return sorted(newer, key=lambda item: item.record.generation, reverse=True)

    def superseded(self, index: Recalled, listed: Mapping[MailKey, int]) -> list[DeltaHead]:
        """Placements of the ledger that this later index does not list as they are.

        They were deleted or replaced since: nobody may act on them any more.
        """
        return [
            record
            for slot, record in sorted(self._ledger.records.items())
            if isinstance(record, DeltaHead)
            and not record.deleted
            and record.generation < index.record.generation
            and listed.get(slot) != record.generation
        ]

    def ended(self) -> None:
        """All of it is in the ledger."""
        self._notes.read_back(ended=True)

    def _direct(self) -> frozenset[str]:
        """The names of the centre's own children, by the ledger."""
        nodes = [item for item in self._ledger.records.values() if isinstance(item, NodeRecord)]
        there = [node.path for node in nodes if not node.deleted]
        return frozenset(path.name for path in there if len(path.names) == 1)


def leads_to(reference: Reference, plain: bytes | None) -> list[Reference]:
    """What a blob of a manifest or an index names; nothing, if it is missing or damaged."""
    if plain is None:
        return []
    try:
        if reference.kind in (blobs.MANIFEST, blobs.INDEX_LIST):
            return list(read_root(plain).chunks)
        if reference.kind == blobs.MANIFEST_CHUNK:
            return [entry.reference for entry in read_manifest_chunk(plain)]
    except WireRefused:
        return []
    return []


def read_index(root: bytes | None, chunks: Iterable[bytes | None]) -> dict[MailKey, int] | None:
    """What an index lists, from its root and its chunks; None if something of it is missing."""
    listed: dict[MailKey, int] = {}
    parts = list(chunks)
    if root is None or None in parts:
        return None
    try:
        for part in parts:
            listed |= read_index_chunk(part or b"")
    except WireRefused:
        return None
    return listed


def is_content(reference: Reference, plain: bytes | None) -> bool:
    """Whether this is what the reference names, whoever shows it."""
    return plain is not None and codec.address(reference.kind, plain) == reference.address
