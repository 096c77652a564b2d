"""The records that travel down, signed: delta, profile, location, node, keys, ask.

The first four fields are the same in all kinds and never change, so that an older relay can pass on
what a newer one says (protocol.md, "Records that are signed").
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final, Literal

from schemas.content.blobs import CUSTOMIZER, MANIFEST_CHUNK, OBJECT, TEMPLATE, Reference
from schemas.objects.selectors import LabelSelector
from schemas.records.release_body import ReleaseBody
from schemas.records.signing import RecordKind
from schemas.records.windows import Window
from schemas.values.identity import DestinationId, KeyId, MailKey, NodePath, mail_key
from schemas.values.refusals import BodyAltered, RecordRefused
from schemas.values.wire import Natural, WireRecord, decode, encode

HINTED = frozenset({MANIFEST_CHUNK, OBJECT, TEMPLATE, CUSTOMIZER})
"""Kinds of content that a delta's head may name beside its manifests, which lead there anyway."""

API_SYNC_TARGET = "edge.kubestellar.io/SyncTarget"
API_LOCATION = "edge.kubestellar.io/Location"
API_NODE = "leafcast.io/Node"
API_KEYS = "leafcast.io/Keys"
API_ASK = "leafcast.io/Ask"
API_RELEASE = "leafcast.io/LeafcastRelease"

BUCKETS = 10_000
DEPENDENCIES_MAX = 16
GATE_NAME_MAX_BYTES = 32
WINDOWS_MAX = 20
CENTRE = NodePath()
GRANTS_MAX, ROOTS_MAX, ROOT_KEY_BYTES = 64, 16, 32
_TERM = re.compile(r"[0-9a-f]{16}\Z")
Over = Literal["location", "synctarget"]
OVER_LOCATION: Final = "location"
OVER_SYNC_TARGET: Final = "synctarget"
OVER_NODES: Final = "nodes"


class Source(WireRecord, frozen=True):
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


class Record(WireRecord, frozen=True):
    """What all signed payloads begin with; `term` is 16 hex digits, empty in an ask."""

    source: Source
    generation: Natural
    term: str
    trace: str

    def __post_init__(self) -> None:
        if self.term and not _TERM.match(self.term):
            raise ValueError("its term is not 16 hex digits")


class Alternative(WireRecord, frozen=True):
    """One way to be meant: a label selector over Locations or over the SyncTarget."""

    over: Over
    selector: LabelSelector
    space: str = ""

    def selects(self, space: str, labels: Mapping[str, str]) -> bool:
        """Whether a SyncTarget or Location, whichever it is over, is selected."""
        return self.admits_space(space) and self.selector.matches(labels)

    def admits_space(self, space: str) -> bool:
        """Whether it is about what this inventory space holds."""
        return self.space in ("", space)


class DeltaHead(Record, frozen=True):
    """A placement's desired state without its content; `body_hash` is empty if nothing follows."""

    body_hash: bytes
    alternatives: tuple[Alternative, ...]
    last_loss: Natural
    # Under a rollout the generation with which that began: what was reported of it or a later one
    # counts as it says. 0 is no rollout.
    rollout_since: Natural = 0

    @property
    def is_gated(self) -> bool:
        """Whether its objects go at each destination no further than its gates."""
        return self.rollout_since > 0


