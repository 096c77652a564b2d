"""The centre of a simulated tree: what users want, and the signed records that say so.

The model is the truth that the oracle compares with; records are issued as the controllers would:
blobs, then the ledger, then the node; the index after each change, at most once a second.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from controllers.core.drafts import Draft, values_of
from controllers.core.index import index_draft
from controllers.core.moving import left_places
from relay.core.events import Issued, OwnRecord
from schemas import blobs, codec, wire
from schemas.blobs import Reference
from schemas.chunks import ManifestEntry, build_manifest
from schemas.identity import (
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
from schemas.signing import Signer
from tests.simulation.signatures import public_key_of, read_record
from tests.simulation.world import World

TREE = TreeId(random_id(b"simulated tree  "))
ROOT_KEY = Signer(TREE, KeyId(random_id(b"root key        ")), b"r" * 32)
SIGNING_KEY = Signer(TREE, KeyId(random_id(b"signing key     ")), b"s" * 32)
ROOTS = {ROOT_KEY.key_id: public_key_of(ROOT_KEY)}
INVENTORY_KEY = Signer(TREE, KeyId(random_id(b"inventory key   ")), b"i" * 32)
OTHER_TREE = TreeId(random_id(b"another tree    "))
SIGNED = ("delta", "profile", "location", "node", "index", "ask")
INVENTORY, WORKLOADS, ELSEWHERE = "inventory", "workloads", "elsewhere"
OF_ELSEWHERE = "other-"
"""So begin the names of the placements of another space, which stands in the place of the first."""
INDEX_EVERY_SECONDS, INDEX_GATHER_SECONDS = 600.0, 1.0


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
        self.records: dict[MailKey, Record] = {}
        self.history: list[tuple[MailKey, bytes]] = []
        self._indexes: dict[int, dict[MailKey, int]] = {}

    @property
    def ready(self) -> bool:
        """Whether the centre's process runs, so that it can issue."""
        return self.world.root.node is not None

    def listed(self, index: int, key: MailKey) -> int | None:
        """The generation of the key in the index of that generation."""
        return self._indexes[index].get(key)

    def is_superseded(self, record: Record, index: int) -> bool:
        """Whether a later index, which the centre may have lost, says that it is not in force."""
        return index > record.generation != self.listed(index, record.source.key)

    def enter(self, key: MailKey, record: Record, data: bytes, bare: bytes) -> None:
        """A record is issued: with its body, and as it goes to who is not concerned."""
        self.records[key] = record
        self.issued |= {data: None, bare: None}
        self.history.append((key, data))


