"""The centre and runs of its one child, face to face: what each says, the other hears."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable

from controllers.core.ledger.snapshots import SnapshotIssuer
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.core.config import NodeConfig
from relay.core.effects import (
    ClearMail,
    DropReport,
    Effect,
    LoadBlob,
    RemoveChild,
    ResetMail,
    SendHello,
    SendReport,
    SendWelcome,
    WriteMail,
)
from relay.core.events import (
    BlobArrived,
    Event,
    HelloArrived,
    LinkChanged,
    MailArrived,
    MailWritten,
    Remembered,
    ReportArrived,
    Tick,
    Welcomed,
)
from relay.core.instant import Instant
from relay.core.records.accepted import read_record
from schemas.records.records import (
    API_KEYS,
    API_NODE,
    KeyGrant,
    KeysRecord,
    NodeRecord,
    Record,
    Source,
    body_of,
    encode_payload,
)
from schemas.records.roots import Roots
from schemas.records.signing import RecordKind, Signer
from schemas.records.snapshots import Term
from schemas.records.snapshots import encode as encode_snapshot
from schemas.reports.link import Hello, Welcome
from schemas.values.identity import KEYS_KEY, ContentHash, KeyId, MailKey, NodePath, TreeId
from schemas.values.wire import decode
from tests.issuing import issued, snapshot_issued
from tests.viewed_node import ViewedNode

TREE, PATH = TreeId("t" * 26), NodePath.parse("/emea")
ROOT, SIGNER = (Signer(TREE, KeyId(letter * 26), letter.encode() * 32) for letter in "rs")
NKEY = new_user_nkey(os.urandom(32))[1]
TERM = Term(b"the term")
GRANTED = ("delta", "profile", "location", "node", "snapshot", "ask")
START_MS = 1_000_000


class Meeting:
    """`now` is in seconds; a run of the child that `join` returns hears all that is sent to it."""

    def __init__(self, *, grants: tuple[str, ...] = GRANTED) -> None:
        self.now = 0.0
        # By address, what either side can load.
        self.stored: dict[ContentHash, bytes] = {}
        # The child's mailbox at the centre, and how often its reader began anew.
        self.mailbox: dict[MailKey, tuple[int, WriteMail]] = {}
        self.last, self.reading, self.delivered = 0, 0, 0
        self.generation = 0
        # The newest one, signed.
        self.snapshot = b""
        self.issuer = SnapshotIssuer(TERM, now=0.0)
        self.centre = self.node(NodePath(), os.urandom(8).hex())
        grant = KeyGrant(SIGNER.key_id, SIGNER.public_key, grants)
        # What the centre did about all that it was told.
        self.done: list[Effect] = []
        keys = KeysRecord(Source(API_KEYS, TREE, "", "keys"), 1, TERM.hex(), "", (grant,))
        self.issue("keys", keys)
        node = Source(API_NODE, TREE, "", str(PATH))
        self.issue("node", NodeRecord(node, 2, TERM.hex(), "", PATH, NKEY))
        self.sign()

    def node(
        self, path: NodePath, run: str, home: str = "", *, attached: bool = False
    ) -> ViewedNode:
        roots = Roots({ROOT.key_id: ROOT.public_key})
        config = NodeConfig(path, TREE, roots, run, attached, home)
        return ViewedNode(config, Remembered(), [], self.instant)

    @property
    def instant(self) -> Instant:
        return Instant(self.now, START_MS + int(self.now * 1000))

    # What the centre issues.

    def issue(self, kind: RecordKind, record: Record, body: bytes | None = None) -> MailKey:
        """Put a record in force at the centre; its generation ascends."""
        signer = ROOT if kind == "keys" else SIGNER
        data = signer.seal(kind, encode_payload(record), body or body_of(record)).encode()
        self.generation = record.generation
        _, accepted = read_record(data)
        if accepted.key != KEYS_KEY:
            self.issuer.issued(
                accepted.entry_key, record.generation, takes_away=False, now=self.now
            )
        self.centre_hears(issued(data))
        return accepted.key

    def sign(self, drop: Iterable[MailKey] = ()) -> int:
        """Sign a snapshot, 3 s from now; what it drops is deleted now."""
        for key in drop:
            self.issuer.deleted(self.centre.records[key].entry_key, now=self.now)
        self.now += 3
        self.generation += 1
        signed = self.issuer.sign(self.generation, now=self.now, now_ms=self.instant.wall_ms)
        for blob in signed.blobs:
            self.stored |= blob.values
        self.snapshot = SIGNER.seal("snapshot", encode_snapshot(signed.record)).encode()
        self.centre_hears(snapshot_issued(self.snapshot, tuple(drop)))
        return self.generation

    # What is said.

    def tell(self, node: ViewedNode, event: Event) -> list[Effect]:
        """Tell a node something, and let it load what is stored; what it does about that."""
        effects = list(node.handle((event,), self.instant))
        for effect in effects:
            if isinstance(effect, LoadBlob):
                value = self.stored.get(effect.reference.address)
                if value is not None:
                    arrived = BlobArrived(effect.reference, value, local=False)
                    effects += node.handle((arrived,), self.instant)
        return effects

    def centre_hears(self, event: Event) -> list[Effect]:
        """Tell the centre something, and write what it writes; what it does about that."""
        effects = self.tell(self.centre, event)
        for effect in effects:
            match effect:
                case WriteMail(child, key, _, generation):
                    assert effect.expected == self.mailbox.get(key, (0, effect))[0]
                    self.last += 1
                    self.mailbox[key] = self.last, effect
                    written = MailWritten(child, key, generation, self.last)
                    effects += self.tell(self.centre, written)
                case ClearMail(_, key, sequence) if self.mailbox[key][0] == sequence:
                    del self.mailbox[key]
                case RemoveChild():
                    self.mailbox.clear()
                case _:
                    pass
        self.centre.assert_invariants()
        self.done += effects
        return effects

    def talk(self, node: ViewedNode, event: Event) -> list[Welcome]:
        """Tell a run of the child something, and carry on what both say; the centre's answers."""
        answers: list[Welcome] = []
        work = deque(self.tell(node, event))
        while work or self._has_mail(node):
            if not work:
                work += self._deliver(node)
                continue
            effect = work.popleft()
            match effect:
                case SendHello(data):
                    heard = self.centre_hears(HelloArrived("emea", data))
                    said = [e for e in heard if isinstance(e, SendWelcome)]
                    for welcome in (decode(Welcome, e.data) for e in said):
                        answers.append(welcome)
                        work += self.tell(node, Welcomed(welcome))
                case SendReport(key, data):
                    self.centre_hears(ReportArrived("emea", key, data, 1))
                case ResetMail(sequence):
                    self.reading, self.delivered = self.reading + 1, sequence - 1
                case DropReport():
                    raise AssertionError("a child has no children")
                case _:
                    pass
        node.assert_invariants()
        return answers

    def _has_mail(self, node: ViewedNode) -> bool:
        ready = node.own_state()["session"] == "welcomed"
        return ready and any(at > self.delivered for at, _ in self.mailbox.values())

    def _deliver(self, node: ViewedNode) -> list[Effect]:
        """What follows from the mail that was not delivered yet."""
        found = sorted((at, key) for key, (at, _) in self.mailbox.items() if at > self.delivered)
        effects: list[Effect] = []
        for number, (at, key) in enumerate(found, 1):
            self.delivered = at
            data, pending = self.mailbox[key][1].data, len(found) - number
            effects += self.tell(node, MailArrived(at, key, data, pending, self.reading))
        return effects

    def wait(self, node: ViewedNode, seconds: float) -> list[Welcome]:
        """Let time pass for both; the centre's answers to what the run says."""
        self.now += seconds
        self.centre_hears(Tick())
        return self.talk(node, Tick())

    def join(self, run: str, home: str, *, attached: bool = False) -> ViewedNode:
        """A run that comes, reads its mailbox and says how far."""
        node = self.node(PATH, run, home, attached=attached)
        self.talk(node, LinkChanged(up=True))
        if not node.stopped:
            self.wait(node, 3)
        return node


def hellos(effects: Iterable[Effect]) -> list[Hello]:
    """What is said in these effects."""
    return [decode(Hello, effect.data) for effect in effects if isinstance(effect, SendHello)]