class Gate(WireRecord, frozen=True):
    """Admits the destinations that match, and names the arm they get; no arm is a signed removal.

    With the defaults it admits all, as the last gate of a delta does.
    """

    arm: Reference | None
    below: Natural = BUCKETS
    salt: str = ""
    over: Over = OVER_SYNC_TARGET
    selector: LabelSelector | None = None
    # Of the wave: `<revision>.<place of the wave>`; empty for what is none.
    name: str = ""
    # Admits only at or below it.
    path: NodePath = CENTRE
    # Open if any is; without windows always. Outside of them it admits only who has its arm
    # already.
    windows: tuple[Window, ...] = ()

    def __post_init__(self) -> None:
        if len(self.name.encode()) > GATE_NAME_MAX_BYTES or "/" in self.name:
            said = f'gate name "{self.name[:GATE_NAME_MAX_BYTES]}" has a /, or is too long'
            raise ValueError(f"{said}; write at most {GATE_NAME_MAX_BYTES} bytes without /")
        if len(self.windows) > WINDOWS_MAX:
            raise ValueError(f"{len(self.windows)} windows of one gate, at most {WINDOWS_MAX}")

    @property
    def revision(self) -> int:
        """The number of the revision whose wave it is; 0 if it is none."""
        number = self.name.partition(".")[0]
        return int(number) if number.isascii() and number.isdecimal() else 0

    @property
    def admits_all(self) -> bool:
        """Whether there is nobody whom it could turn away."""
        bound = self.selector is not None or not self.path.is_root or bool(self.windows)
        return self.below >= BUCKETS and not bound


class Dependency(WireRecord, frozen=True):
    """A placement of one's own kind and space that is waited for, and for whom it is meant."""

    name: str
    # Older content of it does not count.
    generation: Natural
    alternatives: tuple[Alternative, ...]

    def key(self, waiting: Source) -> MailKey:
        """The key of that placement, for the one that waits."""
        return mail_key(waiting.api, waiting.space, waiting.namespace, self.name)


class DeltaBody(WireRecord, frozen=True):
    """Which content each destination gets: gates in order, and collectors' programs."""

    # All content that the gates and collectors lead to, and hints of it: the first field, so that
    # an older program finds it in a body that it does not understand.
    content: tuple[Reference, ...]
    gates: tuple[Gate, ...]
    collectors: tuple[Reference, ...] = ()
    # Of what is sealed: the placement's keys under a fleet key, and its id; ignored by relays.
    key: bytes = b""
    # New content waits at each destination until what these have for it is healthy there.
    after: tuple[Dependency, ...] = ()

    def __post_init__(self) -> None:
        if len(self.after) > DEPENDENCIES_MAX:
            raise ValueError(f"it waits for {len(self.after)}, at most {DEPENDENCIES_MAX}")

    def encode(self) -> bytes:
        return encode(self)


class TakenArms(WireRecord, frozen=True):
    """At an edge, in OWN: the arms that it took of each placement with windows, by name."""

    arms: Mapping[MailKey, tuple[str, ...]]


class History(WireRecord, frozen=True):
    """At the centre, in OWN: former contents of one placement that stay in the store."""

    references: tuple[Reference, ...]
    # What its space wanted when a revision was aborted or undone, and what goes out of that.
    rejected: tuple[Reference, ...] = ()

    def __post_init__(self) -> None:
        if len(self.rejected) not in (0, 2):
            raise ValueError(f"{len(self.rejected)} contents, where there are none or two")


class FormerRollout(WireRecord, frozen=True):
    """At the centre, in OWN: what is known of the Rollout that a placement had."""

    # Whether someone was seen to delete it, and the placement stayed as it was.
    deleted: bool = False
    # Whether the annotation that lets the placement go counted already.
    released: bool = False


class SpaceMark(WireRecord, frozen=True):
    """At the centre, in OWN: how far a workload description space was known."""

    # The number of its revision.
    revision: Natural
    # Whether it was older than that since, and something that it had is missing still.
    rolled_back: bool = False
    # Whether what it shows may be older, too, and something of that waits for a person still.
    fell_back: bool = False


INVENTORY_MARK = ".inventory"
"""Behind the identity of a space, which is known for its workloads and for its inventory."""


def space_key(identity: str) -> MailKey:
    """Under which the ledger notes the mark of a space."""
    return Source("", identity, "", "").key


class FirstSession(WireRecord, frozen=True):
    """At a parent, in OWN: the keys with which a child came first by a bundle.

    A former release wrote it; it is read for one release more.
    """

    nkey: str


class Away(WireRecord, frozen=True):
    """At a parent, in OWN: a child that is silent or has left."""

    # Since when, ms since 1970.
    since_ms: Natural
    # Whether it stopped in good order.
    left: bool


