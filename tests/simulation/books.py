"""What was issued in a world, as the oracle judges by it; planted faults stand here, too.

Whoever issues enters it: before it is kept, so that nothing is found which nobody knows of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from controllers.core.access.keys import KeyRing
from controllers.core.inventory.make_before_break import BRAKED, MOVED
from controllers.core.ledger.ledger import Draft, kind_of
from relay.core.notes import is_note
from relay.core.records.snapshot import SnapshotInterest, SnapshotView
from relay.core.records.snapshot_reading import SnapshotReading
from schemas.content.blobs import open_value
from schemas.objects.objects import ObjectKey
from schemas.records.records import LocationRecord, Record, body_of, encode_payload
from schemas.records.roots import forerunners_of, keys_envelope, signatures_of
from schemas.records.signed_records import SignedRecord
from schemas.records.signing import Envelope
from schemas.records.snapshots import EntryKey, SnapshotRecord, encode
from schemas.values.identity import KEYS_KEY, SNAPSHOT_KEY, ContentHash, MailKey
from tests.simulation.keys import KeysInMemory
from tests.simulation.model import Model, Past
from tests.simulation.sealing import ring_of
from tests.simulation.world import World

HOLDS = (MOVED, BRAKED)


class Books:
    """What was issued, as the oracle judges by it; whoever issues enters it here."""

    def __init__(self, world: World, ring: KeyRing) -> None:
        self.world = world
        self.keys = KeysInMemory(ring, ring_of(0), partial(self.kept_keys, "kept"))
        self._roots = {root.key_id: root for root in ring.roots}
        self.model, self.past = Model(), Past()
        self.issued: dict[bytes, None] = {}
        self.contents: dict[tuple[MailKey, ObjectKey, str], None] = {}
        # The source revision of each content, in whatever form; and up to which one users did
        # something that takes back what some destination had.
        self.revisions: dict[tuple[ObjectKey, str], int] = {}
        self.relapsed = 0
        # The newest of each key, deleted ones too.
        self.records: dict[MailKey, Record] = {}
        self.history: list[tuple[MailKey, bytes]] = []
        # What each snapshot lists: a profile or node that moves for a while at both places.
        self.listings: dict[int, dict[EntryKey, int]] = {}

    @property
    def ready(self) -> bool:
        """Whether the centre's process runs, so that it can issue."""
        return self.world.root.answers

    @property
    def ring(self) -> KeyRing:
        """The keys, as their file holds them."""
        return self.keys.ring

    def kept_keys(self, where: str) -> None:
        """Other keys are in their file (`kept`), or in the ledger (`told`)."""

    def is_superseded(self, key: EntryKey, generation: int, snapshot: int) -> bool:
        """Whether by a snapshot this generation is not in force at its place."""
        return generation <= snapshot and self.listings[snapshot].get(key) != generation

    # What is issued.

    def counted(self, key: MailKey) -> None:
        """What is counted of a placement is another than before."""

    def publishing(self, signed: SignedRecord, _blobs: Mapping[ContentHash, bytes]) -> SignedRecord:
        """Enter a record in the books, or what a planted fault says in its place."""
        if isinstance(signed.record, LocationRecord):
            self._enter_holds(signed.record)
        said = self._keys_said if signed.slot == KEYS_KEY else self._planted
        signed = said(signed)
        envelope, record, _ = signed
        self.records[signed.slot] = record
        data = envelope.encode()
        # What stands beside the payload of keys nobody signs: it vouches for itself.
        self.issued[data] = self.issued[envelope.bare().encode()] = None
        self.history.append((signed.slot, data))
        what = f"issue {envelope.kind} {record.source.name} {record.generation}"
        self.world.note("centre", what)
        return signed

    def _enter_holds(self, record: LocationRecord) -> None:
        """What a Location's labels took from a placement it may hold for a while."""
        name, located = record.source.name, self.model.locations.get(record.source.name)
        if located is None:
            return
        said = {key: value for key, value in located.labels if not key.startswith(HOLDS)}
        said |= {key: value for key, value in record.labels.items() if key.startswith(HOLDS)}
        if said != dict(located.labels):
            self.world.watcher.model_changed()
            self.model.locations[name] = replace(located, labels=tuple(sorted(said.items())))
            self.world.watcher.model_changed()

    def _planted(self, signed: SignedRecord) -> SignedRecord:
        """What a planted fault says in place of a record."""
        draft = Draft(kind_of(signed.record), signed.record, signed.encoded_body)
        said = self.world.ports.issued(draft)
        if said is draft:
            return signed
        data, body = said.body or (body_of(said.record), None)
        envelope = self.ring.signing.seal(said.kind, encode_payload(said.record), data)
        return SignedRecord(envelope, said.record, body)

    def _keys_said(self, signed: SignedRecord) -> SignedRecord:
        """What a planted fault grants in place of what is granted, signed by the same roots."""
        record = self.world.ports.keys(signed.record)
        if record is signed.record:
            return signed
        payload, message = encode_payload(record), signed.envelope
        signatures = {
            key: self._roots[key].seal("keys", payload).signature for key in signatures_of(message)
        }
        return SignedRecord(keys_envelope(payload, signatures, forerunners_of(message)), record)

    def publishing_snapshot(
        self, blobs: Mapping[ContentHash, bytes], record: SnapshotRecord, envelope: Envelope
    ) -> tuple[Mapping[ContentHash, bytes], SnapshotRecord, Envelope]:
        """Enter a snapshot in the books; what a planted fault says in its place goes out."""
        kept = dict(blobs)
        said = self.world.ports.snapshot(record, kept.update)
        if said is not record:
            envelope = self.ring.signing.seal("snapshot", encode(said))
        self._enter_snapshot(record, envelope.encode(), blobs)
        return kept, said, envelope

    def _enter_snapshot(
        self, snapshot: SnapshotRecord, data: bytes, blobs: Mapping[ContentHash, bytes]
    ) -> None:
        """What it lists is what is signed: a node judges by nothing else."""
        nodes: dict[ContentHash, bytes] = {}
        stored = {**self.world.root.streams.blobs, **blobs}
        reading = SnapshotReading(snapshot, SnapshotInterest.everything(), nodes)
        while missing := reading.missing():
            for reference in missing:
                value = stored[reference.address]
                reading.take(reference.address, open_value(reference, value))
        entries = SnapshotView(snapshot, nodes).listed(SnapshotInterest.everything())
        listing = {entry.key: entry.generation for entry in entries}
        self.listings[snapshot.generation] = listing
        self.issued[data] = None
        self.history.append((SNAPSHOT_KEY, data))
        self.world.note("centre", f"snapshot {snapshot.generation}: {len(listing)} listed")


def is_signed(key: str) -> bool:
    """Whether what lies there in OWN is no note of the node's own."""
    return key == SNAPSHOT_KEY or not is_note(key)