class Centre(Books):
    """Changes the model, and issues what follows."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.changed: list[float] = []
        self._in_force: dict[MailKey, int] = {}
        self._values: dict[str, object] = {}
        self._fresh: set[ContentHash] = set()
        """Blobs kept that the node was not told of yet."""
        self._highest = Generation(0)
        self._revision = 0
        self._index_at: float | None = None
        self._indexed = float("-inf")
        grant = KeyGrant(SIGNING_KEY.key_id, public_key_of(SIGNING_KEY), SIGNED)
        scoped = KeyGrant(
            INVENTORY_KEY.key_id, public_key_of(INVENTORY_KEY), ("profile",), path=NodePath(("x",))
        )
        self._issue(
            Draft(
                "keys",
                KeysRecord(*_common(Source(API_KEYS, TREE, "", "keys")), grants=(grant, scoped)),
            ),
            ROOT_KEY,
        )
        self._issue_index()

    # What users do.

    def put_node(self, path: NodePath, *, deleted: bool = False) -> None:
        nkey = f"nkey{path}"
        if deleted:
            self.model.nodes.pop(path, None)
        else:
            self.model.nodes[path] = nkey
        record = NodeRecord(
            *_common(Source(API_NODE, TREE, "", str(path)), deleted=deleted), path=path, nkey=nkey
        )
        self._issue(Draft("node", record))

    def put_target(self, target: Target, *, deleted: bool = False) -> None:
        """A destination, or none any more; a node that it moved away from with all goes before."""
        record = Profile(
            *_common(Source(API_SYNC_TARGET, INVENTORY, "", target.name), deleted=deleted),
            destination=target.destination,
            path=target.path,
            labels=dict(target.labels),
            annotations={MOVED_ANNOTATION: target.moved_from} if target.moved_from else {},
            properties={},
        )
        for left in left_places(self.records, self._node_at, () if deleted else (record,)):
            self.model.nodes.pop(left.record.path, None)  # type: ignore[attr-defined]
            self._issue(left)
        self.model.targets.pop(target.name, None)
        if not deleted:
            self.model.targets[target.name] = target
            self.past.targets.setdefault(target.path, []).append(target)
        self._issue(Draft("profile", record))

    def _node_at(self, path: NodePath) -> NodeRecord | None:
        held = self.records.get(Source(API_NODE, TREE, "", str(path)).key)
        return held if isinstance(held, NodeRecord) and not held.deleted else None

    def put_location(self, name: str, located: Located | None, *, more: bool = False) -> None:
        self.model.locations.pop(name, None)
        if located is not None:
            self.model.locations[name] = located
            self.past.locations.append(located)
        record = LocationRecord(
            *_common(Source(API_LOCATION, INVENTORY, "", name), deleted=located is None),
            labels=dict(located.labels) if located else {},
            annotations={},
            instance_selector=located.instances if located else None,
        )
        self._issue(Draft("location", record), more=more)

    def content(self, text: str, space: str = WORKLOADS) -> Content:
        """A new version of some object."""
        self._revision += 1
        stored = blobs.store(blobs.OBJECT, codec.canonical({"text": text, "n": self._revision}))
        self._values[stored.reference.address] = stored.values
        return Content(space, self._revision, stored.reference)

    def arm(self, contents: dict[ObjectKey, Content]) -> Arm:
        """A manifest of these."""
        entries = [
            ManifestEntry(
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
            for key, content in contents.items()
        ]
        for content in contents.values():
            # Also of one that nothing led to for so long that it was swept.
            self._keep(self._values[content.reference.address])
        stored = build_manifest(entries)
        self._keep(values_of(*stored))
        return Arm(stored[0].reference, tuple(sorted(contents.items(), key=lambda item: item[0])))

    def put_placement(self, name: str, placed: Placed | None, *, more: bool = False) -> None:
        """Put a placement in force, or delete it; if `more`, together with the next."""
        key = placement_key(name)
        before, held = self.model.placements.pop(name, None), self.records.get(key)
        if placed is not None:
            self.model.placements[name] = placed
            self.past.placements.setdefault(key, []).append(placed)
        former = held.last_loss if isinstance(held, DeltaHead) else 0
        loses = placed is None or bool(_keys(before) - _keys(placed, common=True))
        draft = Draft("delta", _head(name, placed, former), _body(placed), loses=loses)
        for arm in arms_of(placed):
            for object_key, content in arm.contents:
                self.contents[key, object_key, content.reference.address] = None
        self._issue(draft, more=more)

    # Issuing.

    def _keep(self, values: object) -> None:
        assert hasattr(values, "items")
        self.world.root.streams.blobs.update(values)
        self._fresh.update(values)

    def _issue(self, draft: Draft, signer: Signer = SIGNING_KEY, *, more: bool = False) -> None:
        assert self.ready
        self._highest = next_generation(self._highest, self.world.root.instant().wall_ms)
        record = draft.stamped(self._highest)
        envelope = signer.seal(draft.kind, encode_payload(record), draft.body)
        data, bare = envelope.encode(), envelope.bare().encode()
        self._keep(draft.blobs)
        _, held = read_record(data, 0)
        self.enter(held.key, record, data, bare)
        self.world.note("centre", f"issue {draft.kind} {record.source.name} {record.generation}")
        root = self.world.root
        root.streams.own.pop(held.key, None)
        root.streams.own[held.key] = OwnRecord(held.key, data, "", 0)
        root.tell(Issued(data, (), frozenset(self._fresh), more))
        self._fresh.clear()
        if isinstance(record, DeltaHead):
            self._in_force.pop(held.key, None)
            if not record.deleted:
                self._in_force[held.key] = record.generation
        if draft.kind == "index":
            return
        self.changed.append(self.world.now)
        self._index_soon(max(self.world.now, self._indexed + INDEX_GATHER_SECONDS))

    def _index_soon(self, at: float) -> None:
        if self._index_at is None or at < self._index_at:
            self._index_at = at
            self.world.at(at, self._index_due, at)

    def _index_due(self, at: float) -> None:
        if at != self._index_at:
            return
        self._index_at = None
        if self.ready:
            self._issue_index()
        else:
            self._index_soon(self.world.now + INDEX_GATHER_SECONDS)

    def _issue_index(self) -> None:
        self._indexed = self.world.now
        draft, _ = index_draft(TREE, self._in_force, self.world.root.instant().wall_ms)
        self._issue(draft)
        self._indexes[self._highest] = dict(self._in_force)
        self._index_soon(self.world.now + INDEX_EVERY_SECONDS)


def placement_key(name: str) -> MailKey:
    space = ELSEWHERE if name.startswith(OF_ELSEWHERE) else WORKLOADS
    return Source(API_PLACEMENT, space, "", name).key


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


def _common(
    source: Source, *, deleted: bool = False, references: Iterable[Reference] = ()
) -> tuple:
    return (source, 0, deleted, "", tuple(references))


def _gates(placed: Placed) -> tuple[Gate, ...]:
    last = Gate(placed.arm.root)
    if placed.canary is None:
        return (last,)
    return (Gate(placed.canary.root, below=min(placed.below, BUCKETS - 1), salt=placed.salt), last)


def _body(placed: Placed | None) -> bytes | None:
    return None if placed is None else DeltaBody(_gates(placed)).encode()


def _head(name: str, placed: Placed | None, last_loss: int) -> DeltaHead:
    source = Source(API_PLACEMENT, WORKLOADS, "", name)
    body = _body(placed)
    head = DeltaHead(
        *_common(source, deleted=placed is None, references=(arm.root for arm in arms_of(placed))),
        body_hash=hashlib.sha256(body).digest() if body else b"",
        alternatives=placed.alternatives if placed else (),
        last_loss=last_loss,
    )
    return wire.replace(head, priority=placed.priority) if placed else head
