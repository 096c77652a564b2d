"""What was issued, by slot: what is stamped next lies above all of it, also of what was read back.

A record is remembered once it is kept; one that is only stamped is not in force.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from controllers.core.drafts import Draft, slot_of
from controllers.core.index import index_draft
from schemas.identity import (
    INDEX_KEY,
    ContentHash,
    Generation,
    MailKey,
    TreeId,
    next_generation,
)
from schemas.records import DeltaHead, IndexRecord, Record


class Ledger:
    """`records` holds all that is in force, tombstones included; `in_force` the placements."""

    def __init__(self, tree: TreeId, kept: Iterable[tuple[str, Record]] = ()) -> None:
        self.tree = tree
        self.records: dict[MailKey, Record] = {}
        self.in_force: dict[MailKey, int] = {}
        self._highest = Generation(0)
        self._index_kept: frozenset[ContentHash] = frozenset()
        for kind, record in kept:
            self.remember(kind, record)

    @property
    def index_generation(self) -> int:
        """That of the index held, 0 without one."""
        held = self.records.get(INDEX_KEY)
        return held.generation if held else 0

    def stamp(self, drafts: Sequence[Draft], now_ms: int) -> list[Record]:
        """The records as they are to be signed, each above all before."""
        stamped = []
        for draft in drafts:
            self._highest = next_generation(self._highest, now_ms)
            stamped.append(draft.stamped(self._highest))
        return stamped

    def raise_to(self, generation: int) -> None:
        """Stamp nothing at or below this generation from now on."""
        self._highest = max(self._highest, Generation(generation))

    def remember(self, kind: str, record: Record) -> None:
        """Take a record that is kept."""
        slot = slot_of(kind, record)
        self.records[slot] = record
        self.raise_to(record.generation)
        if isinstance(record, DeltaHead):
            self.in_force.pop(slot, None)
            if not record.deleted:
                self.in_force[slot] = record.generation

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
