"""A tree of the pure core in one process, without clock, bus or servers: for counts at scale.

Centre and regions are real nodes. Their edges are only as real as their mail and their reports, so
that what is measured is the relays' part. Node records and profiles of edges are what centre and
regions find in their stores when they start; the signatures of these are neither made nor checked,
those of all else are.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

from controllers.core.access.keys import KeyChange, KeyRing, changed_record, completed, request_of
from controllers.core.ledger.ledger import Draft, values_of
from controllers.core.ledger.start import StoredLedger
from relay.core import effects as fx
from relay.core import events as ev
from relay.core.collectors.ports import Evaluator
from relay.core.config import NodeConfig
from relay.core.instant import Instant
from relay.core.node import Node
from relay.core.records.trust import Trust, TrustVerdict
from relay.core.reports.digest import digest_bytes, report_term, run_number
from schemas.content import blobs
from schemas.content.blobs import Reference, StoredBlob
from schemas.content.manifest import build_manifest
from schemas.objects.selectors import LabelSelector
from schemas.records.records import (
    API_NODE,
    API_SYNC_TARGET,
    OVER_SYNC_TARGET,
    Alternative,
    DeltaBody,
    DeltaHead,
    Gate,
    NodeRecord,
    Profile,
    Source,
    encode_payload,
)
from schemas.records.roots import Roots
from schemas.records.signed_records import EncodedBody, SignedRecord
from schemas.records.signing import Envelope, Signer
from schemas.reports.link import Cursor, Hello, Progress, Welcome
from schemas.reports.reports import Count, Report, Summary
from schemas.values.groups import API_PLACEMENT
from schemas.values.identity import (
    KEYS_KEY,
    SNAPSHOT_KEY,
    ContentHash,
    DestinationId,
    Generation,
    KeyId,
    MailKey,
    NodePath,
    TreeId,
    random_id,
)
from schemas.values.subjects import CURSOR_KEY, PROGRESS_KEY
from schemas.values.wire import decode, encode

TREE = TreeId(random_id(b"benchmark tree  "))
ROOT_KEY = Signer(TREE, KeyId(random_id(b"root key        ")), b"r" * 32)
SIGNING_KEY = Signer(TREE, KeyId(random_id(b"signing key     ")), b"s" * 32)
PATH = NodePath()
TERM = "00" * 8
ABOVE_ALL = Generation(2**62)
"""Of records that no snapshot here lists: they are newer."""
FIRST, SECOND = ContentHash("1" * 64), ContentHash("2" * 64)
"""Two arms that every placement has."""
SESSION_SECONDS = 0.3


@contextmanager
def _unsigned_for_once() -> Iterator[None]:
    """Believe what a node finds in its own store: a million signatures would only take time."""
    honest = Trust.recalls
    setattr(Trust, "recalls", lambda *_: TrustVerdict.BELIEVED)  # noqa: B010 - as a test would
    try:
        yield
    finally:
        setattr(Trust, "recalls", honest)  # noqa: B010


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
        self.run = f"run{path}"
        self.mail: dict[str, dict[MailKey, tuple[int, bytes]]] = {}
        self.last = 0
        # Where each child's mailbox ends.
        self.ends: dict[str, int] = {}
        # By edge the sum of its reports' terms.
        self.said: dict[str, int] = {}
        config = NodeConfig(path, TREE, Roots({ROOT_KEY.key_id: ROOT_KEY.public_key}), self.run)
        with _unsigned_for_once():
            self.node = Node(config, kept, (), tree.instant(), tree.evaluator())
        tree.hosts[path] = self
        self.tree.perform(self, self.node.start())

    def tell(self, event: ev.Event) -> None:
        self.tree.perform(self, self.node.handle((event,), self.tree.instant()))

    def tick(self) -> None:
        due = self.node.deadline()
        if due is not None and due <= self.tree.now:
            self.tell(ev.Tick())


class CoreTree:
    """A centre, `regions` relays below it, and `edges` edges below each."""

    records: dict[NodePath, bytes]

    def __init__(self, regions: int, edges: int) -> None:
        self.begin(edges)
        self.issuer = StoredLedger().begin(TERM, SIGNING_KEY, self.instant())
        paths = [NodePath((f"r{number}",)) for number in range(regions)]
        stored = [own for path in paths for own in self._inventory(path)]
        Host(self, PATH, ev.Remembered(own=tuple(stored)))
        self.keys = self._issue_keys()
        self.sign()
        self.records = {path: self.issue(self._node(path)) for path in paths}
        self.add_regions(paths)

    def begin(self, edges: int) -> None:
        """Nothing is here yet."""
        self.now = 0.0
        self.blobs: dict[ContentHash, bytes] = {}
        self.up: dict[str, Traffic] = {"regions": Traffic(), "centre": Traffic()}
        self.placements: set[MailKey] = set()
        self.use("shop")
        self.hosts: dict[NodePath, Host] = {}
        self.arm = ""
        # Of the placements' records.
        self.generations: dict[MailKey, int] = {}
        # The centre's keys and newest snapshot, and regions' node records, as they are signed.
        self.keys = self.snapshot = b""
        self.reached = 0
        self.records = {}
        self._revision = 0
        # By region and placement, and by edge where it is another, what was reported last.
        self._revisions: dict[tuple[NodePath, str, MailKey], int] = {}
        self._work: deque[tuple[Host, ev.Event]] = deque()
        self._busy = False
        self.edges = [f"s{number}" for number in range(edges)]

    def evaluator(self) -> Evaluator | None:
        """What evaluates expressions, if something is collected."""
        return None

    def gates(self, manifest: Reference) -> tuple[Gate, ...]:
        """Who gets what."""
        arms = [Reference(manifest.kind, address, manifest.size) for address in (FIRST, SECOND)]
        return (*(Gate(arm, at) for at, arm in enumerate(arms, 1)), Gate(manifest))

    def content(self) -> tuple[list[StoredBlob], list[StoredBlob]]:
        """The manifest and what else goes out, and what is collected."""
        text = blobs.store(blobs.OBJECT, f"{self.key} {self.issuer.ledger.highest}".encode())
        return [*build_manifest(()), text], []

    @property
    def centre(self) -> Host:
        return self.hosts[PATH]

    def instant(self) -> Instant:
        return Instant(self.now, 1_750_000_000_000 + int(self.now * 1000))

    def add_regions(self, paths: Iterable[NodePath]) -> None:
        """Start regions that the centre knows of, with their edges in session."""
        for path in paths:
            host = self.make_region(path, self.centre.ends[path.name])
            host.tell(ev.LinkChanged(up=True))
            self.run(SESSION_SECONDS)
            self.join_edges(host)

    def make_region(self, path: NodePath, end: int) -> Host:
        """Start a region that has read its mailbox up to its end."""
        cursor = Cursor(f"run{PATH}", end, 0, 0, self.reached, True)  # noqa: FBT003
        own = [
            ev.OwnRecord(KEYS_KEY, self.keys, "", 0),
            ev.OwnRecord(SNAPSHOT_KEY, self.snapshot, "", 0),
            ev.OwnRecord(CURSOR_KEY, encode(cursor), "", 0),
            ev.OwnRecord(self._node(path).slot, self.records[path], "", 0),
        ]
        own += self._inventory(path)
        heard = frozenset(self.edges)
        return Host(self, path, ev.Remembered(own=tuple(own), heard=heard))

    def join_edges(self, host: Host) -> None:
        """Have all edges in session: they have read all their mail."""
        for name in self.edges:
            hello = Hello(_run(name), "home", host.run, host.ends[name], b"", self.reached)
            host.tell(ev.HelloArrived(name, encode(hello)))
        for name in self.edges:
            host.said[name] = 0
            host.tell(ev.ReportArrived(name, PROGRESS_KEY, self._progress(host, name)))

    def issue(self, draft: Draft) -> bytes:
        """Sign a record, and put it in force; returns its envelope."""
        publication = self.issuer.issue([draft], self.instant())
        self.blobs |= publication.blobs
        self.issuer.published(publication, self.instant())
        (signed,) = publication.signed
        data = signed.envelope.encode()
        self.centre.tell(ev.RecordIssued(signed, data))
        return data

    def sign(self) -> None:
        """Sign a snapshot."""
        publication = self.issuer.sign_snapshot(self.instant())
        self.blobs |= publication.blobs
        record, envelope = publication.record, publication.envelope
        self.snapshot, self.reached = envelope.encode(), record.generation
        hashed = envelope.payload_hash
        self.centre.tell(ev.SnapshotIssued(record, self.snapshot, hashed, publication.dropped))
        self.issuer.snapshot_published(publication)

    def use(self, name: str) -> None:
        """The placement that changes and reports are of from now on."""
        self.source = Source(API_PLACEMENT, "workloads", "", name)
        self.key = self.source.key
        self.placements.add(self.key)

    def change(self) -> None:
        """A new generation of the placement, with new content."""
        stored, programs = self.content()
        manifest, text = stored[0].reference, stored[-1].reference
        self.arm = manifest.address
        collectors = tuple(blob.reference for blob in programs)
        gates = self.gates(manifest)
        body = DeltaBody((manifest, text, *collectors), gates, collectors)
        self.issue_delta(body, values_of(*stored, *programs), loses=True)

    def issue_delta(
        self,
        body: DeltaBody,
        stored: Mapping[ContentHash, bytes] = MappingProxyType({}),
        *,
        steady: int = 0,
        loses: bool = False,
    ) -> None:
        """A new generation of the placement, for everyone."""
        encoded = EncodedBody.of(body)
        head = DeltaHead(
            self.source,
            Generation(0),
            "",
            "",
            body_hash=hashlib.sha256(encoded.data).digest(),
            alternatives=(Alternative(OVER_SYNC_TARGET, LabelSelector()),),
            last_loss=0,
            rollout_since=steady,
        )
        self.issue(Draft("delta", head, encoded, stored, loses=loses))
        self.generations[self.key] = self.issuer.ledger.records[self.key].generation

    def reports(
        self, region: NodePath, names: Iterable[str], state: str, arm: str
    ) -> list[tuple[str, str, bytes]]:
        """What edges of a region say of the placement, and their progress: name, slot, data."""
        host, said = self.hosts[region], []
        several = not isinstance(names, list) or len(names) > 1
        self._revision += 1
        revision = self._revision
        for name in names:
            summary = Summary({state: 1}, {"healthy": 1}, {arm: 1}, oldest_ms=revision)
            report = Report(
                self.key,
                0,
                _run(name),
                revision,
                self.generations[self.key],
                False,  # noqa: FBT003
                0,
                summary,
            )
            former = self._revisions.pop((region, name, self.key), None)
            former = former or self._revisions.get((region, "", self.key), 0)
            number = run_number(_run(name))
            host.said[name] += report_term(self.key, number, revision)
            if former:
                host.said[name] -= report_term(self.key, number, former)
            if not several:
                self._revisions[region, name, self.key] = revision
            said.append((name, str(self.key), encode(report)))
            said.append((name, PROGRESS_KEY, self._progress(host, name)))
        if several:
            self._revisions[region, "", self.key] = revision
        return said

    def arrive(self, region: NodePath, said: Iterable[tuple[str, str, bytes]]) -> None:
        """The reports come to the region."""
        host, up = self.hosts[region], self.up["regions"]
        for name, slot, data in said:
            up.add(data)
            host.tell(ev.ReportArrived(name, slot, data))

    def count(self) -> Count:
        return self.centre.node.view.count(self.key)

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
            case fx.SendHello() if parent is not None:
                self._work.append((parent, ev.HelloArrived(host.path.name, effect.data)))
            case fx.SendReport() if parent is not None:
                if effect.key in self.placements or effect.key == PROGRESS_KEY:
                    self.up["centre"].add(effect.data)
                self._work.append(
                    (parent, ev.ReportArrived(host.path.name, effect.key, effect.data))
                )
            case fx.SendWelcome():
                child = self.hosts.get(host.path.child(effect.child))
                if child is not None:
                    self._work.append((child, ev.Welcomed(decode(Welcome, effect.data))))
            case fx.ResetMail(start) if parent is not None:
                slots = parent.mail.get(host.path.name, {}).items()
                kept = sorted((at, key, data) for key, (at, data) in slots if at >= start)
                for place, (at, key, data) in enumerate(kept):
                    mail = ev.MailArrived(at, key, data, len(kept) - place - 1)
                    self._work.append((host, mail))
            case _:
                pass

    def _written(self, host: Host, write: fx.WriteMail) -> None:
        host.last += 1
        host.ends[write.child] = host.last
        child = self.hosts.get(host.path.child(write.child))
        if host.path.is_root and write.generation != ABOVE_ALL:
            host.mail.setdefault(write.child, {})[write.key] = (host.last, write.data)
        if child is not None:
            self._work.append((child, ev.MailArrived(host.last, write.key, write.data, 0)))
        said = ev.MailWritten(write.child, write.key, write.generation, host.last)
        self._work.append((host, said))

    def _progress(self, host: Host, name: str) -> bytes:
        """An edge has read all its mail, and reported what it led to."""
        digest = digest_bytes(host.said[name])
        return encode(Progress(_run(name), host.run, host.ends[name], digest))

    def _inventory(self, region: NodePath) -> Iterator[ev.OwnRecord]:
        """The unsigned records of a region's edges."""
        for name in self.edges:
            for draft in (self._node(region.child(name)), self._profile(region.child(name))):
                payload = encode_payload(draft.stamped(ABOVE_ALL, TERM))
                data = Envelope(draft.kind, SIGNING_KEY.key_id, payload, b"").encode()
                yield ev.OwnRecord(draft.slot, data, "", 0)

    def _issue_keys(self) -> bytes:
        """Put the first keys in force; returns their envelope."""
        ring, stamp = KeyRing(TREE, SIGNING_KEY, (ROOT_KEY,)), self.issuer.stamp(self.instant())
        record = changed_record(ring, KeyChange(), stamp, (), alone=True)
        message = completed(ring, request_of(ring, record), stamp.generation).message
        assert message is not None
        self.issuer.keys_published(record, SIGNING_KEY, self.instant())
        self.centre.tell(ev.RecordIssued(SignedRecord(message, record), message.encode()))
        return message.encode()

    def _node(self, path: NodePath) -> Draft:
        source = Source(API_NODE, TREE, "", str(path))
        record = NodeRecord(source, Generation(0), "", "", path, f"nkey{path}")
        return Draft("node", record)

    def _profile(self, path: NodePath) -> Draft:
        name = "-".join(path.names)
        source = Source(API_SYNC_TARGET, "inventory", "", name)
        labels = {"region": path.names[0]}
        who = DestinationId(f"inventory-mb-{name}")
        return Draft("profile", Profile(source, Generation(0), "", "", who, path, labels, {}, {}))


def _run(name: str) -> str:
    return f"run {name}"
