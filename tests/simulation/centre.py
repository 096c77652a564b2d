"""The centre of a simulated tree: what users want, and the signed records that say so.

The model is the truth that the oracle compares with. Which snapshots are signed, and what a start
makes of the ledger, the controllers' own issuer decides. A start of the centre is a new term.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from controllers.core.drafts import Draft, same, values_of
from controllers.core.snapshots import (
    IssuedSnapshot,
    SnapshotIssuer,
    judge_own_ledger,
    known_terms,
)
from relay.core.events import Issued, OwnRecord, SnapshotIssued
from relay.core.records.accepted import Accepted, read_record
from relay.core.records.snapshot import SnapshotView
from relay.core.records.tree import SnapshotTree
from schemas import blobs, codec
from schemas.blobs import Reference
from schemas.chunks import ManifestEntry, build_manifest
from schemas.identity import (
    KEYS_KEY,
    SNAPSHOT_KEY,
    ContentHash,
    DestinationId,
    Generation,
    KeyId,
    MailKey,
    NodePath,
    TreeId,
    destination_id,
    next_generation,
    random_id,
)
from schemas.moves import MOVED_ANNOTATION
from schemas.objects import ObjectKey
from schemas.records import (
    API_KEYS,
    API_LOCATION,
    API_NODE,
    API_PLACEMENT,
    API_SYNC_TARGET,
    BUCKETS,
    Alternative,
    DeltaBody,
    DeltaHead,
    Gate,
    KeyGrant,
    KeysRecord,
    LocationRecord,
    NodeRecord,
    Profile,
    Record,
    Source,
    encode_payload,
)
from schemas.selectors import LabelSelector
from schemas.signing import Signer, decode_envelope
from schemas.snapshots import EntryKey, SnapshotRecord, Term, encode, read_snapshot, read_terms
from tests.simulation.signatures import public_key_of
from tests.simulation.world import World

TREE = TreeId(random_id(b"simulated tree  "))
ROOT_KEY = Signer(TREE, KeyId(random_id(b"root key        ")), b"r" * 32)
SIGNING_KEY = Signer(TREE, KeyId(random_id(b"signing key     ")), b"s" * 32)
ROOTS = {ROOT_KEY.key_id: public_key_of(ROOT_KEY)}
INVENTORY_KEY = Signer(TREE, KeyId(random_id(b"inventory key   ")), b"i" * 32)
OTHER_TREE = TreeId(random_id(b"another tree    "))
SIGNED = ("delta", "profile", "location", "node", "snapshot", "ask")
INVENTORY, WORKLOADS = "inventory", "workloads"
NOTES = ("_cursor",)
"""What a node keeps in OWN of its own."""


@dataclass(frozen=True)
class Target:
    """A SyncTarget: who it is, where it hangs and what it says of where it hung, and its labels."""

    name: str
    path: NodePath
    labels: tuple[tuple[str, str], ...]
    moved_from: str = ""

    @property
    def destination(self) -> DestinationId:
        return destination_id(INVENTORY, f"uid-{self.name}")


@dataclass(frozen=True)
class Located:
    """A Location: its labels, and which SyncTargets belong to it."""

    labels: tuple[tuple[str, str], ...]
    instances: LabelSelector


@dataclass(frozen=True)
class Content:
    """One version of an object: which source, its revision there, and its address."""

    space: str
    revision: int
    reference: Reference


@dataclass(frozen=True)
class Arm:
    """What some of a placement's destinations get: its manifest, and the contents by object."""

    root: Reference
    contents: tuple[tuple[ObjectKey, Content], ...]


@dataclass(frozen=True)
class Placed:
    """A placement in force: who is meant, and which arm for a bucket below `canary`, else `arm`."""

    alternatives: tuple[Alternative, ...]
    arm: Arm
    canary: Arm | None = None
    below: int = 0
    salt: str = ""
    priority: int = 0


@dataclass
class Model:
    """What is wanted now."""

    targets: dict[str, Target] = field(default_factory=dict)
    locations: dict[str, Located] = field(default_factory=dict)
    placements: dict[str, Placed] = field(default_factory=dict)
    nodes: dict[NodePath, str] = field(default_factory=dict)


@dataclass
class Past:
    """All that was ever wanted, in every version."""

    targets: dict[NodePath, list[Target]] = field(default_factory=dict)
    locations: list[Located] = field(default_factory=list)
    placements: dict[str, list[Placed]] = field(default_factory=dict)


