"""The records that travel down, signed: delta, profile, location, node, index, keys, ask.

The first five fields are the same in all kinds and never change, so that an older relay can pass on
what a newer one says (wire.md, "Records that are signed").
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from schemas import codec
from schemas.blobs import MANIFEST_CHUNK, OBJECT, Reference
from schemas.identity import DestinationId, KeyId, MailKey, NodePath, mail_key
from schemas.selectors import LabelSelector
from schemas.shape import ShapeError, from_array, to_array
from schemas.signing import Envelope, RecordKind

HINTED = frozenset({MANIFEST_CHUNK, OBJECT})
"""Kinds of content that a delta's head may name beside its manifests, which lead there anyway."""

API_PLACEMENT = "edge.kubestellar.io/EdgePlacement"
API_SYNC_TARGET = "edge.kubestellar.io/SyncTarget"
API_LOCATION = "edge.kubestellar.io/Location"
API_NODE = "leafcast.io/Node"
API_KEYS = "leafcast.io/Keys"
API_ASK = "leafcast.io/Ask"

BUCKETS = 10_000
CENTRE = NodePath()
OVER_LOCATION, OVER_SYNC_TARGET = "location", "synctarget"


@dataclass(frozen=True, slots=True)
class Source:
    """The clear key of a record: API kind, space id, namespace, name."""

    api: str
    space: str
    namespace: str
    name: str

    def __post_init__(self) -> None:
        if "\0" in self.api + self.space + self.namespace + self.name:
            raise ValueError("a NUL in a clear key could make it equal to another")

    @property
    def key(self) -> MailKey:
        return mail_key(self.api, self.space, self.namespace, self.name)


@dataclass(frozen=True, slots=True)
class Record:
    """What all signed payloads begin with."""

    source: Source
    generation: int
    # 16 hex characters: the start of the centre that issued it; none on a question.
    term: str
    trace: str
    references: tuple[Reference, ...]


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to be meant: a label selector over Locations or over the SyncTarget."""

    over: str
    selector: LabelSelector
    space: str = ""


@dataclass(frozen=True, slots=True)
class DeltaHead(Record):
    """A placement's desired state without its content; `body_hash` is empty if nothing follows."""

    body_hash: bytes
    alternatives: tuple[Alternative, ...]
    last_loss: int
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Gate:
    """Admits the destinations that match, and names the arm they get; no arm is a signed removal.

    Without selector and with `below` at BUCKETS it admits all, as the last gate of a delta does.
    """

    arm: Reference | None
    below: int = BUCKETS
    salt: str = ""
    over: str = OVER_SYNC_TARGET
    selector: LabelSelector | None = None

    @property
    def admits_all(self) -> bool:
        return self.selector is None and self.below >= BUCKETS


@dataclass(frozen=True, slots=True)
class DeltaBody:
    """Which content each destination gets: gates in order, and collectors' programs."""

    # All content that the gates and collectors lead to, and hints of it: the first field, so that
    # an older program finds it in a body that it does not understand.
    content: tuple[Reference, ...]
    gates: tuple[Gate, ...]
    collectors: tuple[Reference, ...] = ()
    # Reserved for sealed content.
    key: bytes = b""

    def encode(self) -> bytes:
        return codec.pack(to_array(self))


@dataclass(frozen=True, slots=True)
class Profile(Record):
    """One destination: who it is, what is known of it, and where it hangs now."""

    destination: DestinationId
    path: NodePath
    labels: Mapping[str, str] = field(hash=False)
    annotations: Mapping[str, str] = field(hash=False)
    properties: Mapping[str, str] = field(hash=False)


@dataclass(frozen=True, slots=True)
class LocationRecord(Record):
    """One Location; without instance selector it holds no SyncTarget."""

    labels: Mapping[str, str] = field(hash=False)
    annotations: Mapping[str, str] = field(hash=False)
    instance_selector: LabelSelector | None


@dataclass(frozen=True, slots=True)
class NodeRecord(Record):
    """A child that the parent of `path` serves; `nkey` is its public user key."""

    path: NodePath
    nkey: str


