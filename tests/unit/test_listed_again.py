"""What an index said to be gone a newer one may list again, as after a centre read back what was.

The node keeps nothing of it by then, and its parent sees that by the digest.
"""

from dataclasses import replace

import pytest

from relay.core.records.accepted import read_record
from relay.core.effects import LoadBlob, Noted, SendHeartbeat
from relay.core.events import (
    BlobArrived,
    Instant,
    LinkChanged,
    MailArrived,
    Remembered,
    SessionArrived,
    Tick,
)
from relay.core.node import Node
from relay.core.state import NodeConfig
from schemas.chunks import build_index
from schemas.identity import INDEX_KEY, KEYS_KEY, NodePath
from schemas.records import API_KEYS, IndexRecord, KeyGrant, KeysRecord, Source, encode_payload
from schemas.reports import Heartbeat, SessionMessage, decode
from tests.unit.test_inbox import CENTRE, ROOT, SHOP, TREE, delta

GRANT = KeyGrant(CENTRE.key_id, CENTRE.public_key, ("delta", "index"))
KEYS = KeysRecord(Source(API_KEYS, TREE, "", "keys"), 1, False, "", (), (GRANT,))
SIGNED_KEYS = MailArrived(1, KEYS_KEY, ROOT.seal("keys", encode_payload(KEYS)).encode(), 0)
HEARTBEAT_SECONDS = 60.0


class Child:
    """A node whose parent this test plays."""

    def __init__(self):
        config = NodeConfig(NodePath.parse("/emea"), TREE, {ROOT.key_id: ROOT.public_key}, "run")
        self.node = Node(config, Remembered(), [], Instant(0.0, 1))
        self.now, self.sequence, self.question = 0.0, 0, 0
        self.blobs, self.made = {}, []
        self.tell(LinkChanged(up=True))
        self.session("again", incarnation="one")
        self.read(SIGNED_KEYS)

    def tell(self, event):
        made = self.node.handle(event, Instant(self.now, 1 + int(self.now * 1000)))
        self.made += made
        for load in [effect for effect in made if type(effect) is LoadBlob]:
            value = self.blobs[load.reference.address]
            self.tell(BlobArrived(load.reference, value, local=False))

    def session(self, want, *, incarnation):
        self.question = self.beat().question
        epoch = self.node._state.inbox.last_epoch + 1
        granted = SessionMessage(
            incarnation, epoch, self.sequence or 1, 0, 0, want, "run", self.question
        )
        self.tell(SessionArrived(granted))

    def read(self, event):
        self.sequence += 1
        self.tell(replace(event, sequence=self.sequence))

    def show(self, generation, listed):
        root, *parts = build_index(listed.items())
        for stored in (root, *parts):
            self.blobs |= stored.values
        source = Source("leafcast.io/Index", "", "", "")
        record = IndexRecord(source, generation, False, "", (), 0, root.reference)
        data = CENTRE.seal("index", encode_payload(record)).encode()
        self.read(MailArrived(0, INDEX_KEY, data, 0))

    def beat(self):
        """What it says of itself now."""
        self.now += HEARTBEAT_SECONDS
        self.tell(Tick())
        said = [effect.data for effect in self.made if type(effect) is SendHeartbeat]
        return decode(Heartbeat, said[-1])

    def notes(self):
        return [effect.reason for effect in self.made if type(effect) is Noted]


def digest_of(*events):
    total = sum(read_record(event.data, 0)[1].term for event in events)
    return (total % (1 << 128)).to_bytes(16, "big")


@pytest.fixture
def child():
    return Child()


def test_what_an_older_index_refused_is_taken_when_it_is_read_after_one_that_lists_it(child):
    child.show(9, {})
    child.read(delta(5))
    assert "Superseded" in child.notes()
    child.show(12, {SHOP.key: 5})
    assert SHOP.key not in child.node.records
    assert child.beat().mail_digest == digest_of(SIGNED_KEYS)
    assert child.beat().sequence == child.sequence
    child.read(delta(5))
    assert child.node.records[SHOP.key].generation == 5
    assert child.beat().mail_digest == digest_of(SIGNED_KEYS, delta(5))


def test_what_an_index_dropped_is_in_the_digest_no_more(child):
    child.show(6, {SHOP.key: 5})
    child.read(delta(5))
    assert child.beat().mail_digest == digest_of(SIGNED_KEYS, delta(5))
    child.show(9, {})
    assert SHOP.key not in child.node.records
    assert child.beat().mail_digest == digest_of(SIGNED_KEYS)
