"""One start of the centre: what its store holds, judged by the last snapshot that it signed.

A ledger that is lost, rolled back or restored is the same start. What the centre does not know is
orphaned below it, and not dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controllers.core.blob_reading import BlobReading
from controllers.core.ledger.ledger import Ledger, entry_key_of, slot_of
from controllers.core.ledger.ledger_issuer import LedgerIssuer
from controllers.core.ledger.node_moves import still_left
from controllers.core.ledger.snapshots import SnapshotIssuer, judge_own_ledger, known_terms
from relay.core.instant import Instant
from relay.core.records.snapshot import SnapshotInterest, SnapshotView, UnreadBlobs
from relay.core.records.snapshot_reading import SnapshotReading
from relay.core.records.tree import SnapshotTree
from relay.core.records.verdict import HeldRecord
from schemas.records.records import (
    DeltaHead,
    KeysRecord,
    LocationHead,
    LocationRecord,
    NodeRecord,
    Profile,
    Record,
    ReleaseRecord,
)
from schemas.records.signed_records import SignedRecord, StoredMessages
from schemas.records.signing import Envelope, Signer
from schemas.records.snapshots import (
    EntryKey,
    SnapshotRecord,
    SnapshotRefused,
    Term,
    TermEntry,
    mail_key_of,
    path_entry_key,
    read_snapshot,
    read_terms,
)
from schemas.values.identity import KEYS_KEY, ContentHash, MailKey


@dataclass(slots=True)
class StoredLedger:
    """What the store holds of a ledger; `last` is None without a snapshot that can be read."""

    records: dict[MailKey, SignedRecord] = field(default_factory=dict)
    # The store holds something at these keys that is no record.
    damaged: set[MailKey] = field(default_factory=set)
    last: SnapshotRecord | None = None
    listed: dict[EntryKey, int] = field(default_factory=dict)
    terms: tuple[TermEntry, ...] = ()
    # As in `StoredMessages`.
    issued: Mapping[MailKey, int] = field(default_factory=dict)

    def begin(self, term: str, signer: Signer, now: Instant) -> LedgerIssuer:
        """The ledger of a new term (16 hex digits), and its issuer."""
        ledger = Ledger(signer.tree, term)
        held = {_held(key, it.record): key for key, it in self.records.items() if key != KEYS_KEY}
        last, kept, unlisted = self.last, list(held), set(self.damaged)
        lacking: list[EntryKey] = []
        if last is not None:
            standing = judge_own_ledger(held, last, self.listed)
            kept = list(standing.kept)
            unlisted |= {held[it] for it in standing.gone}
            # The spaces say what an older one should be, as they do of what is lost.
            lacking = [*standing.lacking, *(it.key for it in standing.outdated)]
        for key in [held[it] for it in kept] + [KEYS_KEY]:
            if (found := self.records.get(key)) is not None:
                ledger.remember(found.envelope.kind, found.record, found.encoded_body)
        ledger.raise_to(last.generation if last else 0)
        ahead = {
            it.key: it.generation for it in kept if not last or it.generation > last.generation
        }
        # No snapshot vouches for these, so nobody knows what was lost beside them.
        unvouched = self._issued_since(last.generation if last else 0)
        is_partial = last is not None and self._lacks(unvouched)
        if last is not None and not is_partial:
            unvouched = frozenset()
        snapshots = SnapshotIssuer(
            Term(bytes.fromhex(term)),
            now=now.seconds,
            last=last,
            stored=SnapshotTree.empty().changed(self.listed),
            # What a snapshot that cannot be read listed may be lost: nothing of it is known.
            terms=known_terms(last, self.terms, () if unvouched else kept) if last else (),
            ahead=ahead,
            losing=any(self._may_lose(it.key, self.records[held[it]].record) for it in kept),
        )
        lost: dict[MailKey, EntryKey] = {}
        for entry in sorted(lacking, key=lambda entry: self.listed[entry], reverse=True):
            key = mail_key_of(entry)
            if key in ledger.records or key in lost:
                # It moved after that snapshot, or before, and was listed at both places.
                snapshots.deleted(entry, now=now.seconds)
            else:
                lost[key] = entry
        ledger.forgotten |= lost.keys()
        unlisted -= lost.keys()
        issuer = LedgerIssuer(
            ledger, snapshots, signer, frozenset(unlisted), lost, unvouched, is_partial
        )
        profiles = [key for key, it in ledger.records.items() if isinstance(it, Profile)]
        for node in issuer.delete(still_left(ledger.records, signer.tree, self.listed), now):
            assert isinstance(node, NodeRecord)
            if not any(path_entry_key(node.path, key) in self.listed for key in profiles):
                # An edge that sees its profile dropped, and not its node, lets go of all it has.
                snapshots.unlist(path_entry_key(node.path, node.source.key))
        return issuer

    def _issued_since(self, generation: int) -> frozenset[MailKey]:
        found = self.records.items()
        return frozenset(key for key, it in found if it.record.generation > generation)

    def _lacks(self, newer: frozenset[MailKey]) -> bool:
        """Whether fewer are left of those above the last snapshot than the newest says."""
        generations = {key: self.records[key].record.generation for key in newer}
        counted = [key for key in newer if self.issued.get(key)]
        newest = max(counted, key=generations.__getitem__, default=None)
        if newest is None:
            return False
        return self.issued[newest] > sum(it <= generations[newest] for it in generations.values())

    def _may_lose(self, entry: EntryKey, record: Record) -> bool:
        """Whether a record may have taken something that no snapshot settled yet."""
        settled = self.last.settled if self.last is not None else 0
        if isinstance(record, DeltaHead):
            return record.last_loss > settled
        inventory = isinstance(record, Profile | LocationRecord)
        return inventory and entry in self.listed and record.generation > settled


def read_stored_ledger(store: StoredMessages) -> BlobReading[StoredLedger]:
    """Read what a store holds, and what its last snapshot lists."""
    found = StoredLedger(damaged=set(store.damaged), issued=store.issued)
    for key, signed in store.records.items():
        if _is_whole(key, signed.record, signed.envelope):
            found.records[key] = signed
        else:
            found.damaged.add(key)
    if store.snapshot is not None:
        yield from _read_snapshot(store.snapshot, found)
    return found


def _read_snapshot(envelope: Envelope, found: StoredLedger) -> BlobReading[None]:
    """Without all of its content nobody can tell what the store lost since."""
    nodes: dict[ContentHash, bytes] = {}
    try:
        last = read_snapshot(envelope.payload)
        reading = SnapshotReading(last, SnapshotInterest.everything(), nodes)
        while missing := reading.missing():
            loaded = yield missing
            for reference in missing:
                if reference.address in loaded:
                    reading.take(reference.address, loaded[reference.address])
            if reading.missing() == missing:
                break
        entries = SnapshotView(last, nodes).entries()
        if (terms := nodes.get(last.terms_reference.address)) is not None:
            found.terms = read_terms(terms).terms
        if not isinstance(entries, UnreadBlobs) and terms is not None:
            found.listed = {entry.key: entry.generation for entry in entries}
            found.last = last
    except SnapshotRefused:
        found.last, found.listed = None, {}


def _is_whole(key: MailKey, record: Record, stored: Envelope) -> bool:
    """Whether it is what lies at this key of a ledger: of a term, and with its body."""
    keys = isinstance(record, KeysRecord)
    bodied = isinstance(record, DeltaHead | LocationHead | LocationRecord | ReleaseRecord)
    has_body = keys or (stored.body is not None) == bodied
    kept = stored.kind != "ask" and slot_of(stored.kind, record) == key
    return has_body and kept and bool(record.term)


def _held(key: MailKey, record: Record) -> HeldRecord:
    entry = entry_key_of(record)
    assert entry is not None, f"{key}: a snapshot lists all but the keys"
    return HeldRecord(entry, record.generation, Term(bytes.fromhex(record.term)))
