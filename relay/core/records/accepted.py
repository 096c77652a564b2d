"""One record accepted: decoded, and the bytes as they came."""

from __future__ import annotations

from typing import TypeGuard

from relay.core.effects import StoreOwn
from relay.core.records.verdict import HeldRecord
from schemas.records.records import (
    DeltaBody,
    DeltaHead,
    LocationHead,
    NodeRecord,
    Profile,
    Record,
    ReleaseHead,
    ReleaseRecord,
    decode_base,
    decode_body,
    decode_record,
    slot_term,
)
from schemas.records.signed_records import SignedRecord
from schemas.records.signing import Envelope, decode_envelope
from schemas.records.snapshots import EntryKey, Term, mail_entry_key, path_entry_key
from schemas.values.identity import KEYS_KEY, MailKey
from schemas.values.refusals import BodyAltered, RecordRefused
from schemas.values.value import Value


class Version(Value, frozen=True, gc=False):
    """What mailboxes and their digests know a record by; all that hold the record share it."""

    generation: int
    # What it adds to a mail digest.
    digest_term: int
    # Whether it is more than the head of a delta or Location.
    full: bool

    def head(self) -> Version:
        """The same without its body."""
        return Version(self.generation, self.digest_term, full=False)


class AcceptedRecord(Value, frozen=True):
    """A record that a node believes."""

    key: MailKey
    kind: str
    record: Record
    # The message as it came, without what was carried along.
    data: bytes
    # SHA-256 of the signed payload.
    payload_hash: bytes
    version: Version
    # Of a delta that came with content.
    body: DeltaBody | None = None
    # When it was issued, and written on its way: ms since 1970.
    hops: tuple[int, ...] = ()
    # A delta newer than this program: only the fields that never change are read.
    opaque: bool = False

    @property
    def generation(self) -> int:
        return self.record.generation

    @property
    def trace(self) -> str:
        return self.record.trace

    @property
    def last_loss(self) -> int:
        """The newest generation by which this may have taken something away, 0 if none did.

        The centre has just these settled. What a later version added is settled with the next loss.
        """
        if self.kind in ("keys", "node") or isinstance(self.record, ReleaseRecord):
            return 0
        return self.record.last_loss if isinstance(self.record, DeltaHead) else self.generation

    @property
    def full(self) -> bool:
        """Whether it is more than the head of a delta or Location."""
        return self.version.full

    @property
    def entry_key(self) -> EntryKey:
        """Its place in the tree of a snapshot."""
        record = self.record
        if isinstance(record, Profile | NodeRecord):
            return path_entry_key(record.path, self.key)
        return mail_entry_key(self.key)

    @property
    def held(self) -> HeldRecord:
        """What a verdict needs to know of it."""
        return HeldRecord(self.entry_key, self.generation, Term(bytes.fromhex(self.record.term)))

    def head_data(self) -> bytes:
        """The message without its body."""
        if self.kind in ("delta", "location") and self.full:
            return decode_envelope(self.data).bare().encode()
        return self.data

    def head(self) -> AcceptedRecord:
        """The same without its body."""
        return read_record(self.head_data(), self.hops)[1]


def read_record(data: bytes, hops: tuple[int, ...] = ()) -> tuple[Envelope, AcceptedRecord]:
    """Decode a message; raises RecordRefused, whatever the bytes are."""
    envelope = decode_envelope(data)
    body, opaque = None, False
    try:
        record = decode_record(envelope.kind, envelope.payload, envelope.body)
        if isinstance(record, DeltaHead) and envelope.body is not None:
            body = decode_body(record, envelope.body)
    except BodyAltered:
        raise
    except RecordRefused:
        if envelope.kind != "delta" or envelope.body is None:
            raise
        record, opaque = decode_base(envelope.payload), True
    return envelope, _accepted(envelope, record, body, data, hops, opaque=opaque)


def accept_own(signed: SignedRecord, data: bytes, hops: tuple[int, ...] = ()) -> AcceptedRecord:
    """A record that this process signed: nothing of it is decoded, and no signature is checked."""
    envelope, record, body = signed
    opaque = envelope.kind == "delta" and envelope.body is not None and body is None
    opaque = opaque and not isinstance(record, ReleaseRecord)
    if opaque:
        record = Record(record.source, record.generation, record.term, record.trace)
    return _accepted(envelope, record, body, data, hops, opaque=opaque)


def _accepted(
    envelope: Envelope,
    record: Record,
    body: DeltaBody | None,
    data: bytes,
    hops: tuple[int, ...],
    *,
    opaque: bool,
) -> AcceptedRecord:
    key = KEYS_KEY if envelope.kind == "keys" else record.source.key
    hashed = envelope.payload_hash
    full = not isinstance(record, LocationHead | ReleaseHead)
    if envelope.kind == "delta" and not isinstance(record, ReleaseRecord):
        full = body is not None or opaque
    version = Version(record.generation, slot_term(key, record.generation, hashed), full)
    return AcceptedRecord(key, envelope.kind, record, data, hashed, version, body, hops, opaque)


def to_keep(accepted: AcceptedRecord, incarnation: str = "", sequence: int = 0) -> StoreOwn:
    """The effect that keeps a record, with where in the parent's stream it was read."""
    return StoreOwn(
        key=accepted.key,
        data=accepted.data,
        generation=accepted.generation,
        incarnation=incarnation,
        sequence=sequence,
        payload_hash=accepted.payload_hash,
        has_body=accepted.full,
        trace=accepted.trace,
        hops=accepted.hops,
    )


def is_delta(accepted: AcceptedRecord | None) -> TypeGuard[AcceptedRecord]:
    """Whether this is a placement's delta."""
    return (
        accepted is not None
        and accepted.kind == "delta"
        and not isinstance(accepted.record, ReleaseHead | ReleaseRecord)
    )


def awaits_upgrade(accepted: AcceptedRecord) -> bool:
    """Whether it is kept from who speaks an older wire; what brings a node up never is."""
    is_release = isinstance(accepted.record, ReleaseHead | ReleaseRecord)
    return accepted.kind in {"delta", "location"} and not is_release
