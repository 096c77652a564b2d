"""What users want, and the records that say it: the truth that the oracle compares with."""

from __future__ import annotations

from dataclasses import dataclass, field

from controllers.core.ledger.ledger import Draft
from schemas.content import blobs
from schemas.content.blobs import Reference
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
    KeyGrant,
    NodeRecord,
    Source,
)
from schemas.records.roots import Roots
from schemas.records.signing import Signer
from schemas.values.identity import (
    DestinationId,
    KeyId,
    MailKey,
    NodePath,
    TreeId,
    destination_id,
    random_id,
)
from tests.simulation.sealing import TREE, marked
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
    """One version of an object: its source and revision there, and its address in clear."""

    space: str
    revision: int
    reference: Reference


@dataclass(frozen=True)
class Arm:
    """What some of a placement's destinations get: its manifest, and the contents by object."""

    root: Reference
    contents: tuple[tuple[ObjectKey, Content], ...]


@dataclass(frozen=True)
class Rung:
    """One gate of a rollout: who gets an arm there, and in which wave that is."""

    arm: Arm
    wave: str = ""
    below: int = BUCKETS
    selector: LabelSelector | None = None
    path: NodePath = CENTRE


@dataclass(frozen=True)
class Placed:
    """A placement in force: who is meant, and which arm they get.

    Under a rollout the first rung that admits a destination names its arm, `arm` is the oldest,
    and `rollout_since` the generation with which the rollout began.
    """

    alternatives: tuple[Alternative, ...]
    arm: Arm
    salt: str = ""
    # Those of the same kind that it waits for, by their bare names; and whether it makes before it
    # breaks.
    after: tuple[str, ...] = ()
    moves: bool = False
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
        address=content.reference.address,
        size=content.reference.size,
        space=content.space,
        revision=content.revision,
        flags=TEMPLATE if content.reference.kind == blobs.TEMPLATE else 0,
        mark=marked(content.reference),
    )


def node_draft(path: NodePath, nkey: str) -> Draft:
    source = Source(API_NODE, TREE, "", str(path))
    return Draft("node", NodeRecord(source, 0, "", "", path=path, nkey=nkey))


def location_key(name: str) -> MailKey:
    return Source(API_LOCATION, INVENTORY, "", name).key


def placement_key(name: str) -> MailKey:
    """The mail key of a placement, by its name with its kind."""
    return Source(kind_of(name).api, WORKLOADS, "", bare_name(name)).key


def arms_of(placed: Placed) -> list[Arm]:
    return [*(rung.arm for rung in placed.rungs), placed.arm]


def keys_of(placed: Placed) -> set[ObjectKey]:
    """Objects in some arm."""
    return {key for arm in arms_of(placed) for key, _ in arm.contents}
