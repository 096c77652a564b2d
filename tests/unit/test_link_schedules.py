"""Schedules that broke the link once: the centre and one child, face to face."""

from relay.core.config import NodeConfig
from relay.core.effects import DropBlobs, LoadBlob, StoreOwn
from relay.core.events import (
    BlobArrived,
    LinkChanged,
    OwnRecord,
    Remembered,
    SnapshotIssued,
    Tick,
    Welcomed,
)
from relay.core.node import Node
from schemas.identity import SNAPSHOT_KEY
from schemas.link import Welcome
from schemas.records import API_LOCATION, LocationRecord, Source
from schemas.signing import Envelope
from schemas.snapshots import encode as encode_snapshot
from tests.unit.meeting import PATH, ROOT, SIGNER, TERM, TREE, Meeting


def location(name, generation, selector=None, **labels):
    source = Source(API_LOCATION, "space", "", name)
    return LocationRecord(source, generation, TERM.hex(), "", (), labels, {}, selector)


def test_the_centre_keeps_all_nodes_of_its_snapshot_for_those_who_read_it_later():
    meeting = Meeting()
    for at in range(400):
        meeting.issue("location", location(f"l{at}", 10 + at))
    meeting.now += 3
    issued = meeting.issuer.sign(500, now=meeting.now, now_ms=meeting.instant.wall_ms)
    values = {a: value for blob in issued.blobs for a, value in blob.values.items()}
    meeting.stored |= values
    sealed: Envelope = SIGNER.seal("snapshot", encode_snapshot(issued.record))
    meeting.tell(meeting.centre, SnapshotIssued(sealed.encode(), (), frozenset(values)))
    for _ in range(3):
        meeting.now += 3601
        effects = meeting.tell(meeting.centre, Tick())
        assert not [effect for effect in effects if isinstance(effect, DropBlobs)]


class Kept(Meeting):
    """What runs of the child keep, so that the next one remembers it."""

    def __init__(self):
        self.own = {}
        super().__init__()

    def tell(self, node, event):
        effects = super().tell(node, event)
        if not node.config.path.is_root:
            for effect in effects:
                if isinstance(effect, StoreOwn):
                    self.own[effect.key] = effect
        return effects

    def remembered(self, run):
        """A run of the child that begins with what the former one kept."""
        own = (OwnRecord(key, it.data, "", 0) for key, it in self.own.items() if it.data)
        config = NodeConfig(PATH, TREE, {ROOT.key_id: ROOT.public_key}, run, False, "home")
        node = Node(config, Remembered(own=tuple(own)), [], self.instant)
        for effect in node.start():
            if isinstance(effect, LoadBlob):
                value = self.stored[effect.reference.address]
                self.tell(node, BlobArrived(effect.reference, value, local=False))
        return node


def test_a_run_takes_no_older_snapshot_s_place_for_that_of_one_it_was_only_shown():
    meeting = Kept()
    first = meeting.join("first", "home")
    meeting.sign()
    meeting.generation += 10
    shown = meeting.sign()
    # The mailbox has an older one: nothing is taken away from this child.
    assert meeting.mailbox[SNAPSHOT_KEY][1].generation < shown
    meeting.talk(first, LinkChanged(up=False))
    meeting.talk(first, LinkChanged(up=True))
    meeting.wait(first, 3)
    assert meeting.own[SNAPSHOT_KEY].generation == shown
    assert first.own_state()["snapshotGeneration"] < shown
    again = meeting.remembered("again")
    meeting.tell(again, LinkChanged(up=True))
    welcome = Welcomed(Welcome(meeting.centre.config.incarnation, "again", meeting.last, b"", 0))
    meeting.tell(again, welcome)
    assert again.own_state()["snapshotGeneration"] < shown
