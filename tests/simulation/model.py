"""What users want, and the records that say it: the truth that the oracle compares with."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from controllers.core.ledger.ledger import Draft
from schemas.content import blobs
from schemas.content.blobs import Reference, StoredBlob
from schemas.content.manifest import TEMPLATE, ManifestEntry
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.records.maintenance import MAINTENANCE, Maintenance
from schemas.records.moves import MOVED_ANNOTATION, former_paths
from schemas.records.placements import bare_name, kind_of
from schemas.records.records import (
    API_LOCATION,
    API_NODE,
    BUCKETS,
    CENTRE,
    Alternative,
    DeltaBody,
    DeltaHead,
    Dependency,
    Gate,
    KeyGrant,
    NodeRecord,
    Source,
)
from schemas.records.roots import Roots
from schemas.records.signed_records import EncodedBody
from schemas.records.signing import Signer
from schemas.records.windows import Window
from schemas.values.identity import (
    DestinationId,
    KeyId,
    MailKey,
    NodePath,
    TreeId,
    destination_id,
    random_id,
)
from tests.simulation.collectors import programs_over
from tests.simulation.sealing import TREE, marked, wrapped
from tests.simulation.signatures import public_key_of

ROOT_KEY = Signer(TREE, KeyId(random_id(b"root key        ")), b"r" * 32)
SIGNING_KEY = Signer(TREE, KeyId(random_id(b"signing key     ")), b"s" * 32)
ROOTS = Roots({ROOT_KEY.key_id: public_key_of(ROOT_KEY)})
INVENTORY_KEY = Signer(TREE, KeyId(random_id(b"inventory key   ")), b"i" * 32)
SCOPED = KeyGrant(
    INVENTORY_KEY.key_id, public_key_of(INVENTORY_KEY), ("profile",), path=NodePath(("x",))
)
"""May sign profiles below a path that nobody has."""
OTHER_TREE = TreeId(random_id(b"another tree    "))
INVENTORY, WORKLOADS = "inventory", "workloads"
LABELS: dict[str, tuple[str, ...]] = {"env": ("prod", "dev"), "tier": ("a", "b", "c")}
TIERS: tuple[str | None, ...] = (*LABELS["tier"], None)


@dataclass(frozen=True)
class Target:
    """A SyncTarget: who it is, where it hangs and what it says of where it hung, and its labels."""

    name: str
    path: NodePath
    labels: tuple[tuple[str, str], ...]
    moved_from: str = ""
    # Until when a person works there, ms since 1970; 0 is no maintenance.
    maintenance_ms: int = 0
    # Which object says it.
    uid: str = ""

    @property
    def annotations(self) -> dict[str, str]:
        until = {MAINTENANCE: Maintenance(self.maintenance_ms).until} if self.maintenance_ms else {}
        return {**({MOVED_ANNOTATION: self.moved_from} if self.moved_from else {}), **until}

    @property
    def former(self) -> tuple[NodePath, ...]:
        """Where it hung before."""
        return former_paths(self.annotations)

    @property
    def destination(self) -> DestinationId:
        return destination_id(INVENTORY, self.uid)


@dataclass(frozen=True)
class Located:
    """A Location: its labels, and which SyncTargets belong to it."""

    labels: tuple[tuple[str, str], ...]
    instances: LabelSelector | None


@dataclass(frozen=True)
class Content:
    """One version of an object: its source and revision there, its address, and where it lies."""

    space: str
    revision: int
    reference: Reference
    sealed: Reference


@dataclass(frozen=True)
class Arm:
    """What some of a placement's destinations get: its manifest, and the contents by object.

    It is sealed under the key of a placement after so many `changes` of that.
    """

    root: Reference
    contents: tuple[tuple[ObjectKey, Content], ...]
    changes: int = 0


@dataclass(frozen=True)
class Rung:
    """One gate of a rollout: who gets an arm there, and in which wave that is."""

    arm: Arm
    wave: str = ""
    below: int = BUCKETS
    selector: LabelSelector | None = None
    path: NodePath = CENTRE
    windows: tuple[Window, ...] = ()


@dataclass(frozen=True)
class Placed:
    """A placement in force: who is meant, and which arm they get.

    Under a rollout the first rung that admits a destination names its arm, `arm` is the oldest,
    and `rollout_since` the generation with which the rollout began.
    """

    alternatives: tuple[Alternative, ...]
    arm: Arm
    salt: str = ""
    after: tuple[Dependency, ...] = ()
    rungs: tuple[Rung, ...] = ()
    # In which wave they are whom no rung admits; without one it is under no rollout.
    wave: str = ""
    rollout_since: int = 0

    @property
    def is_rolled(self) -> bool:
        """Whether it is under a rollout."""
        return bool(self.wave or self.rollout_since)


@dataclass
class Model:
    """What is wanted now."""

    targets: dict[str, Target] = field(default_factory=dict)
    locations: dict[str, Located] = field(default_factory=dict)
    placements: dict[str, Placed] = field(default_factory=dict)
    nodes: dict[NodePath, str] = field(default_factory=dict)
    # How often the fleet key changed, as deltas need it.
    rotations: int = 0
    # How often a placement got another key on its own.
    key_changes: dict[str, int] = field(default_factory=dict)


@dataclass
class Past:
    """All that was ever wanted, in every version."""

    targets: dict[NodePath, list[Target]] = field(default_factory=dict)
    locations: dict[str, list[Located]] = field(default_factory=dict)
    placements: dict[str, list[Placed]] = field(default_factory=dict)


def manifest_entry(key: ObjectKey, content: Content) -> ManifestEntry:
    return ManifestEntry(
        group=key.group,
        resource=key.resource,
        namespace=key.namespace,
        name=key.name,
        address=content.sealed.address,
        size=content.sealed.size,
        space=content.space,
        revision=content.revision,
        flags=TEMPLATE if content.reference.kind == blobs.TEMPLATE else 0,
        mark=marked(content.reference),
    )


def node_draft(path: NodePath, nkey: str) -> Draft:
    source = Source(API_NODE, TREE, "", str(path))
    return Draft("node", NodeRecord(*_common(source), path=path, nkey=nkey))


def location_key(name: str) -> MailKey:
    return Source(API_LOCATION, INVENTORY, "", name).key


def placement_draft(
    name: str, placed: Placed, model: Model, *, loses: bool = False, last_loss: int = 0
) -> Draft:
    changes = model.key_changes.get(name, 0)
    body = _body(placed, wrapped(placement_key(name), model.rotations, changes))
    return Draft("delta", _head(name, placed, body, last_loss), body, loses=loses)


def all_drafts(model: Model) -> Iterator[Draft]:
    """All that a model wants in force beside its inventory."""
    for path, nkey in model.nodes.items():
        yield node_draft(path, nkey)
    for name, placed in model.placements.items():
        yield placement_draft(name, placed, model)


def placement_key(name: str) -> MailKey:
    return source_of(name).key


def source_of(name: str) -> Source:
    """The source of a placement, by its name with its kind."""
    return Source(kind_of(name).api, WORKLOADS, "", bare_name(name))


def arms_of(placed: Placed | None) -> list[Arm]:
    if placed is None:
        return []
    return [*(rung.arm for rung in placed.rungs), placed.arm]


def keys_of(placed: Placed | None, *, common: bool = False) -> set[ObjectKey]:
    """Objects in some arm, or in all of them."""
    found = [{key for key, _ in arm.contents} for arm in arms_of(placed)]
    if not found:
        return set()
    return set.intersection(*found) if common else set.union(*found)


def programs_of(placed: Placed) -> StoredBlob | None:
    """What is collected of a placement: of all that its last arm has."""
    return programs_over({key: content.revision for key, content in placed.arm.contents})


def _common(source: Source) -> tuple[Source, int, str, str]:
    return (source, 0, "", "")


def _gates(placed: Placed) -> tuple[Gate, ...]:
    newer = (_gate(rung, placed.salt) for rung in placed.rungs)
    return (*newer, Gate(placed.arm.root, name=placed.wave))


def _gate(rung: Rung, salt: str) -> Gate:
    return Gate(
        rung.arm.root,
        below=rung.below,
        salt=salt,
        selector=rung.selector,
        name=rung.wave,
        path=rung.path,
        windows=rung.windows,
    )


def _body(placed: Placed, key: bytes) -> EncodedBody:
    roots = dict.fromkeys(arm.root for arm in arms_of(placed))
    programs = programs_of(placed)
    collectors = () if programs is None else (programs.reference,)
    content = (*roots, *collectors)
    body = DeltaBody(content, _gates(placed), collectors, key, placed.after)
    return EncodedBody.of(body)


def _head(name: str, placed: Placed, body: EncodedBody, last_loss: int) -> DeltaHead:
    return DeltaHead(
        *_common(source_of(name)),
        body_hash=hashlib.sha256(body.data).digest(),
        alternatives=placed.alternatives,
        last_loss=last_loss,
        rollout_since=placed.rollout_since,
    )