class Profile(Record, frozen=True):
    """One destination: who it is, what is known of it, and where it hangs now."""

    destination: DestinationId
    path: NodePath
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    properties: Mapping[str, str]
    # X25519 keys of its node, and for each a box with the fleet keys.
    public_key: bytes = b""
    fleet_key: bytes = b""


class LocationHead(Record, frozen=True):
    """A Location without what it says: whom it selects; without selector that is nobody."""

    body_hash: bytes
    instance_selector: LabelSelector | None


class LocationBody(WireRecord, frozen=True):
    """What a Location says of all that belong to it."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]


class LocationRecord(Record, frozen=True):
    """One Location: the head that is signed, together with the body that it names."""

    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    instance_selector: LabelSelector | None

    @property
    def body(self) -> bytes:
        """What its message carries beside what is signed."""
        return encode(LocationBody(self.labels, self.annotations))

    @property
    def head(self) -> LocationHead:
        """What is signed."""
        hashed = hashlib.sha256(self.body).digest()
        base = self.source, self.generation, self.term, self.trace
        return LocationHead(*base, hashed, self.instance_selector)


class NodeRecord(Record, frozen=True):
    """A child that the parent of `path` serves; `nkey` is its public user key."""

    path: NodePath
    nkey: str
    # Until when a former release's bundle was good (ms since 1970). Nobody writes it any more; if
    # it is not 0, only who came by the bundle in time is let in.
    until_ms: Natural = 0


class KeyGrant(WireRecord, frozen=True):
    """A key (ed25519, 32 bytes), what it may sign, and for which generations; empty is any."""

    key_id: KeyId
    public_key: bytes
    kinds: tuple[str, ...]
    path: NodePath = CENTRE
    namespaces: tuple[str, ...] = ()
    object_kinds: tuple[str, ...] = ()
    first: Natural = 0
    last: Natural = 2**63 - 1

    @property
    def is_revoked(self) -> bool:
        """Whether it is listed only to say that it may sign nothing any more."""
        return not self.kinds

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
            return self.path.is_root or isinstance(record, LocationRecord | LocationHead)
        return self.path.holds(where)


class RootKey(WireRecord, frozen=True):
    """A key (ed25519, 32 bytes) that signs `keys` records."""

    key_id: KeyId
    public_key: bytes


class KeysRecord(Record, frozen=True):
    """The keys in force, and whose signatures the next such record needs."""

    grants: tuple[KeyGrant, ...]
    # Without any they are those that were pinned.
    roots: tuple[RootKey, ...] = ()
    threshold: Natural = 1
    # That of the roots: one more at each change of them.
    version: Natural = 1

    @property
    def revoked(self) -> frozenset[KeyId]:
        """The keys that are listed as revoked."""
        return frozenset(grant.key_id for grant in self.grants if grant.is_revoked)

    def __post_init__(self) -> None:
        Record.__post_init__(self)
        if len(self.grants) > GRANTS_MAX or len(self.roots) > ROOTS_MAX:
            raise ValueError(f"more than {GRANTS_MAX} keys that sign, or {ROOTS_MAX} roots")
        if len({grant.key_id for grant in self.grants}) < len(self.grants):
            raise ValueError("a key is granted twice")
        if not self.roots:
            return
        # Who has one key under two names would be counted twice.
        for said in ("key_id", "public_key"):
            if len({getattr(root, said) for root in self.roots}) < len(self.roots):
                raise ValueError("a root is named twice")
        if any(len(root.public_key) != ROOT_KEY_BYTES for root in self.roots):
            raise ValueError(f"a root key has {ROOT_KEY_BYTES} bytes")
        if not 1 <= self.threshold <= len(self.roots) or not self.version:
            raise ValueError("its threshold is not from 1 to the number of roots")


class ReleaseHead(Record, frozen=True):
    """A release of Leafcast without what it is made of.

    It is a delta that programs without releases cannot read: so they pass it on to all children.
    """

    body_hash: bytes
    over: Literal["nodes"]


class ReleaseRecord(Record, frozen=True):
    """A release of Leafcast: the head that is signed, together with the body that it names."""

    release: ReleaseBody

    @property
    def body(self) -> bytes:
        """What its message carries beside what is signed."""
        return self.release.encode()

    @property
    def head(self) -> ReleaseHead:
        """What is signed."""
        base = self.source, self.generation, self.term, self.trace
        return ReleaseHead(*base, hashlib.sha256(self.body).digest(), OVER_NODES)


class AskRecord(Record, frozen=True):
    """A question to the node at `path`, valid until `expires_ms`; its answer is sealed to a key."""

    verb: str
    path: NodePath
    expires_ms: Natural
    arguments: Mapping[str, str]
    answer_key: bytes = b""


RECORDS: Mapping[str, type[Record]] = {
    "delta": DeltaHead,
    "profile": Profile,
    "location": LocationHead,
    "node": NodeRecord,
    "keys": KeysRecord,
    "ask": AskRecord,
}


def encode_payload(record: Record) -> bytes:
    """What is signed of a record."""
    return encode(record.head if isinstance(record, LocationRecord | ReleaseRecord) else record)


def body_of(record: Record) -> bytes | None:
    """What a record that is whole in memory carries beside what is signed."""
    return record.body if isinstance(record, LocationRecord | ReleaseRecord) else None


def decode_payload(kind: RecordKind | str, payload: bytes) -> Record:
    """Read a payload of the kind; raises RecordRefused."""
    if kind not in RECORDS:
        raise RecordRefused(f"unknown kind {kind!r}")
    try:
        return decode(RECORDS[kind], payload, name=kind)
    except RecordRefused:
        if kind != "delta" or decode_base(payload).source.api != API_RELEASE:
            raise
    return decode(ReleaseHead, payload, name="release")


def decode_base(payload: bytes) -> Record:
    """Read only the fields that never change, of a record newer than this program."""
    return decode(Record, payload, name="record")


def decode_body(head: DeltaHead, body: bytes) -> DeltaBody:
    """Read the body that the head names: hash, shape, a last gate that admits all."""
    _check_body("delta", head.body_hash, body)
    decoded = decode(DeltaBody, body, name="body")
    if not decoded.gates or not decoded.gates[-1].admits_all:
        raise RecordRefused("delta: its last gate does not admit all")
    return decoded


def decode_record(kind: str, payload: bytes, body: bytes | None) -> Record:
    """Read a payload; that of a Location or release together with the body that it names.

    Raises RecordRefused.
    """
    head = decode_payload(kind, payload)
    if not isinstance(head, LocationHead | ReleaseHead) or body is None:
        return head
    _check_body(kind, head.body_hash, body)
    base = head.source, head.generation, head.term, head.trace
    if isinstance(head, ReleaseHead):
        return ReleaseRecord(*base, decode(ReleaseBody, body, name="body"))
    said = decode(LocationBody, body, name="body")
    return LocationRecord(*base, said.labels, said.annotations, head.instance_selector)


def _check_body(kind: str, body_hash: bytes, body: bytes) -> None:
    if hashlib.sha256(body).digest() != body_hash:
        raise BodyAltered(f"{kind}: its body has another hash than its head names")


def bucket(destination: DestinationId, salt: str) -> int:
    """Where a destination falls among BUCKETS: uniform, and the same for all who ask."""
    digest = hashlib.sha256(f"{salt}\0{destination}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % BUCKETS


def slot_term(key: MailKey, generation: int, payload_hash: bytes) -> int:
    """What a slot that holds content adds to the mail digest, modulo DIGEST_MODULUS."""
    return digest_term(key, generation.to_bytes(8, "big") + payload_hash)


DIGEST_MODULUS = 2**128


def digest_term(key: str, rest: bytes) -> int:
    """The first 16 bytes of SHA-256(key NUL rest) as an integer (protocol.md, "Mail digest")."""
    return int.from_bytes(hashlib.sha256(key.encode() + b"\0" + rest).digest()[:16], "big")