@dataclass(frozen=True, slots=True)
class KeyGrant:
    """A key (ed25519, 32 bytes), what it may sign, and for which generations; empty is any."""

    key_id: KeyId
    public_key: bytes
    kinds: tuple[str, ...]
    path: NodePath = CENTRE
    namespaces: tuple[str, ...] = ()
    object_kinds: tuple[str, ...] = ()
    first: int = 0
    last: int = 2**63 - 1

    def covers(self, kind: str, record: Record) -> bool:
        """Whether a record of this kind lies within the grant."""
        return (
            kind in self.kinds
            and self.first <= record.generation <= self.last
            and self._holds(record)
            and (not self.namespaces or record.source.namespace in self.namespaces)
            and (not self.object_kinds or record.source.api in self.object_kinds)
        )

    def _holds(self, record: Record) -> bool:
        """Whether the record lies within the path; a Location is bound by its inventory space."""
        where = getattr(record, "path", None)
        if where is None:
            return self.path.is_root or isinstance(record, LocationRecord)
        return self.path.holds(where)


@dataclass(frozen=True, slots=True)
class KeysRecord(Record):
    """The keys in force, signed by a root key."""

    grants: tuple[KeyGrant, ...]


@dataclass(frozen=True, slots=True)
class AskRecord(Record):
    """A question to the node at `path`, valid until `expires_ms`."""

    verb: str
    path: NodePath
    expires_ms: int
    arguments: Mapping[str, str] = field(hash=False)


RECORDS: Mapping[str, type[Record]] = {
    "delta": DeltaHead,
    "profile": Profile,
    "location": LocationRecord,
    "node": NodeRecord,
    "keys": KeysRecord,
    "ask": AskRecord,
}


class RecordRefused(ValueError):
    """A payload or body that does not say what its kind demands; `reason` names the place."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class BodyAltered(RecordRefused):
    """A body that is not the one its signed head names."""


def encode_payload(record: Record) -> bytes:
    return codec.pack(to_array(record))


def decode_payload(kind: RecordKind | str, payload: bytes) -> Record:
    """Read a payload of the kind; raises RecordRefused."""
    try:
        return from_array(RECORDS[kind], codec.unpack(payload), kind)
    except (ShapeError, codec.CodecError, KeyError) as error:
        raise RecordRefused(f"{kind}: {error}") from error


def decode_base(payload: bytes) -> Record:
    """Read only the fields that never change, of a record newer than this program."""
    try:
        return from_array(Record, codec.unpack(payload), "record")
    except (ShapeError, codec.CodecError) as error:
        raise RecordRefused(f"record: {error}") from error


def decode_body(head: DeltaHead, body: bytes) -> DeltaBody:
    """Read the body that the head names: hash, shape, a last gate that admits all."""
    if hashlib.sha256(body).digest() != head.body_hash:
        raise BodyAltered("delta: its body has another hash than its head names")
    try:
        decoded = from_array(DeltaBody, codec.unpack(body), "body")
    except (ShapeError, codec.CodecError) as error:
        raise RecordRefused(f"delta: {error}") from error
    if not decoded.gates or not decoded.gates[-1].admits_all:
        raise RecordRefused("delta: its last gate does not admit all")
    return decoded


def bucket(destination: DestinationId, salt: str) -> int:
    """Where a destination falls among BUCKETS: uniform, and the same for all who ask."""
    digest = hashlib.sha256(f"{salt}\0{destination}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % BUCKETS


def slot_term(key: MailKey, generation: int, envelope: Envelope) -> int:
    """What a slot that holds content adds to the mail digest, modulo DIGEST_MODULUS."""
    return digest_term(key, generation.to_bytes(8, "big") + envelope.payload_hash)


DIGEST_MODULUS = 2**128


def digest_term(key: str, rest: bytes) -> int:
    """The first 16 bytes of SHA-256(key NUL rest) as an integer (wire.md, "Mail digest")."""
    return int.from_bytes(hashlib.sha256(key.encode() + b"\0" + rest).digest()[:16], "big")
