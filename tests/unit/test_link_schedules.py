"""Schedules that broke the link once: the centre and one child, face to face."""

import hashlib

from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.core.config import NodeConfig
from relay.core.effects import DropBlobs, LoadBlob, ResetMail, SendWelcome, StoreOwn, WriteMail
from relay.core.events import (
    BlobArrived,
    HelloArrived,
    LinkChanged,
    MailArrived,
    MailWritten,
    OwnRecord,
    Remembered,
    ReportArrived,
    Tick,
    Welcomed,
)
from schemas.objects.selectors import LabelSelector
from schemas.records.records import (
    API_LOCATION,
    API_NODE,
    API_SYNC_TARGET,
    OVER_SYNC_TARGET,
    Alternative,
    DeltaBody,
    DeltaHead,
    Gate,
    LocationRecord,
    NodeRecord,
    Profile,
    Source,
    encode_payload,
)
from schemas.records.roots import Roots
from schemas.records.signing import Envelope
from schemas.records.snapshots import encode as encode_snapshot
from schemas.reports.link import Hello, Progress, Welcome
from schemas.values.groups import API_PLACEMENT
from schemas.values.identity import SNAPSHOT_KEY, destination_id, short_key
from schemas.values.subjects import PROGRESS_KEY
from schemas.values.wire import decode, encode, replace
from tests.issuing import issued, snapshot_issued
from tests.unit.meeting import PATH, ROOT, SIGNER, TERM, TREE, Meeting, hellos
from tests.viewed_node import ViewedNode


def location(name, generation, selector=None, **labels):
    source = Source(API_LOCATION, "space", "", name)
    return LocationRecord(source, generation, TERM.hex(), "", labels, {}, selector)


def profile(generation, **labels):
    source = Source(API_SYNC_TARGET, "space", "", "emea")
    who = destination_id("space", "emea")
    return Profile(source, generation, TERM.hex(), "", who, PATH, labels, {}, {})


BODY = DeltaBody((), (Gate(None),)).encode()


def delta(generation):
    selector = LabelSelector.from_kubernetes({"matchLabels": {"env": "prod"}})
    source, hashed = Source(API_PLACEMENT, "space", "", "p"), hashlib.sha256(BODY).digest()
    chosen = (Alternative(OVER_SYNC_TARGET, selector),)
    return DeltaHead(source, generation, TERM.hex(), "", hashed, chosen, 0)


def test_the_centre_keeps_all_nodes_of_its_snapshot_for_those_who_read_it_later():
    meeting = Meeting()
    for at in range(400):
        meeting.issue("location", location(f"l{at}", 10 + at))
    meeting.now += 3
    signed = meeting.issuer.sign(500, now=meeting.now, now_ms=meeting.instant.wall_ms)
    values = {a: value for blob in signed.blobs for a, value in blob.values.items()}
    meeting.stored |= values
    sealed: Envelope = SIGNER.seal("snapshot", encode_snapshot(signed.record))
    meeting.tell(meeting.centre, snapshot_issued(sealed.encode(), (), frozenset(values)))
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
        config = NodeConfig(PATH, TREE, Roots({ROOT.key_id: ROOT.public_key}), run, False, "home")
        node = ViewedNode(config, Remembered(own=tuple(own)), [], self.instant)
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


def test_a_placement_whose_head_came_before_what_unselects_it_is_forgotten_too():
    meeting = Meeting()
    edge = meeting.join("edge", "home", attached=True)
    meeting.issue("profile", profile(10, env="prod"))
    key = meeting.issue("delta", delta(11), BODY)
    meeting.wait(edge, 3)
    assert edge.records[key].full
    meeting.issue("profile", profile(12, env="dev"))
    unread = {k: at for k, (at, _) in meeting.mailbox.items() if at > meeting.delivered}
    assert len(unread) == 2
    for other, at in sorted(unread.items(), key=lambda item: item[0] != key):
        data = meeting.mailbox[other][1].data
        meeting.talk(edge, MailArrived(at, other, data, int(other == key), meeting.reading))
        meeting.delivered = 0 if other == key else meeting.last
    meeting.sign()
    meeting.wait(edge, 6)
    assert key not in edge.records
    assert key not in meeting.mailbox


