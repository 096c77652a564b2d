"""Issuing without I/O: what is stamped, signed and published next, and when a snapshot is due.

Whoever drives it stores what is returned, in the order given, and says so: only then it is in
force. Time comes as an argument.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from controllers.core.access.keys import Stamp
from controllers.core.ledger.ledger import Draft, Ledger, entry_key_of, kind_of, same, values_of
from controllers.core.ledger.snapshots import SnapshotIssuer
from relay.core.instant import Instant
from schemas.records.records import (
    DeltaHead,
    KeysRecord,
    LocationRecord,
    Profile,
    Record,
    body_of,
    encode_payload,
)
from schemas.records.signed_records import SignedRecord
from schemas.records.signing import Envelope, Signer
from schemas.records.snapshots import (
    EntryKey,
    SnapshotRecord,
    Term,
    encode,
    mail_entry_key,
    mail_key_of,
)
from schemas.values.identity import KEYS_KEY, ContentHash, MailKey


@dataclass(frozen=True, slots=True)
class Publication:
    """Records to be stored: the blobs, then the messages in this order, one for each draft."""

    blobs: Mapping[ContentHash, bytes]
    signed: tuple[SignedRecord, ...]
    drafts: tuple[Draft, ...]

    @property
    def records(self) -> list[Record]:
        return [signed.record for signed in self.signed]


@dataclass(frozen=True, slots=True)
class SnapshotPublication:
    """A snapshot to be stored after its blobs; then the keys that it lists no more are erased."""

    blobs: Mapping[ContentHash, bytes]
    envelope: Envelope
    record: SnapshotRecord
    dropped: tuple[MailKey, ...]


@dataclass(eq=False)
class LedgerIssuer:
    """The one writer of a centre's ledger."""

    ledger: Ledger
    snapshots: SnapshotIssuer
    # Who signs all but `keys` records.
    signer: Signer
    # Keys in the store that the last snapshot does not list.
    _unlisted: frozenset[MailKey] = frozenset()
    # What the last snapshot lists and the ledger lacks. It goes on being listed until it is issued
    # anew, or a person lets it go.
    lost: dict[MailKey, EntryKey] = field(default_factory=dict)
    # What no snapshot vouches for, of a ledger that lost what nobody can name: it is issued anew.
    unvouched: frozenset[MailKey] = frozenset()
    # Whether records were lost that the last snapshot does not list.
    is_partial: bool = False

    # Records.

    def issue(self, drafts: Sequence[Draft], now: Instant) -> Publication:
        """Stamp and sign these records; `published` is to be told once they are stored."""
        records = self.ledger.stamp(drafts, now.wall_ms)
        signed = map(self._sign, drafts, records)
        blobs = {address: value for draft in drafts for address, value in draft.blobs.items()}
        return Publication(blobs, tuple(signed), tuple(drafts))

    def _sign(self, draft: Draft, record: Record) -> SignedRecord:
        data, body = draft.body or (body_of(record), None)
        envelope = self.signer.seal(draft.kind, encode_payload(record), data)
        return SignedRecord(envelope, record, body)

    def keys_published(self, record: KeysRecord, signer: Signer, now: Instant) -> None:
        """Other keys are in the store: this one signs from now on.

        If one is revoked nobody may believe the last snapshot any more: the next one comes soon.
        """
        former = self.ledger.records.get(KEYS_KEY)
        before = former.revoked if isinstance(former, KeysRecord) else frozenset()
        if record.revoked - before:
            self.snapshots.renew(now=now.seconds)
        self.ledger.remember("keys", record, None)
        self.signer = signer

    def stamp(self, now: Instant) -> Stamp:
        """When something is issued that is not signed here."""
        return Stamp(self.ledger.next_generation(now.wall_ms), self.ledger.term)

    def published(
        self, publication: Publication, now: Instant, delete: Iterable[MailKey] = ()
    ) -> list[Record]:
        """What was issued is in force, and what is deleted with it no more; returns the latter."""
        for draft, record in zip(publication.drafts, publication.records, strict=True):
            ledger = self.ledger
            former = ledger.records.get(draft.slot) or ledger.deleted.get(draft.slot)
            takes_away = draft.slot in ledger.forgotten or _takes_away(record, former)
            ledger.remember(draft.kind, record, draft.body)
            self._list(record, former, takes_away=takes_away, now=now)
        return self.delete(delete, now)

    def _list(
        self, record: Record, former: Record | None, *, takes_away: bool, now: Instant
    ) -> None:
        entry = entry_key_of(record)
        if entry is None:
            return
        before = entry_key_of(former) if former else self.lost.pop(record.source.key, None)
        if before is not None and before != entry:
            self.snapshots.deleted(before, now=now.seconds)
        self.snapshots.issued(entry, record.generation, takes_away=takes_away, now=now.seconds)

    def delete(self, keys: Iterable[MailKey], now: Instant) -> list[Record]:
        """Records are in force no longer; those that were. The store has them until a snapshot."""
        keys = tuple(keys)
        after = {key: self._comes_after(key) for key in keys}
        gone = self.ledger.delete(keys)
        for record in gone:
            entry = entry_key_of(record)
            assert entry is not None, "keys are not deleted"
            self.snapshots.deleted(entry, now=now.seconds, after=after[record.source.key])
        return gone

    def _comes_after(self, key: MailKey) -> frozenset[EntryKey]:
        """What goes after a placement if both are deleted: what it waits for."""
        record, body = self.ledger.records.get(key), self.ledger.bodies.get(key)
        if record is None or body is None or body.value is None:
            return frozenset()
        return frozenset(mail_entry_key(each.key(record.source)) for each in body.value.after)

    def raise_above(self, shown: int, now: Instant) -> bool:
        """Someone has a snapshot of this generation: go above it; whether anything lay below it.

        Nodes keep what they hold above what is listed. A snapshot says that soon, and whatever is
        issued next may take something from them.
        """
        if shown <= self.ledger.highest:
            return False
        self.ledger.raise_to(shown)
        self.ledger.forgotten |= self.ledger.records.keys() - {KEYS_KEY}
        self.snapshots.renew(now=now.seconds)
        return True

    def issued_in_this_term(self) -> list[Draft]:
        """What was issued since this start and is in force, to be issued anew as it is."""
        records = self.ledger.records.items()
        return self.again(key for key, it in records if it.term == self.ledger.term)

    def unvouched_drafts(self) -> list[Draft]:
        """What no snapshot vouches for, but the keys, to be issued anew as it is.

        Whoever holds what this ledger forgot may lose something by it.
        """
        return self.again(self.unvouched, loses=True)

    def above_newer(self, keys: Collection[MailKey]) -> list[Draft]:
        """What is in force under these keys, of which others hold something newer."""
        self.ledger.forgotten |= self.ledger.records.keys() & set(keys)
        return self.again(keys)

    def again(self, keys: Iterable[MailKey], *, loses: bool = False) -> list[Draft]:
        """What is in force under these keys, to be issued anew as it is, the oldest first."""
        held = (record for key in keys if (record := self.ledger.records.get(key)) is not None)
        records = sorted(held, key=lambda record: record.generation)
        bodies = self.ledger.bodies
        return [
            Draft(kind_of(item), item, bodies.get(item.source.key), loses=loses)
            for item in records
            if not isinstance(item, KeysRecord)
        ]

    def forget_lost(self, now: Instant) -> int:
        """Let go of what the last snapshot lists and the ledger lost; how many records."""
        lost, self.lost = self.lost, {}
        for entry in lost.values():
            self.snapshots.deleted(entry, now=now.seconds)
        return len(lost)

    def withdraw(self, term: str, now: Instant) -> None:
        """What this term (16 hex digits) issued and no snapshot lists goes everywhere."""
        self.snapshots.withdraw(Term(bytes.fromhex(term)), now=now.seconds)

    # Snapshots.

    def sign_snapshot(self, now: Instant) -> SnapshotPublication:
        """The snapshot that is due; `snapshot_published` is to be told once it is stored."""
        generation = self.ledger.next_generation(now.wall_ms)
        issued = self.snapshots.sign(generation, now=now.seconds, now_ms=now.wall_ms)
        dropped = {mail_key_of(entry) for entry in issued.dropped} | self._unlisted
        # A record that moved is listed elsewhere, also if it was deleted there meanwhile.
        deleted = self.ledger.deleted.items()
        listed = {key for key, it in deleted if entry_key_of(it) not in issued.dropped}
        gone = tuple(sorted(dropped - self.ledger.records.keys() - listed))
        envelope = self.signer.seal("snapshot", encode(issued.record))
        return SnapshotPublication(values_of(*issued.blobs), envelope, issued.record, gone)

    def snapshot_published(self, publication: SnapshotPublication) -> list[Record]:
        """The snapshot is in the store, and what it drops is not; returns the latter."""
        self._unlisted = frozenset()
        return self.ledger.drop(publication.dropped)

    def assert_invariants(self) -> None:
        """Assert the invariants of all parts."""
        self.ledger.assert_invariants()
        self.snapshots.assert_invariants()
        assert self.lost.keys().isdisjoint(self.ledger.records)


def _takes_away(record: Record, former: Record | None) -> bool:
    """Whether someone may lose something by a record that was otherwise before."""
    if isinstance(record, DeltaHead) and record.last_loss == record.generation:
        return True
    return (
        former is not None
        and isinstance(record, Profile | LocationRecord)
        and not same(record, former)
    )
