"""What the centre issued and is in force, by key; what is stamped next lies above all of it.

A record is remembered once it is kept; one that is only stamped is not in force. A draft that would
differ from the ledger's record in nothing but its stamp is not issued: a restart issues nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from schemas.content.blobs import StoredBlob
from schemas.records.records import (
    RECORDS,
    DeltaHead,
    KeysRecord,
    LocationRecord,
    NodeRecord,
    Profile,
    Record,
    ReleaseRecord,
)
from schemas.records.signed_records import EncodedBody
from schemas.records.signing import RecordKind
from schemas.records.snapshots import EntryKey, mail_entry_key, path_entry_key
from schemas.values.identity import (
    KEYS_KEY,
    ContentHash,
    Generation,
    MailKey,
    TreeId,
    next_generation,
    random_id,
)
from schemas.values.trace_ids import trace_id
from schemas.values.wire import replace


@dataclass(frozen=True, slots=True)
class Draft:
    """A record to be issued, with the blobs that are kept first."""

    kind: RecordKind
    record: Record
    body: EncodedBody | None = None
    blobs: Mapping[ContentHash, bytes] = field(default_factory=dict)
    # Whether someone may lose something of a placement by it.
    loses: bool = False

    @property
    def slot(self) -> MailKey:
        return slot_of(self.kind, self.record)

    def stamped(self, generation: Generation, term: str = "", *, again: bool = False) -> Record:
        """The record as it will be signed; `again` if its key had another one, deleted since."""
        record, trace = self.record, random_id(trace_id(self.slot, generation))
        if isinstance(record, DeltaHead) and (self.loses or again):
            record = replace(record, last_loss=generation)
        return replace(record, generation=generation, term=term, trace=trace)


def slot_of(kind: str, record: Record) -> MailKey:
    """The key under which a record lies in ledgers and mailboxes."""
    return KEYS_KEY if kind == "keys" else record.source.key


def kind_of(record: Record) -> RecordKind:
    """The kind under which a record is signed."""
    return _KINDS[type(record)]


def same(record: Record, other: Record | None) -> bool:
    """Whether two records say the same but for when they were issued."""
    return other is not None and _timeless(record) == _timeless(other)


def values_of(*stored: StoredBlob) -> dict[ContentHash, bytes]:
    """All stored values of these blobs, their parts included."""
    return {address: value for blob in stored for address, value in blob.values.items()}


def _timeless(record: Record) -> Record:
    if isinstance(record, DeltaHead):
        record = replace(record, last_loss=0)
    return replace(record, generation=0, term="", trace="")


_KINDS = {form: cast("RecordKind", kind) for kind, form in RECORDS.items()}
_KINDS[LocationRecord] = "location"
_KINDS[ReleaseRecord] = "delta"


class Ledger:
    """The one ledger of a centre, in the term of this start."""

    def __init__(self, tree: TreeId, term: str) -> None:
        self.tree = tree
        # 16 hex digits.
        self.term = term
        # All that is in force, and the keys.
        self.records: dict[MailKey, Record] = {}
        # What the heads of deltas in force hash.
        self.bodies: dict[MailKey, EncodedBody] = {}
        # Deleted, and kept until a snapshot lists them no more.
        self.deleted: dict[MailKey, Record] = {}
        # The generation above which the next record is stamped.
        self.highest = Generation(0)
        # Keys whose former record is not known: the next one may be less than what others hold.
        self.forgotten: set[MailKey] = set()

    def contains(self, key: MailKey) -> bool:
        """Whether a record is in force, or deleted and still listed."""
        return key in self.records or key in self.deleted

    def next_generation(self, now_ms: int) -> Generation:
        self.highest = next_generation(self.highest, now_ms)
        return self.highest

    def stamp(self, drafts: Sequence[Draft], now_ms: int) -> list[Record]:
        """The records as they are to be signed, each above all before."""
        return [
            draft.stamped(
                self.next_generation(now_ms), self.term, again=draft.slot in self.forgotten
            )
            for draft in drafts
        ]

    def raise_to(self, generation: int) -> None:
        """Stamp nothing at or below this generation from now on."""
        self.highest = max(self.highest, Generation(generation))

    def remember(self, kind: str, record: Record, body: EncodedBody | None) -> None:
        """Take a record that is kept."""
        slot = slot_of(kind, record)
        self.records[slot] = record
        self.deleted.pop(slot, None)
        self.forgotten.discard(slot)
        self.raise_to(record.generation)
        if body is not None:
            self.bodies[slot] = body

    def delete(self, keys: Iterable[MailKey]) -> list[Record]:
        """Records are in force no longer, as far as they were; returns those."""
        found = []
        for key in keys:
            record = self.records.pop(key, None)
            if record is not None:
                self.bodies.pop(key, None)
                self.deleted[key] = record
                self.forgotten.add(key)
                found.append(record)
        return found

    def drop(self, keys: Iterable[MailKey]) -> list[Record]:
        """No snapshot lists them any more; returns the deleted ones among them."""
        found = [self.deleted.pop(key, None) for key in keys]
        return [record for record in found if record is not None]

    def assert_invariants(self) -> None:
        """Assert that what is deleted is not in force, and that a delta has its body."""
        assert self.records.keys().isdisjoint(self.deleted)
        heads = {key for key, record in self.records.items() if isinstance(record, DeltaHead)}
        assert self.bodies.keys() == heads
        for record in (*self.records.values(), *self.deleted.values()):
            assert record.generation <= self.highest


def entry_key_of(record: Record) -> EntryKey | None:
    """Where a snapshot lists a record; None for what no snapshot lists."""
    if isinstance(record, KeysRecord):
        return None
    key = record.source.key
    if isinstance(record, Profile | NodeRecord):
        return path_entry_key(record.path, key)
    return mail_entry_key(key)
