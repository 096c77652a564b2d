"""Records before they are issued: all but generation, term, trace and signature.

What would differ from the ledger's record in nothing else is not issued: a restart issues nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from schemas.content.blobs import StoredBlob
from schemas.records.records import RECORDS, DeltaHead, LocationRecord, Record
from schemas.records.signed_records import EncodedBody
from schemas.records.signing import RecordKind
from schemas.values.identity import KEYS_KEY, ContentHash, Generation, MailKey, random_id
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
        record, trace = self.record, _trace(self.slot, generation)
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


def _trace(slot: MailKey, generation: Generation) -> str:
    return random_id(hashlib.sha256(f"trace\0{slot}\0{generation}".encode()).digest())


_KINDS = {form: cast("RecordKind", kind) for kind, form in RECORDS.items()}
_KINDS[LocationRecord] = "location"
