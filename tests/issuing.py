"""What a centre tells its node, from the bytes of a signed message."""

from __future__ import annotations

from relay.core.events import RecordIssued, SnapshotIssued
from schemas.records.signed_records import read_signed
from schemas.records.signing import decode_envelope
from schemas.records.snapshots import read_snapshot
from schemas.values.identity import ContentHash, MailKey


def issued(data: bytes, blobs: frozenset[ContentHash] = frozenset()) -> RecordIssued:
    """A record of the ledger, with the values that its message says."""
    return RecordIssued(read_signed(decode_envelope(data)), data, blobs=blobs)


def snapshot_issued(
    data: bytes,
    dropped: tuple[MailKey, ...] = (),
    blobs: frozenset[ContentHash] = frozenset(),
) -> SnapshotIssued:
    """A snapshot of the ledger, with the record that its message says."""
    envelope = decode_envelope(data)
    record = read_snapshot(envelope.payload)
    return SnapshotIssued(record, data, envelope.payload_hash, dropped, blobs)
