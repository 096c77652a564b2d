"""A record as its signer has it: the message, and the values that the message says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from schemas.records.records import DeltaBody, DeltaHead, Record, decode_body, decode_record
from schemas.records.signing import Envelope
from schemas.values.identity import KEYS_KEY, SNAPSHOT_KEY, KeyId, MailKey
from schemas.values.refusals import BodyAltered, RecordRefused


class EncodedBody(NamedTuple):
    """A delta's body: the bytes that its head hashes, and what they say."""

    data: bytes
    # None if this program cannot read them.
    value: DeltaBody | None

    @classmethod
    def of(cls, body: DeltaBody) -> EncodedBody:
        return cls(body.encode(), body)


class SignedRecord(NamedTuple):
    """A signed message with its values, so that nobody who has both decodes it."""

    envelope: Envelope
    record: Record
    # Of a delta whose body this program can read.
    body: DeltaBody | None = None

    @property
    def slot(self) -> MailKey:
        """The key under which it lies in ledgers and mailboxes."""
        return KEYS_KEY if self.envelope.kind == "keys" else self.record.source.key

    @property
    def encoded_body(self) -> EncodedBody | None:
        """The body of a delta in full."""
        data = self.envelope.body
        is_delta = isinstance(self.record, DeltaHead) and data is not None
        return EncodedBody(data, self.body) if is_delta and data is not None else None


def read_signed(envelope: Envelope) -> SignedRecord:
    """Decode what a message says; raises RecordRefused, but not for a newer program's body."""
    record = decode_record(envelope.kind, envelope.payload, envelope.body)
    if not isinstance(record, DeltaHead) or envelope.body is None:
        return SignedRecord(envelope, record)
    try:
        return SignedRecord(envelope, record, decode_body(record, envelope.body))
    except BodyAltered:
        raise
    except RecordRefused:
        return SignedRecord(envelope, record)


class StoredMessages(NamedTuple):
    """All that is stored of a ledger."""

    records: Mapping[MailKey, SignedRecord]
    # The last snapshot.
    snapshot: Envelope | None = None
    # The keys under which something lies that is no record.
    damaged: frozenset[MailKey] = frozenset()
    # How many keys had been issued since the last snapshot when this one was, where that is noted.
    issued: Mapping[MailKey, int] = MappingProxyType({})

    def envelopes(self) -> dict[MailKey, Envelope]:
        """The messages of the records."""
        return {key: signed.envelope for key, signed in self.records.items()}

    def key_ids(self) -> Iterator[KeyId]:
        """Which key signed each message, the snapshot among them, and the keys left out."""
        yield from (it.envelope.key_id for key, it in self.records.items() if key != KEYS_KEY)
        if self.snapshot is not None:
            yield self.snapshot.key_id


def read_stored(messages: Mapping[str, Envelope]) -> StoredMessages:
    """Decode what lies in a ledger, by its keys there."""
    records: dict[MailKey, SignedRecord] = {}
    damaged: set[MailKey] = set()
    for name, envelope in messages.items():
        if name == SNAPSHOT_KEY:
            continue
        try:
            records[MailKey(name)] = read_signed(envelope)
        except RecordRefused:
            damaged.add(MailKey(name))
    return StoredMessages(records, messages.get(SNAPSHOT_KEY), frozenset(damaged))