def test_a_count_is_not_exact_while_the_newest_of_two_inventory_records_is_under_way():
    meeting = Meeting()
    edge = meeting.join("edge", "home", attached=True)
    meeting.issue("profile", profile(10, env="prod"))
    key = meeting.issue("delta", delta(11), BODY)
    meeting.wait(edge, 3)
    meeting.wait(edge, 3)
    centre, now = meeting.centre, meeting.instant
    assert centre.count(key).exact
    for generation in (20, 21):
        sealed = SIGNER.seal("profile", encode_payload(profile(generation, env="prod", n="x")))
        centre.handle((issued(sealed.encode()),), now)
    about = profile(20).source.key
    centre.handle((MailWritten("emea", about, 20, meeting.last + 1),), now)
    # It answers the first, and the second is on its way.
    run = centre.config.incarnation
    read = Progress("edge", run, meeting.last + 1, edge._reporting._sender.digest)
    centre.handle((ReportArrived("emea", PROGRESS_KEY, encode(read), 1),), now)
    assert not centre.count(key).exact
    centre.handle((MailWritten("emea", about, 21, meeting.last + 2),), now)
    read = replace(read, through=meeting.last + 2)
    centre.handle((ReportArrived("emea", PROGRESS_KEY, encode(read), 1),), now)
    assert centre.count(key).exact


def many_records():
    """A centre whose snapshot has many leaves; a placement in it that nobody has yet."""
    meeting = Meeting()
    for at in range(400):
        meeting.issue("location", location(f"l{at}", 10 + at))
    key = meeting.issue("delta", delta(450), BODY)
    meeting.sign()
    return meeting, key


def test_what_an_old_snapshot_lists_is_taken_though_nobody_here_had_an_interest_before():
    meeting, key = many_records()
    edge = meeting.join("edge", "home", attached=True)
    assert edge.own_state()["snapshotGeneration"] == meeting.generation
    meeting.issue("profile", profile(600, env="prod"))
    meeting.wait(edge, 1)
    assert edge.records[key].full


def test_a_want_from_below_is_passed_on_though_its_leaf_was_not_read_before():
    meeting, key = many_records()
    relay = meeting.join("relay", "home")
    nkey, path = new_user_nkey(bytes(32))[1], PATH.child("s1")
    source = Source(API_NODE, TREE, "", str(path))
    meeting.issue("node", NodeRecord(source, 600, TERM.hex(), "", path, nkey))
    meeting.wait(relay, 1)
    below = Hello("r", "h", relay.config.incarnation, 0, b"", 0, wants=(key, short_key(bytes(20))))
    meeting.talk(relay, HelloArrived("s1", encode(below)))
    meeting.now += 31
    (hello,) = hellos(meeting.tell(relay, Tick()))
    assert hello.wants == (key,)


def test_a_want_from_below_is_answered_when_the_record_comes():
    meeting, key = many_records()
    relay = meeting.join("relay", "home")
    nkey, path = new_user_nkey(bytes(32))[1], PATH.child("s1")
    source = Source(API_NODE, TREE, "", str(path))
    meeting.issue("node", NodeRecord(source, 600, TERM.hex(), "", path, nkey))
    meeting.wait(relay, 1)
    below = Hello("r", "h", relay.config.incarnation, 0, b"", 0, wants=(key,))
    meeting.talk(relay, HelloArrived("s1", encode(below)))
    assert key not in relay.records
    meeting.now += 31
    (hello,) = hellos(meeting.tell(relay, Tick()))
    meeting.centre_hears(HelloArrived("emea", encode(hello)))
    at, write = meeting.mailbox[key]
    effects = meeting.tell(relay, MailArrived(at, key, write.data, 0, meeting.reading))
    assert [(e.child, e.key, e.has_body) for e in effects if isinstance(e, WriteMail)] == [
        ("s1", key, False)
    ]


def test_mail_that_overtakes_a_welcome_is_not_read_again():
    meeting = Meeting()
    edge = meeting.join("edge", "home")
    meeting.now += 31
    (hello,) = hellos(meeting.tell(edge, Tick()))
    heard = meeting.centre_hears(HelloArrived("emea", encode(replace(hello, reports=b""))))
    (late,) = [decode(Welcome, e.data) for e in heard if isinstance(e, SendWelcome)]
    meeting.sign()
    meeting.now += 600
    meeting.sign()
    meeting.wait(edge, 1)
    assert meeting.last > late.last_sequence
    assert not [e for e in meeting.tell(edge, Welcomed(late)) if isinstance(e, ResetMail)]


def test_a_head_that_is_wanted_is_read_after_a_takeover_however_old_it_is():
    meeting = Meeting()
    key = meeting.issue("delta", delta(5), BODY)
    meeting.generation = 50
    meeting.sign()
    child = meeting.join("one", "here")
    meeting.wait(child, 30)
    meeting.tell(child, LinkChanged(up=False))
    (asking,) = hellos(meeting.tell(child, LinkChanged(up=True)))
    assert asking.snapshot > 5
    assert key not in meeting.mailbox
    hello = encode(replace(asking, parent_run="another", wants=(key,)))
    meeting.centre_hears(HelloArrived("emea", hello, meeting.instant.wall_ms))
    at, _ = meeting.mailbox[key]
    heard = meeting.centre_hears(HelloArrived("emea", hello))
    (welcome,) = (decode(Welcome, it.data) for it in heard if isinstance(it, SendWelcome))
    assert (welcome.repair, welcome.last_sequence) == ("none", at - 1)
