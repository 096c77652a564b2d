"""What a node holds: the records accepted from above, each the newest of its key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from schemas.identity import INDEX_KEY, KEYS_KEY, MailKey
from schemas.records import (
    DeltaBody,
    DeltaHead,
    Record,
    decode_body,
    decode_payload,
    slot_term,
)
from schemas.signing import Envelope, decode_envelope


@dataclass(frozen=True, slots=True)
class Held:
    """One record accepted: decoded, and the bytes as they came.

    `body` is set on a delta that came with content; `term` is what the record adds to a digest.
    `order` ranks records by when they were accepted here.
    """

    key: MailKey
    kind: str
    record: Record
    data: bytes
    payload_hash: bytes
    term: int
    body: DeltaBody | None = None
    order: int = 0

    @property
    def generation(self) -> int:
        return self.record.generation

    @property
    def has_body(self) -> bool:
        return self.body is not None

    @property
    def has_content(self) -> bool:
        """Whether a slot with this record counts in the mail digest."""
        if self.record.deleted or self.kind == "index":
            return False
        return self.kind != "delta" or self.has_body

    def bare_data(self) -> bytes:
        """The message without its body."""
        return decode_envelope(self.data).bare().encode() if self.has_body else self.data


def key_of(kind: str, record: Record) -> MailKey:
    """The mail key that a record belongs under."""
    return {"index": INDEX_KEY, "keys": KEYS_KEY}.get(kind) or record.source.key


def read_record(data: bytes, order: int) -> tuple[Envelope, Held]:
    """Decode a message; raises EnvelopeRefused or RecordRefused, whatever the bytes are."""
    envelope = decode_envelope(data)
    record = decode_payload(envelope.kind, envelope.payload)
    key = key_of(envelope.kind, record)
    body = None
    if isinstance(record, DeltaHead) and envelope.body is not None and not record.deleted:
        body = decode_body(record, envelope.body)
    term = slot_term(key, record.generation, envelope)
    held = Held(key, envelope.kind, record, data, envelope.payload_hash, term, body, order)
    return envelope, held


def is_delta(held: Held | None) -> TypeGuard[Held]:
    """Whether this is a placement's delta."""
    return held is not None and held.kind == "delta"
