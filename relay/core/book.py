"""What a node holds: the records accepted from above, each the newest of its key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeGuard

from relay.core.effects import StoreOwn
from schemas.identity import INDEX_KEY, KEYS_KEY, MailKey
from schemas.records import (
    DeltaBody,
    DeltaHead,
    Record,
    decode_base,
    decode_body,
    decode_payload,
    slot_term,
)
from schemas.refusals import BodyAltered, RecordRefused
from schemas.signing import Envelope, decode_envelope


@dataclass(frozen=True, slots=True)
class Held:
    """One record accepted: decoded, and the bytes as they came.

    `body` is set on a delta that came with content; `term` is what the record adds to a digest.
    `order` ranks records by when they were accepted here, `hops` are the times (ms since 1970) at
    which it was written on its way. An `opaque` delta is newer than this program: only the fields
    that never change are read, and it is passed on as it is. `regrouped` is the newest generation
    at which others were meant than before, as far as this node can tell.
    """

    key: MailKey
    kind: str
    record: Record
    data: bytes
    payload_hash: bytes
    term: int
    body: DeltaBody | None = None
    order: int = 0
    hops: tuple[int, ...] = ()
    opaque: bool = False
    regrouped: int = 0

    @property
    def generation(self) -> int:
        return self.record.generation

    @property
    def has_body(self) -> bool:
        return self.body is not None or (self.opaque and not self.record.deleted)

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


def read_record(data: bytes, order: int, hops: tuple[int, ...] = ()) -> tuple[Envelope, Held]:
    """Decode a message; raises RecordRefused, whatever the bytes are."""
    envelope = decode_envelope(data)
    body, opaque = None, False
    try:
        record = decode_payload(envelope.kind, envelope.payload)
        if isinstance(record, DeltaHead) and envelope.body is not None and not record.deleted:
            body = decode_body(record, envelope.body)
    except BodyAltered:
        raise
    except RecordRefused:
        if envelope.kind != "delta" or envelope.body is None:
            raise
        record, opaque = decode_base(envelope.payload), True
    key = key_of(envelope.kind, record)
    term = slot_term(key, record.generation, envelope)
    hashed = envelope.payload_hash
    held = Held(key, envelope.kind, record, data, hashed, term, body, order, hops, opaque)
    return envelope, held


def bare_of(held: Held) -> Held:
    """The same without its body."""
    _, bare = read_record(held.bare_data(), held.order, held.hops)
    return replace(bare, regrouped=held.regrouped)


def to_keep(held: Held, incarnation: str = "", sequence: int = 0) -> StoreOwn:
    """The effect that keeps a record, with where in the parent's stream it was read."""
    return StoreOwn(
        key=held.key,
        data=held.data,
        generation=held.generation,
        incarnation=incarnation,
        sequence=sequence,
        payload_hash=held.payload_hash,
        has_body=held.has_content,
        trace=held.record.trace,
        hops=held.hops,
    )


def is_delta(held: Held | None) -> TypeGuard[Held]:
    """Whether this is a placement's delta."""
    return held is not None and held.kind == "delta"


def regrouped(held: Held, former: Held | None, *, sure: bool) -> Held:
    """A delta with since when it means whom it means: who was meant before it loses it.

    A node that starts or lost its memory is not `sure` whom its children were sent it for.
    """
    record = held.record
    if not isinstance(record, DeltaHead):
        return held
    if former is None:
        return held if sure else replace(held, regrouped=held.generation)
    before = former.record
    same = isinstance(before, DeltaHead) and before.alternatives == record.alternatives
    since = former.regrouped if same else held.generation
    return held if since == held.regrouped else replace(held, regrouped=since)
