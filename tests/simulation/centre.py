"""The centre of a simulated tree: the controllers' own issuer, driven over the root's streams.

A start of the process is a new term. The model stands for the spaces: what it wants otherwise than
the ledger is issued, and what it does not say any more is held until people let it go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from controllers.core.access.keys import (
    KeyChange,
    KeyRing,
    changed_record,
    completed,
    renewed,
    request_of,
    unbelieved,
)
from controllers.core.ledger.ledger import Draft, same, values_of
from controllers.core.ledger.ledger_issuer import LedgerIssuer, Publication
from controllers.core.ledger.start import read_stored_ledger
from relay.core.events import Instant, OwnRecord, RecordIssued, SnapshotIssued
from relay.core.notes import is_note
from relay.core.records.snapshot import SnapshotInterest, SnapshotView
from relay.core.records.snapshot_reading import SnapshotReading
from schemas.content import blobs
from schemas.content.blobs import Reference, StoredBlob
from schemas.content.manifest import build_manifest
from schemas.objects.objects import ObjectKey
from schemas.records.records import DeltaHead, KeysRecord, Record
from schemas.records.signed_records import SignedRecord, read_stored
from schemas.records.signing import Envelope, Signer, decode_envelope
from schemas.records.snapshots import EntryKey, SnapshotRecord, encode
from schemas.values import codec, wire
from schemas.values.identity import (
    KEYS_KEY,
    SNAPSHOT_KEY,
    ContentHash,
    KeyId,
    MailKey,
    NodePath,
    random_id,
)
from tests.simulation.customizing import form_of, kind_of
from tests.simulation.model import (
    ROOT_KEY,
    SCOPED,
    SIGNING_KEY,
    TIERS,
    TREE,
    WORKLOADS,
    Arm,
    Content,
    Located,
    Model,
    Past,
    Placed,
    Target,
    all_drafts,
    arms_of,
    keys_of,
    location_draft,
    manifest_entry,
    node_draft,
    placement_draft,
    placement_key,
    programs_of,
    target_draft,
)
from tests.simulation.sealing import content_key, nkey_of
from tests.simulation.signatures import public_key_of
from tests.simulation.space import written
from tests.simulation.world import World

ANNOUNCED_SECONDS = 5.0


def is_signed(key: str) -> bool:
    """Whether what lies there in OWN is no note of the node's own."""
    return key == SNAPSHOT_KEY or not is_note(key)


def signed_in(own: Mapping[str, OwnRecord]) -> dict[str, Envelope]:
    """What a node keeps that was signed, by its key."""
    return {k: decode_envelope(kept.data) for k, kept in own.items() if is_signed(k)}


class Books:
    """What was issued, as the oracle judges by it; whoever issues enters it here."""

    def __init__(self, world: World) -> None:
        self.world = world
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
        return self.world.root.node is not None

    @property
    def deleting(self) -> bool:
        """Whether something is deleted that snapshots still list."""
        return False

    def is_superseded(self, key: EntryKey, generation: int, snapshot: int) -> bool:
        """Whether by a snapshot this generation is not in force at its place."""
        return generation <= snapshot and self.listings[snapshot].get(key) != generation


