"""A tree of the pure core in one process, without clock, bus or servers: for counts at scale.

Centre and regions are real nodes. Their edges are only as real as their mail and their reports, so
that what is measured is the relays' part. Node records and profiles of edges are what their
region finds in its store when it starts; the centre, which really holds them, too, has none. The
signatures of these are neither made nor checked, those of all else are.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from controllers.core.drafts import Draft
from controllers.core.index import index_draft
from relay.core import effects as fx
from relay.core import events as ev
from relay.core.node import Node
from relay.core.records.trust import Trust, Verdict
from relay.core.state import NodeConfig
from schemas import blobs
from schemas.chunks import build_manifest
from schemas.identity import (
    ContentHash,
    DestinationId,
    Generation,
    KeyId,
    MailKey,
    NodePath,
    TreeId,
    random_id,
)
from schemas.records import (
    API_KEYS,
    API_NODE,
    API_PLACEMENT,
    API_SYNC_TARGET,
    DIGEST_MODULUS,
    OVER_SYNC_TARGET,
    Alternative,
    DeltaBody,
    DeltaHead,
    Gate,
    KeyGrant,
    KeysRecord,
    NodeRecord,
    Profile,
    Source,
    digest_term,
    encode_payload,
)
from schemas.reports import Heartbeat, Report, SessionMessage, Summary, decode, encode
from schemas.selectors import LabelSelector
from schemas.signing import Envelope, Signer

TREE = TreeId(random_id(b"benchmark tree  "))
ROOT_KEY = Signer(TREE, KeyId(random_id(b"root key        ")), b"r" * 32)
SIGNING_KEY = Signer(TREE, KeyId(random_id(b"signing key     ")), b"s" * 32)
KINDS = ("delta", "profile", "location", "node", "index", "ask")
PATH = NodePath()
SESSION_SECONDS = 0.3


@contextmanager
def _unsigned_for_once() -> Iterator[None]:
    """Believe what a region finds in its own store: a million signatures would only take time."""
    honest = Trust.judge
    setattr(Trust, "judge", lambda *_: Verdict.BELIEVED)  # noqa: B010 - as a test would
    try:
        yield
    finally:
        setattr(Trust, "judge", honest)  # noqa: B010


@dataclass(slots=True)
class Traffic:
    """Messages and bytes that went up into one tier."""

    messages: int = 0
    size: int = 0
    """In bytes."""

    def add(self, data: bytes) -> None:
        self.messages += 1
        self.size += len(data)


class Host:
    """One relay: its node, its children's mail, and what it did last."""

    def __init__(self, tree: CoreTree, path: NodePath, kept: ev.Remembered) -> None:
        self.tree = tree
        self.path = path
        self.mail: dict[str, dict[MailKey, tuple[int, bytes]]] = {}
        self.last = 0
        self.edges_mail: dict[str, int] = {}
        self.edges_terms: dict[str, int] = {}
        config = NodeConfig(path, TREE, {ROOT_KEY.key_id: ROOT_KEY.public_key}, f"run{path}")
        self.node = Node(config, kept, (), tree.instant())
        self.tree.perform(self, self.node.start())

    def tell(self, event: ev.Event) -> None:
        self.tree.perform(self, self.node.handle(event, self.tree.instant()))

    def tick(self) -> None:
        due = self.node.deadline()
        if due is not None and due <= self.tree.now:
            self.tell(ev.Tick())