class Books:
    """What was issued, as the oracle judges by it; whoever issues enters it here."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.model, self.past = Model(), Past()
        self.issued: dict[bytes, None] = {}
        self.contents: dict[tuple[MailKey, ObjectKey, str], None] = {}
        # The newest of each key, deleted ones too.
        self.records: dict[MailKey, Record] = {}
        self.history: list[tuple[MailKey, bytes]] = []
        # What each snapshot lists, by mail key.
        self.listings: dict[int, dict[MailKey, int]] = {}
        # When each deleted key was deleted.
        self.deleted: dict[MailKey, float] = {}

    @property
    def ready(self) -> bool:
        """Whether the centre's process runs, so that it can issue."""
        return self.world.root.node is not None

    def lists(self, snapshot: int, key: MailKey) -> int | None:
        """The generation of the key in the snapshot of that generation."""
        return self.listings[snapshot].get(key)

    def enter(self, key: MailKey, record: Record, data: bytes, bare: bytes) -> None:
        """A record is issued: with its body, and as it goes to who is not concerned."""
        self.records[key] = record
        self.deleted.pop(key, None)
        self.issued |= {data: None, bare: None}
        self.history.append((key, data))


class Centre(Books):
    """Changes the model, and issues what follows."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        # How far ahead of its clock the centre issues, in ms, as after very many registrations.
        self.ahead_ms = 0
        # What the ledger holds, and what of it the model lacks since a start: held until accepted.
        self.ledger: dict[MailKey, Accepted] = {}
        self.held: dict[MailKey, EntryKey] = {}
        self._values: dict[str, Mapping[ContentHash, bytes]] = {}
        # Blobs kept that the node was not told of yet.
        self._fresh: set[ContentHash] = set()
        self._highest = Generation(0)
        self._revision = 0
        self._snapshot_at: float | None = None
        self._run = 0
        self._term = Term(b"")
        self._issuer: SnapshotIssuer
        self._keys_of: dict[EntryKey, MailKey] = {}
        world.centre_started, world.snapshot_shown = self.begin, self.shown
        self.begin()

    # A start, and what it makes of the ledger.

    def begin(self) -> None:
        """Begin a new term on what the disk holds, and issue what the model wants otherwise."""
        own, now = self.world.root.streams.own, self.world.now
        self._run += 1
        self._term = Term(self.world.random.randbytes(8))
        self.ledger = {
            accepted.key: accepted
            for key, kept in own.items()
            if key not in (*NOTES, SNAPSHOT_KEY)
            for accepted in (read_record(kept.data)[1],)
        }
        self._keys_of = {accepted.entry_key: accepted.key for accepted in self.ledger.values()}
        last, tree = self._last_snapshot()
        listed = {entry.key: entry.generation for entry in tree.entries()}
        counted = [a.held for a in self.ledger.values() if a.key != KEYS_KEY]
        terms = known_terms(last, self._last_terms(last), counted)
        outdated: set[MailKey] = set()
        lacking: Mapping[EntryKey, int] = {}
        if last is not None:
            standing = judge_own_ledger(counted, last, listed)
            for gone in standing.gone:
                key = self._keys_of[gone.key]
                del own[key], self.ledger[key]
            outdated = {self._keys_of[record.key] for record in standing.outdated}
            lacking = standing.lacking
        floor = last.generation if last else 0
        ahead = {a.held.key: a.generation for a in self.ledger.values() if a.generation > floor}
        ahead.pop(EntryKey(b""), None)
        if KEYS_KEY in self.ledger:
            ahead.pop(self.ledger[KEYS_KEY].entry_key, None)
        self._highest = Generation(max([floor, *(a.generation for a in self.ledger.values())]))
        self._issuer = SnapshotIssuer(
            self._term, now=now, last=last, stored=tree, terms=terms, ahead=ahead
        )
        self._issuer_raise()
        self._snapshot_at = None
        if KEYS_KEY not in self.ledger:
            self._issue_keys()
        self._reconcile(outdated, lacking)
        self._snapshot_soon()

    def _issuer_raise(self) -> None:
        """The keys record is in no tree, and yet has a generation."""
        held = self.ledger.get(KEYS_KEY)
        if held is not None:
            self._highest = Generation(max(self._highest, held.generation))

    def _last_snapshot(self) -> tuple[SnapshotRecord | None, SnapshotTree]:
        kept = self.world.root.streams.own.get(SNAPSHOT_KEY)
        if kept is None:
            return None, SnapshotTree.empty()
        last = read_snapshot(decode_envelope(kept.data).payload)
        view = SnapshotView(last, _Plain(self.world.root.streams.blobs, last))
        entries = view.entries()
        assert not hasattr(entries, "missing"), "the ledger's own tree is not whole"
        return last, SnapshotTree.empty().changed({e.key: e.generation for e in entries})

    def _last_terms(self, last: SnapshotRecord | None) -> Iterable:
        if last is None:
            return ()
        reference = last.terms_reference
        value = self.world.root.streams.blobs[reference.address]
        return read_terms(blobs.open_value(reference, value)).terms

    def _reconcile(self, outdated: set[MailKey], lacking: Mapping[EntryKey, int]) -> None:
        """Issue what the model says otherwise than the ledger; hold what it does not say."""
        wanted = {draft.slot: draft for draft in self._drafts()}
        for key, draft in wanted.items():
            held = self.ledger.get(key)
            content = held is not None and _body_of(held) == draft.body
            if held is None or key in outdated or not (content and same(draft.record, held.record)):
                self._issue(draft)
        self.held = {
            key: a.entry_key
            for key, a in self.ledger.items()
            if key not in wanted and key != KEYS_KEY
        }
        here = {accepted.entry_key for accepted in self.ledger.values()}
        self.held |= {MailKey(entry.hex()): entry for entry in lacking if entry not in here}

    def _drafts(self) -> Iterable[Draft]:
        model = self.model
        yield from (_node_draft(path, nkey) for path, nkey in model.nodes.items())
        yield from (_target_draft(target) for target in model.targets.values())
        yield from (_location_draft(name, at) for name, at in model.locations.items())
        for name, placed in model.placements.items():
            self._keep_arms(placed)
            yield self._placement_draft(name, placed)

    def accept(self) -> None:
        """People let go of what the model does not say any more."""
        for key, entry in self.held.items():
            self._delete(key, entry)
        self.held = {}

    def withdraw(self, term: Term) -> None:
        """People let go of what a lost term issued."""
        self._issuer.withdraw(term, now=self.world.now)
        self._snapshot_soon()

    def shown(self, generation: int) -> None:
        """A child shows a newer snapshot than the last one here: go above it, issue all anew."""
        if generation > self._highest:
            self._highest = Generation(generation)
            for draft in list(self._drafts()):
                self._issue(draft)
            self._snapshot_soon()

    # What users do.

    def put_node(self, path: NodePath, *, deleted: bool = False) -> None:
        draft = _node_draft(path, f"nkey{path}")
        self.model.nodes.pop(path, None)
        if deleted:
            self._drop(draft.slot)
        else:
            self.model.nodes[path] = f"nkey{path}"
            self._issue(draft)

    def put_target(self, target: Target, *, deleted: bool = False) -> None:
        """A destination, or none any more; where it hung with all, its node goes in the same."""
        draft, before = _target_draft(target), self.model.targets.pop(target.name, None)
        if deleted:
            self._drop(draft.slot)
            return
        left = before.path if before and before.path != target.path else None
        self.model.targets[target.name] = target
        self.past.targets.setdefault(target.path, []).append(target)
        self._issue(draft, takes_away=before is not None)
        if left is not None and target.moved_from and left in self.model.nodes:
            self.put_node(left, deleted=True)

    def put_location(self, name: str, located: Located | None) -> None:
        known = self.model.locations.pop(name, None) is not None
        if located is None:
            self._drop(_location_draft(name, Located((), LabelSelector())).slot)
            return
        self.model.locations[name] = located
        self.past.locations.append(located)
        self._issue(_location_draft(name, located), takes_away=known)

    def content(self, text: str, space: str = WORKLOADS) -> Content:
        """A new version of some object."""
        self._revision += 1
        stored = blobs.store(blobs.OBJECT, codec.canonical({"text": text, "n": self._revision}))
        self._values[stored.reference.address] = stored.values
        return Content(space, self._revision, stored.reference)

    def arm(self, contents: dict[ObjectKey, Content]) -> Arm:
        """A manifest of these."""
        arm = Arm(Reference("", ContentHash(""), 0), tuple(sorted(contents.items(), key=_first)))
        return replace(arm, root=self._keep_arm(arm))

    def _keep_arm(self, arm: Arm) -> Reference:
        """Store all that an arm needs, also what was swept since; its manifest."""
        for _, content in arm.contents:
            self._keep(self._values[content.reference.address])
        stored = build_manifest([_entry(key, content) for key, content in arm.contents])
        self._keep(values_of(*stored))
        return stored[0].reference

    def _keep_arms(self, placed: Placed) -> None:
        for arm in arms_of(placed):
            self._keep_arm(arm)

    def put_placement(self, name: str, placed: Placed | None) -> None:
        """Put a placement in force, or delete it."""
        key = placement_key(name)
        before = self.model.placements.pop(name, None)
        if placed is None:
            self._drop(key)
            return
        self.model.placements[name] = placed
        self.past.placements.setdefault(key, []).append(placed)
        loses = bool(_keys(before) - _keys(placed, common=True))
        other = before is not None and before.alternatives != placed.alternatives
        for arm in arms_of(placed):
            for object_key, content in arm.contents:
                self.contents[key, object_key, content.reference.address] = None
        self._keep_arms(placed)
        draft = replace(self._placement_draft(name, placed), loses=loses)
        self._issue(draft, takes_away=loses or other)

    def hold(self, name: str) -> None:
        """An `apply` begins: nothing is settled before it is released, for 60 s at most."""
        self._issuer.hold(name, now=self.world.now)

    def release(self, name: str) -> None:
        self._issuer.release(name)
        self._snapshot_soon()

    # Issuing.

    def _placement_draft(self, name: str, placed: Placed) -> Draft:
        held = self.ledger.get(placement_key(name))
        last_loss = held.record.last_loss if held and isinstance(held.record, DeltaHead) else 0
        return Draft("delta", _head(name, placed, last_loss), _body(placed))

    def _keep(self, values: Mapping[ContentHash, bytes]) -> None:
        self.world.root.streams.blobs.update(values)
        self._fresh.update(values)

    def _next(self) -> Generation:
        wall = self.world.root.instant().wall_ms + self.ahead_ms
        self._highest = next_generation(self._highest, wall)
        return self._highest

    def _issue(
        self, draft: Draft, signer: Signer = SIGNING_KEY, *, takes_away: bool = False
    ) -> None:
        assert self.ready
        record = self.world.ports.issued(draft.stamped(self._next(), self._term.hex()))
        envelope = signer.seal(draft.kind, encode_payload(record), draft.body)
        data = envelope.encode()
        self._keep(draft.blobs)
        _, accepted = read_record(data)
        key = accepted.key
        self.enter(key, record, data, envelope.bare().encode())
        self.world.note("centre", f"issue {draft.kind} {record.source.name} {record.generation}")
        self.ledger[key] = accepted
        self.held.pop(key, None)
        root = self.world.root
        root.streams.own.pop(key, None)
        root.streams.own[key] = OwnRecord(key, data, "", 0)
        root.tell(Issued(data, (), frozenset(self._fresh)))
        self._fresh.clear()
        if draft.kind != "keys":
            self._keys_of[accepted.entry_key] = key
            self._issuer.issued(
                accepted.entry_key, record.generation, takes_away=takes_away, now=self.world.now
            )
            self._snapshot_soon()

    def _issue_keys(self) -> None:
        grant = KeyGrant(SIGNING_KEY.key_id, public_key_of(SIGNING_KEY), SIGNED)
        scoped = KeyGrant(
            INVENTORY_KEY.key_id, public_key_of(INVENTORY_KEY), ("profile",), path=NodePath(("x",))
        )
        record = KeysRecord(*_common(Source(API_KEYS, TREE, "", "keys")), grants=(grant, scoped))
        self._issue(Draft("keys", record), ROOT_KEY)

    def _drop(self, key: MailKey) -> None:
        held = self.ledger.get(key)
        if held is not None:
            self._delete(key, held.entry_key)

    def _delete(self, key: MailKey, entry: EntryKey) -> None:
        self.deleted[key] = self.world.now
        self._keys_of.setdefault(entry, key)
        self._issuer.deleted(entry, now=self.world.now)
        self._snapshot_soon()

    # Snapshots.

    def _snapshot_soon(self) -> None:
        at = max(self._issuer.due, self.world.now)
        if self._snapshot_at is None or at < self._snapshot_at:
            self._snapshot_at = at
            self.world.at(at, self._snapshot_due, self._run, at)

    def _snapshot_due(self, run: int, at: float) -> None:
        if run != self._run or at != self._snapshot_at:
            return
        self._snapshot_at = None
        if not self.ready:
            return
        if self._issuer.due <= self.world.now:
            self._sign()
        self._snapshot_soon()

    def _sign(self) -> None:
        """Blobs, the snapshot into the ledger, the node; then the ledger forgets what it drops."""
        wall = self.world.root.instant().wall_ms
        issued = self._issuer.sign(self._next(), now=self.world.now, now_ms=wall)
        self._issuer.check()
        issued = self.world.ports.snapshot(issued)
        data = SIGNING_KEY.seal("snapshot", encode(issued.record)).encode()
        self._keep(values_of(*issued.blobs))
        self._enter_snapshot(issued, data)
        root = self.world.root
        root.streams.own.pop(SNAPSHOT_KEY, None)
        root.streams.own[SNAPSHOT_KEY] = OwnRecord(SNAPSHOT_KEY, data, "", 0)
        dropped = tuple(self._keys_of.pop(entry) for entry in issued.dropped)
        for key in dropped:
            root.streams.own.pop(key, None)
            self.ledger.pop(key, None)
        known = tuple(key for key in dropped if not _is_hex_entry(key))
        root.tell(SnapshotIssued(data, known, frozenset(self._fresh)))
        self._fresh.clear()

    def _enter_snapshot(self, issued: IssuedSnapshot, data: bytes) -> None:
        gone = set(issued.dropped)
        listing = {
            key: accepted.generation
            for key, accepted in self.ledger.items()
            if key != KEYS_KEY and accepted.entry_key not in gone
        }
        self.listings[issued.record.generation] = listing
        self.issued[data] = None
        self.history.append((SNAPSHOT_KEY, data))
        self.world.note("centre", f"snapshot {issued.record.generation}: {len(listing)} listed")


class _Plain(dict[ContentHash, bytes]):
    """The tree of a snapshot, out of stored blobs."""

    def __init__(self, stored: Mapping[ContentHash, bytes], last: SnapshotRecord) -> None:
        super().__init__()
        waiting = [last.tree]
        while waiting:
            at = waiting.pop()
            plain = self[at.address] = blobs.open_value(at.reference, stored[at.address])
            if at.height:
                node = at.inner(plain)
                waiting += [at.child(node, n) for n in range(len(node.children))]


def _is_hex_entry(key: MailKey) -> bool:
    """Whether the key stands for a record of which only the snapshot knows."""
    return len(key) > 40 and not key.startswith("_")


def _body_of(held: Accepted) -> bytes | None:
    return decode_envelope(held.data).body


def _first(item: tuple[ObjectKey, Content]) -> ObjectKey:
    return item[0]


def _entry(key: ObjectKey, content: Content) -> ManifestEntry:
    return ManifestEntry(
        group=key.group,
        resource=key.resource,
        namespace=key.namespace,
        name=key.name,
        address=content.reference.address,
        size=content.reference.size,
        space=content.space,
        uid=f"uid-{key.name}",
        revision=content.revision,
    )


def _node_draft(path: NodePath, nkey: str) -> Draft:
    source = Source(API_NODE, TREE, "", str(path))
    return Draft("node", NodeRecord(*_common(source), path=path, nkey=nkey))


def _target_draft(target: Target) -> Draft:
    record = Profile(
        *_common(Source(API_SYNC_TARGET, INVENTORY, "", target.name)),
        destination=target.destination,
        path=target.path,
        labels=dict(target.labels),
        annotations={MOVED_ANNOTATION: target.moved_from} if target.moved_from else {},
        properties={},
    )
    return Draft("profile", record)


def _location_draft(name: str, located: Located) -> Draft:
    record = LocationRecord(
        *_common(Source(API_LOCATION, INVENTORY, "", name)),
        labels=dict(located.labels),
        annotations={},
        instance_selector=located.instances,
    )
    return Draft("location", record)


def placement_key(name: str) -> MailKey:
    return Source(API_PLACEMENT, WORKLOADS, "", name).key


def arms_of(placed: Placed | None) -> list[Arm]:
    if placed is None:
        return []
    return [placed.arm] if placed.canary is None else [placed.canary, placed.arm]


def _keys(placed: Placed | None, *, common: bool = False) -> set[ObjectKey]:
    """Objects in some arm, or in all of them."""
    found = [{key for key, _ in arm.contents} for arm in arms_of(placed)]
    if not found:
        return set()
    return set.intersection(*found) if common else set.union(*found)


def _common(source: Source) -> tuple[Source, int, str, str, tuple[Reference, ...]]:
    return (source, 0, "", "", ())


def _gates(placed: Placed) -> tuple[Gate, ...]:
    last = Gate(placed.arm.root)
    if placed.canary is None:
        return (last,)
    return (Gate(placed.canary.root, below=min(placed.below, BUCKETS - 1), salt=placed.salt), last)


def _body(placed: Placed) -> bytes:
    roots = dict.fromkeys(arm.root for arm in arms_of(placed))
    return DeltaBody(tuple(roots), _gates(placed)).encode()


def _head(name: str, placed: Placed, last_loss: int) -> DeltaHead:
    return DeltaHead(
        *_common(Source(API_PLACEMENT, WORKLOADS, "", name)),
        body_hash=hashlib.sha256(_body(placed)).digest(),
        alternatives=placed.alternatives,
        last_loss=last_loss,
        priority=placed.priority,
    )