class Centre(Books):
    """Changes the model, and issues what follows."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        # What the ledger holds and the model does not say, since the start.
        self.held: dict[MailKey, None] = {}
        self.terms: list[str] = []
        self._values: dict[str, Mapping[ContentHash, bytes]] = {}
        self._plains: dict[ContentHash, bytes] = {}
        # By address in clear, and after how many changes of the key.
        self._seals: dict[tuple[ContentHash, int], Reference] = {}
        # Blobs kept that the node was not told of yet.
        self._fresh: set[ContentHash] = set()
        self._revision = 0
        self._snapshot_at: float | None = None
        self._run = 0
        self._issuer: LedgerIssuer
        # What the file of keys holds: it outlives the ledger.
        self.ring = KeyRing(TREE, SIGNING_KEY, (ROOT_KEY,))
        world.centre_started, world.snapshot_shown = self.begin, self.shown
        self.begin()

    # A start, and what it makes of the ledger.

    def begin(self) -> None:
        """Begin a new term on what the disk holds, and issue what the model wants otherwise."""
        own = self.world.root.streams.own
        self._run += 1
        self.terms.append(self.world.random.randbytes(8).hex())
        reading, found = read_stored_ledger(read_stored(signed_in(own))), None
        wanted: Mapping[ContentHash, bytes] | None = None
        while found is None:
            try:
                missing = reading.send(wanted)  # type: ignore[arg-type]
            except StopIteration as read:
                found = read.value
            else:
                wanted = self._plain(missing)
        self._issuer = found.begin(self.terms[-1], self.ring.signing, self._now())
        self._snapshot_at = None
        self._begin_keys()
        self._sign_anew()
        self._reconcile()
        self._snapshot_soon()

    def _plain(self, references: Iterable[Reference]) -> dict[ContentHash, bytes]:
        stored = self.world.root.streams.blobs
        return {
            r.address: blobs.open_value(r, stored[r.address])
            for r in references
            if r.address in stored
        }

    def _now(self) -> Instant:
        return self.world.root.instant()

    def run_ahead(self, milliseconds: int) -> None:
        """Generations run ahead of the clock from now on, as after very many registrations."""
        self._issuer.ledger.raise_to(self._now().wall_ms + milliseconds)

    def _reconcile(self) -> None:
        ledger, wanted = self._issuer.ledger, {d.slot: d for d in all_drafts(self.model)}
        for key, draft in wanted.items():
            held = ledger.records.get(key)
            if not same(draft.record, held) or ledger.bodies.get(key) != draft.body:
                self._issue([draft])
        self.held = dict.fromkeys(ledger.records.keys() - wanted.keys() - {KEYS_KEY})

    @property
    def deleting(self) -> bool:
        ledger = self._issuer.ledger
        return bool(ledger.deleted or self._issuer.lost or self.held)

    def accept(self) -> None:
        """People let go of what the model does not say any more, and of what the ledger lost."""
        self._issuer.delete(sorted(self.held), self._now())
        self.held = {}
        self._issuer.forget_lost(self._now())
        self._snapshot_soon()

    def withdraw(self, term: str) -> None:
        """People let go of what a lost term issued."""
        self._issuer.withdraw(term, self._now())
        self._snapshot_soon()

    def shown(self, generation: int) -> None:
        """A child shows a newer snapshot than the last one here: go above it."""
        if not self._issuer.raise_above(generation, self._now()):
            return
        ring = renewed(self.ring, self._issuer.stamp(self._now()))
        if ring is not None:
            self.ring = ring
            self._publish_keys()
        self._issue_anew(self._issuer.issued_in_this_term())
        self._snapshot_soon()

    # What users do.

    def relapse(self) -> None:
        """Users do something by which destinations may go back to what they had."""
        self.relapsed = self._revision

    def admit_keys(self, path: NodePath, *numbers: int) -> None:
        """A node may come by any of these keys of its own, and by no other."""
        nkeys = " ".join(nkey_of(path, number) for number in numbers)
        self.model.nodes[path] = nkeys
        self._issue([node_draft(path, nkeys)])
        self._say_targets()

    def put_node(self, path: NodePath, *, deleted: bool = False) -> None:
        nkey = nkey_of(path)
        self.model.nodes.pop(path, None)
        if deleted:
            self._delete(node_draft(path, nkey).slot)
        else:
            self.model.nodes[path] = nkey
            self._issue([node_draft(path, nkey)])

    def put_target(self, target: Target, *, deleted: bool = False) -> None:
        """A destination, or none any more; where it hung with all, its node goes in the same."""
        draft = target_draft(target, self.model)
        before = self.model.targets.pop(target.name, None)
        if deleted:
            self._delete(draft.slot)
            return
        self.model.targets[target.name] = target
        self.past.targets.setdefault(target.path, []).append(target)
        left = before.path if before and before.path != target.path else None
        gone = []
        carried = before is not None and target.moved_from != before.moved_from
        if left is not None and carried and left in self.model.nodes:
            gone = [node_draft(left, self.model.nodes.pop(left)).slot]
        self._issue([draft], delete=gone)

    def put_location(self, name: str, located: Located | None) -> None:
        former = self.model.locations.pop(name, None)
        if located is None:
            self._unlocated(former)
            self._delete(location_draft(name, Located((), None)).slot)
            return
        self.model.locations[name] = located
        self.past.locations.setdefault(name, []).append(located)
        self._issue([location_draft(name, located)])

    def _unlocated(self, former: Located | None) -> None:
        """That a Location goes is no mail, so nobody waits for what it said of its destinations."""
        if former is not None and former.instances is not None and "tier" in dict(former.labels):
            for target in self.model.targets.values():
                if target.path in self.world.hosts:
                    self.world.watcher.drifted(self.world.hosts[target.path])

    def content(self, text: str, space: str = WORKLOADS) -> Content:
        """A new version of some object."""
        self._revision += 1
        plain = codec.canonical(written(text, self._revision))
        kind = kind_of(text)
        clear = Reference(kind, codec.address(kind, plain), len(plain))
        self._plains[clear.address] = plain
        return Content(space, self._revision, clear, self._sealed(clear, 0))

    def arm(self, contents: Mapping[ObjectKey, Content], changes: int = 0) -> Arm:
        """A manifest of these, all sealed under the key after so many changes."""
        held = tuple(
            (key, replace(it, sealed=self._sealed(it.reference, changes)))
            for key, it in sorted(contents.items())
        )
        stored = _manifest(held, changes)
        return Arm(stored[0].reference, held, changes)

    def _sealed(self, clear: Reference, changes: int) -> Reference:
        found = self._seals.get((clear.address, changes))
        if found is None:
            stored = content_key(changes).store(clear.kind, self._plains[clear.address])
            found = self._seals[clear.address, changes] = stored.reference
            self._values[found.address] = stored.values
        return found

    def put_placement(self, name: str, placed: Placed | None) -> None:
        """Put a placement in force, or delete it."""
        self.put_together({name: placed})

    def put_together(self, placements: Mapping[str, Placed | None]) -> None:
        """The same of several, in this order, as one `apply` says them."""
        for name, wanted in placements.items():
            key, before = placement_key(name), self.model.placements.pop(name, None)
            if wanted is None:
                self._delete(key)
                continue
            placed = self._sealed_anew(name, wanted)
            placed = replace(placed, rollout_since=self._steady(key)) if wanted.wave else placed
            self.model.placements[name] = placed
            self.past.placements.setdefault(key, []).append(placed)
            for arm in arms_of(placed):
                for object_key, content in arm.contents:
                    for tier in TIERS:
                        form = form_of(content.reference, tier)
                        self.contents[key, object_key, form] = None
                        self.revisions[object_key, form] = content.revision
            held = self._issuer.ledger.records.get(key)
            last_loss = held.last_loss if isinstance(held, DeltaHead) else 0
            loses = bool(keys_of(before) - keys_of(placed, common=True)) or (
                before is not None and before.alternatives != placed.alternatives
            )
            self._issue(
                [placement_draft(name, placed, self.model, loses=loses, last_loss=last_loss)]
            )

    def _sealed_anew(self, name: str, placed: Placed) -> Placed:
        """All of it under the newest key; what a rollout lets out stays under the one it has."""
        changes = self.model.key_changes.get(name, 0)
        if placed.wave or all(arm.changes == changes for arm in arms_of(placed)):
            return placed
        arm, canary = self.arm(dict(placed.arm.contents), changes), placed.canary
        if canary is not None:
            canary = self.arm(dict(canary.contents), changes)
        return replace(placed, arm=arm, canary=canary)

    def _steady(self, key: MailKey) -> int:
        """With which generation a placement's rollout began."""
        held = self._issuer.ledger.records.get(key)
        return (held.rollout_since or held.generation) if isinstance(held, DeltaHead) else 1

    def hold(self, name: str) -> None:
        """An `apply` begins: nothing is settled before it is released, for 60 s at most."""
        if self.world.ports.holds():
            self._issuer.snapshots.pause(name, now=self._now().seconds)

    def release(self, name: str) -> None:
        self._issuer.snapshots.resume(name)
        self._snapshot_soon()

    # Issuing.

    def _keep(self, values: Mapping[ContentHash, bytes]) -> None:
        self.world.root.streams.blobs.update(values)
        self._fresh.update(values)

    def _keep_content(self, draft: Draft) -> None:
        """All that a placement needs is stored, also what was swept since it was said last."""
        if draft.kind != "delta":
            return
        placed = self.model.placements.get(draft.record.source.name)
        for arm in arms_of(placed):
            for _, content in arm.contents:
                self._keep(self._values[content.sealed.address])
            self._keep(values_of(*_manifest(arm.contents, arm.changes)))
        programs = programs_of(placed) if placed is not None else None
        if programs is not None:
            self._keep(programs.values)

    def _issue(
        self,
        drafts: Sequence[Draft],
        delete: Iterable[MailKey] = (),
    ) -> None:
        """Blobs, then the ledger, then the node; in force only then."""
        assert self.ready
        for draft in drafts:
            self._keep_content(draft)
        said = [self.world.ports.issued(draft) for draft in drafts]
        publication = self._issuer.issue(said, self._now())
        self._keep(publication.blobs)
        self._store(publication)
        self._issuer.published(publication, self._now(), delete)
        for key in delete:
            self.held.pop(key, None)
        self._snapshot_soon()

    def _issue_anew(self, drafts: Iterable[Draft]) -> None:
        """What is in force, as it is: what is held stays so."""
        held = dict(self.held)
        for draft in drafts:
            self._issue([draft])
        self.held = held

    def _store(self, publication: Publication) -> None:
        for signed in publication.signed:
            self.issued[signed.envelope.bare().encode()] = None
            self.held.pop(signed.slot, None)
            self._put(signed)

    def _put(self, signed: SignedRecord) -> None:
        """Into the ledger, then to the node."""
        envelope, record, _ = signed
        key, root, data = signed.slot, self.world.root, envelope.encode()
        self.records[key] = record
        self.issued[data] = None
        if key == KEYS_KEY:
            # What stands beside the payload nobody signs: it vouches for itself.
            self.issued[envelope.bare().encode()] = None
        self.history.append((key, data))
        what = f"issue {envelope.kind} {record.source.name} {record.generation}"
        self.world.note("centre", what)
        root.streams.own.pop(key, None)
        root.streams.own[key] = OwnRecord(key, data, "", 0)
        root.tell(RecordIssued(signed, data, (), frozenset(self._fresh)))
        self._fresh.clear()

    # Sealing.

    def rotate_fleet(self) -> None:
        """People change the fleet key: profiles bring it, and then deltas need it."""
        self.model.announced += 1
        if self.world.ports.announces_first():
            self._say_targets()
            self.world.run(ANNOUNCED_SECONDS)
        else:
            self.world.after(ANNOUNCED_SECONDS, self._say_targets)
        self.model.rotations = self.model.announced
        for name, placed in self.model.placements.items():
            held = self._issuer.ledger.records[placement_key(name)]
            last_loss = held.last_loss if isinstance(held, DeltaHead) else 0
            self._issue([placement_draft(name, placed, self.model, last_loss=last_loss)])

    def change_placement_key(self, name: str, *, crash: bool = False) -> None:
        """People give a placement another key; the process may crash once its file holds that."""
        self.model.key_changes[name] = self.model.key_changes.get(name, 0) + 1
        placed = self.model.placements[name]
        if not crash:
            self.put_placement(name, placed)
            return
        self.model.placements[name] = self._sealed_anew(name, placed)
        self.world.root.stop(server_too=True)
        self.world.root.start()

    def forget_key(self, path: NodePath, *, known: bool = False) -> None:
        """The key of who hangs at a path is not known, or is again."""
        self.model.keyless.pop(path, None)
        if not known:
            self.model.keyless[path] = None
        self._say_targets()

    def _say_targets(self) -> None:
        for target in self.model.targets.values():
            self._issue([target_draft(target, self.model)])

    # Keys.

    def change_keys(self, change: KeyChange, crash: str = "") -> None:
        """What people change of the keys; the process may crash once they are `kept` or `told`."""
        ring, stamp = self.ring, self._issuer.stamp(self._now())
        signed_by = {it.key_id for it in signed_in(self.world.root.streams.own).values()}
        record = changed_record(ring, change, stamp, signed_by, alone=True)
        record = self.world.ports.keys(record)
        made = change.made if change.signing is None else (*change.made, change.signing)
        request = request_of(ring, record, made)
        self.ring = completed(ring.prepare(*made), request, stamp.generation)
        if crash != "kept":
            self._publish_keys()
        if crash:
            self.world.root.stop(server_too=True)
            self.world.root.start()
            return
        self._sign_anew()
        self._snapshot_soon()

    def new_key(self) -> Signer:
        """A key that nobody had before."""
        random = self.world.random
        return Signer(TREE, KeyId(random_id(random.randbytes(16))), random.randbytes(32))

    def _begin_keys(self) -> None:
        held = self._issuer.ledger.records.get(KEYS_KEY)
        if self.ring.record is None:
            stamp = self._issuer.stamp(self._now())
            record = changed_record(self.ring, KeyChange(), stamp, (), alone=True)
            record = wire.replace(record, grants=(*record.grants, SCOPED))
            request = request_of(self.ring, record)
            self.ring = completed(self.ring, request, stamp.generation)
        if held is None or held.generation < self._keys.generation:
            self._publish_keys()

    @property
    def _keys(self) -> KeysRecord:
        record = self.ring.record
        assert record is not None
        return record

    def _publish_keys(self) -> None:
        assert self.ring.message is not None
        self._put(SignedRecord(self.ring.message, self._keys))
        self._issuer.keys_published(self._keys, self.ring.signing, self._now())

    def _sign_anew(self) -> None:
        signed = read_stored(signed_in(self.world.root.streams.own)).envelopes()
        ledger = self._issuer.ledger
        self._issue_anew(self._issuer.again(unbelieved(self._keys, ledger.records, signed)))

    def _delete(self, key: MailKey) -> None:
        self._issuer.delete([key], self._now())
        self._snapshot_soon()

    # Snapshots.

    def _snapshot_soon(self) -> None:
        at = max(self._issuer.snapshots.due, self.world.now)
        if self._snapshot_at is None or at < self._snapshot_at:
            self._snapshot_at = at
            self.world.at(at, self._snapshot_due, self._run, at)

    def _snapshot_due(self, run: int, at: float) -> None:
        if run != self._run or at != self._snapshot_at:
            return
        self._snapshot_at = None
        if not self.ready:
            return
        if self._issuer.snapshots.due <= self.world.now:
            self._sign()
        self._snapshot_soon()

    def _sign(self) -> None:
        """Blobs, the snapshot into the ledger, the node; then the ledger forgets what it drops."""
        publication = self._issuer.sign_snapshot(self._now())
        self._keep(publication.blobs)
        honest = publication.record
        said = self.world.ports.snapshot(honest, self._keep)
        envelope = self._issuer.signer.seal("snapshot", encode(said))
        data, hashed = envelope.encode(), envelope.payload_hash
        self._enter_snapshot(honest, data)
        root = self.world.root
        root.streams.own.pop(SNAPSHOT_KEY, None)
        root.streams.own[SNAPSHOT_KEY] = OwnRecord(SNAPSHOT_KEY, data, "", 0)
        self._issuer.snapshot_published(publication)
        self._issuer.assert_invariants()
        for key in publication.dropped:
            root.streams.own.pop(key, None)
        root.tell(SnapshotIssued(said, data, hashed, publication.dropped, frozenset(self._fresh)))
        self._fresh.clear()

    def _enter_snapshot(self, snapshot: SnapshotRecord, data: bytes) -> None:
        """What it lists is what is signed: a node judges by nothing else."""
        nodes: dict[ContentHash, bytes] = {}
        reading = SnapshotReading(snapshot, SnapshotInterest.everything(), nodes)
        while missing := reading.missing():
            for address, plain in self._plain(missing).items():
                reading.take(address, plain)
        entries = SnapshotView(snapshot, nodes).listed(SnapshotInterest.everything())
        listing = {entry.key: entry.generation for entry in entries}
        self.listings[snapshot.generation] = listing
        self.issued[data] = None
        self.history.append((SNAPSHOT_KEY, data))
        self.world.note("centre", f"snapshot {snapshot.generation}: {len(listing)} listed")


def change_keys(centre: Centre, what: str, crash: str = "") -> None:
    """Rotate the signing key or the root, or revoke the signing key."""
    made = centre.new_key()
    match what:
        case "root":
            change = KeyChange(roots={made.key_id: public_key_of(made)}, made=(made,))
        case "revoke":
            change = KeyChange(signing=made, revoked=centre.ring.signing.key_id)
        case _:
            change = KeyChange(signing=made)
    centre.change_keys(change, crash)


def _manifest(contents: Iterable[tuple[ObjectKey, Content]], changes: int) -> list[StoredBlob]:
    entries = [manifest_entry(key, content) for key, content in contents]
    return build_manifest(entries, key=content_key(changes))
