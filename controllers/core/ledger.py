"""What was issued, by slot: what is stamped next lies above all of it, also of what was read back.

A record is remembered once it is kept; one that is only stamped is not in force.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controllers.core.drafts import Draft, slot_of
from controllers.core.index import index_draft
from relay.core import tombstones
from schemas.identity import (
    INDEX_KEY,
    ContentHash,
    Generation,
    MailKey,
    TreeId,
    next_generation,
)
from schemas.records import DeltaHead, IndexRecord, Record, decode_payload
from schemas.signing import Envelope


class Ledger:
    """`records` holds all that is in force, tombstones included; `in_force` the placements.

    `highest` is the generation above which the next record is stamped; `bare` are the deltas of
    which only the head was read back: they concern nobody, and no one holds anything of them.
    """

    def __init__(self, tree: TreeId, kept: Iterable[Envelope] = ()) -> None:
        self.tree = tree
        self.records: dict[MailKey, Record] = {}
        self.in_force: dict[MailKey, int] = {}
        self.highest = Generation(0)
        self._index_kept: frozenset[ContentHash] = frozenset()
        self.bare: set[MailKey] = set()
        for envelope in kept:
            record = decode_payload(envelope.kind, envelope.payload)
            self.remember(envelope.kind, record, bare=envelope.body is None)

    @property
    def index_generation(self) -> int:
        """That of the index held, 0 without one."""
        held = self.records.get(INDEX_KEY)
        return held.generation if held else 0

    def stamp(self, drafts: Sequence[Draft], now_ms: int) -> list[Record]:
        """The records as they are to be signed, each above all before."""
        stamped = []
        for draft in drafts:
            self.highest = next_generation(self.highest, now_ms)
            stamped.append(draft.stamped(self.highest))
        return stamped

    def raise_to(self, generation: int) -> None:
        """Stamp nothing at or below this generation from now on."""
        self.highest = max(self.highest, Generation(generation))

    def remember(self, kind: str, record: Record, *, bare: bool = False) -> None:
        """Take a record that is kept."""
        slot = slot_of(kind, record)
        self.records[slot] = record
        self.raise_to(record.generation)
        if isinstance(record, DeltaHead):
            self.in_force.pop(slot, None)
            (self.bare.add if bare else self.bare.discard)(slot)
            if not record.deleted:
                self.in_force[slot] = record.generation

    def old_tombstones(self, now_ms: int) -> list[MailKey]:
        """The placements that are gone for longer than that is remembered in the tree."""
        oldest = now_ms - tombstones.RETENTION_MS
        return [
            slot
            for slot, record in self.records.items()
            if record.deleted and record.generation < oldest and isinstance(record, DeltaHead)
        ]

    def forget(self, slots: Iterable[MailKey]) -> None:
        """Hold these tombstones no longer, as after a start on a ledger without them.

        A namesake made later is stamped above them nevertheless, because `highest` stays.
        """
        for slot in slots:
            del self.records[slot]
            self.bare.discard(slot)

    def index(self, now_ms: int) -> tuple[Draft, frozenset[ContentHash]]:
        """The index of what is in force, and the addresses to be told to `index_issued`."""
        return index_draft(self.tree, self.in_force, now_ms, self._index_kept)

    def index_issued(self, addresses: frozenset[ContentHash]) -> None:
        """The blobs of the newest index are kept, and need not be written again."""
        self._index_kept = addresses

    def index_age_seconds(self, now_ms: int) -> float | None:
        """How old the index held is; None if there is none, or it lists something else."""
        held = self.records.get(INDEX_KEY)
        if not isinstance(held, IndexRecord) or held.issued_ms > now_ms:
            return None
        draft, addresses = index_draft(self.tree, self.in_force, now_ms)
        if draft.record.references != held.references:
            return None
        self._index_kept = addresses
        return (now_ms - held.issued_ms) / 1000