class CoreTree:
    """A centre, `regions` relays below it, and `edges` edges below each."""

    def __init__(self, regions: int, edges: int) -> None:
        self.begin(edges)
        grant = KeyGrant(SIGNING_KEY.key_id, SIGNING_KEY.public_key, KINDS)
        keys = KeysRecord(Source(API_KEYS, TREE, "", "keys"), 0, False, "", (), (grant,))  # noqa: FBT003
        self.keys = self._sealed(Draft("keys", keys), ROOT_KEY)
        self.hosts[PATH] = Host(self, PATH, ev.Remembered())
        self.issue(self.keys)
        draft, _ = index_draft(TREE, {}, 0)
        self.blobs |= draft.blobs
        self.issue(self._sealed(draft))
        for number in range(regions):
            self.add_node(NodePath((f"r{number}",)))
            self.add_region(NodePath((f"r{number}",)))

    def begin(self, edges: int) -> None:
        """Nothing is here yet."""
        self.now = 0.0
        self.blobs: dict[ContentHash, bytes] = {}
        self.up: dict[str, Traffic] = {"regions": Traffic(), "centre": Traffic()}
        self.placements: set[MailKey] = set()
        self.use("shop")
        self.hosts: dict[NodePath, Host] = {}
        self.arm = ""
        self.generation = 1_000
        self._revision = 0
        self._work: deque[tuple[Host, ev.Event]] = deque()
        self._busy = False
        self.edges = [f"s{number}" for number in range(edges)]

    @property
    def centre(self) -> Host:
        return self.hosts[PATH]

    def instant(self) -> ev.Instant:
        return ev.Instant(self.now, 1_750_000_000_000 + int(self.now * 1000))

    def add_node(self, path: NodePath) -> None:
        """Let the centre know of a region."""
        self.issue(self._sealed(self._node(path)))

    def add_region(self, path: NodePath) -> None:
        """Start a region that the centre knows of, with its edges in session."""
        kept = [ev.OwnRecord("_keys", self.keys, "", 0)]
        for name in self.edges:
            for draft in (self._node(path.child(name)), self._profile(path.child(name))):
                assert isinstance(draft.record, (NodeRecord, Profile))
                unsigned = self._sealed(draft, None)
                kept.append(ev.OwnRecord(draft.record.source.key, unsigned, "", 0))
        with _unsigned_for_once():
            host = self.hosts[path] = Host(self, path, ev.Remembered(own=tuple(kept)))
        host.tell(ev.LinkChanged(up=True))
        self.run(SESSION_SECONDS)
        for name in self.edges:
            host.tell(ev.HeartbeatArrived(name, self._in_session(host, name)))

    def _in_session(self, host: Host, name: str) -> bytes:
        """An edge's first heartbeat in its session: it has read all its mail, and holds no more."""
        digest = (host.edges_terms[name] % DIGEST_MODULUS).to_bytes(16, "big")
        run, read = f"run{host.path}", host.edges_mail[name]
        heartbeat = Heartbeat(
            1, run, read, digest, b"", b"", 0, has_memory=True, last_epoch=1, run=f"run {name}"
        )
        return encode(heartbeat)

    def issue(self, data: bytes) -> None:
        self.centre.tell(ev.Issued(data))

    def use(self, name: str) -> None:
        """The placement that changes and reports are of from now on."""
        self.source = Source(API_PLACEMENT, "workloads", "", name)
        self.key = self.source.key
        self.placements.add(self.key)

    def change(self) -> None:
        """A new generation of the placement, with new content."""
        stored = build_manifest(())
        manifest = stored[0]
        text = blobs.store(blobs.OBJECT, f"change {self.generation}".encode())
        for blob in (*stored, text):
            self.blobs |= blob.values
        self.arm = manifest.reference.address
        body = DeltaBody((Gate(manifest.reference),)).encode()
        head = DeltaHead(
            self.source,
            0,
            deleted=False,
            trace="",
            references=(manifest.reference, text.reference),
            body_hash=hashlib.sha256(body).digest(),
            alternatives=(Alternative(OVER_SYNC_TARGET, LabelSelector()),),
            last_loss=0,
        )
        self.issue(self._sealed(Draft("delta", head, body)))

    def reports(
        self, region: NodePath, names: Iterable[str], state: str, arm: str
    ) -> list[tuple[str, bytes]]:
        """What edges of a region say of the placement, by name."""
        host, said = self.hosts[region], []
        for name in names:
            self._revision += 1
            received_ms = 1_750_000_000_000 + self._revision
            summary = Summary({state: 1}, {"healthy": 1}, {arm: 1}, oldest_ms=received_ms)
            report = Report(
                key=self.key,
                part=0,
                epoch=1,
                revision=self._revision,
                generation=self.generation,
                incarnation=f"run{region}",
                answered=host.edges_mail.get(name, 0),
                gone=False,
                parts=0,
                summary=summary,
            )
            said.append((name, encode(report)))
        return said

    def arrive(self, region: NodePath, said: Iterable[tuple[str, bytes]]) -> None:
        """The reports come to the region."""
        host, up = self.hosts[region], self.up["regions"]
        for name, data in said:
            up.add(data)
            host.tell(ev.ReportArrived(name, str(self.key), data))

    def summary(self) -> Summary:
        return self.centre.node.summary(self.key)

    def run(self, seconds: float) -> None:
        """Let virtual time pass: windows end, reports go up."""
        self.now += seconds
        for host in list(self.hosts.values())[::-1]:
            host.tick()

    def perform(self, host: Host, effects: Iterable[fx.Effect]) -> None:
        for effect in effects:
            self._perform(host, effect)
        if self._busy:
            return
        self._busy = True
        while self._work:
            told, event = self._work.popleft()
            told.tell(event)
        self._busy = False

    def _perform(self, host: Host, effect: fx.Effect) -> None:
        parent = self.hosts.get(host.path.parent) if not host.path.is_root else None
        match effect:
            case fx.WriteMail():
                self._written(host, effect)
            case fx.LoadBlob():
                value = self.blobs[effect.reference.address]
                arrived = ev.BlobArrived(effect.reference, value, local=False)
                self._work.append((host, arrived))
            case fx.SendHeartbeat() if parent is not None:
                self._work.append((parent, ev.HeartbeatArrived(host.path.name, effect.data)))
            case fx.SendReport() if parent is not None:
                if effect.key in self.placements:
                    self.up["centre"].add(effect.data)
                self._work.append(
                    (parent, ev.ReportArrived(host.path.name, effect.key, effect.data))
                )
            case fx.SendSession():
                child = self.hosts.get(host.path.child(effect.child))
                if child is not None:
                    said = decode(SessionMessage, effect.data)
                    self._work.append((child, ev.SessionArrived(said)))
            case fx.ResetMail() if parent is not None:
                slots = parent.mail[host.path.name].items()
                kept = sorted((at, key, data) for key, (at, data) in slots)
                for place, (at, key, data) in enumerate(kept):
                    mail = ev.MailArrived(at, key, data, len(kept) - place - 1)
                    self._work.append((host, mail))
            case _:
                pass

    def _written(self, host: Host, write: fx.WriteMail) -> None:
        host.last += 1
        child = self.hosts.get(host.path.child(write.child))
        if host.path.is_root:
            host.mail.setdefault(write.child, {})[write.key] = (host.last, write.data)
        if child is not None:
            self._work.append((child, ev.MailArrived(host.last, write.key, write.data, 0)))
        else:
            host.edges_mail[write.child] = host.last
            if write.has_body and write.key not in self.placements:
                rest = write.generation.to_bytes(8, "big") + write.payload_hash
                former = host.edges_terms.get(write.child, 0)
                host.edges_terms[write.child] = former + digest_term(write.key, rest)
        said = ev.MailWritten(write.child, write.key, write.generation, host.last)
        self._work.append((host, said))

    def _sealed(self, draft: Draft, signer: Signer | None = SIGNING_KEY) -> bytes:
        self.generation += 1
        record = draft.stamped(Generation(self.generation))
        if signer is None:
            return Envelope(draft.kind, SIGNING_KEY.key_id, encode_payload(record), b"").encode()
        return signer.seal(draft.kind, encode_payload(record), draft.body).encode()

    def _node(self, path: NodePath) -> Draft:
        source = Source(API_NODE, TREE, "", str(path))
        record = NodeRecord(source, 0, False, "", (), path, f"nkey{path}")  # noqa: FBT003
        return Draft("node", record)

    def _profile(self, path: NodePath) -> Draft:
        name = "-".join(path.names)
        source = Source(API_SYNC_TARGET, "inventory", "", name)
        labels = {"region": path.names[0]}
        who = DestinationId(f"inventory-mb-{name}")
        return Draft(
            "profile",
            Profile(source, 0, False, "", (), who, path, labels, {}, {}),  # noqa: FBT003
        )
