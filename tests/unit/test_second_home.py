"""A node that runs already is not run twice: the second one is told to stop, the first goes on."""

import os

from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.core.effects import SendHeartbeat, SendSession
from relay.core.events import (
    ChildUnlinked,
    HeartbeatArrived,
    Instant,
    Issued,
    LinkChanged,
    Remembered,
    SessionArrived,
    Tick,
)
from relay.core.node import Node
from relay.core.state import NodeConfig
from schemas.identity import KeyId, NodePath, TreeId
from schemas.records import (
    API_KEYS,
    API_NODE,
    KeyGrant,
    KeysRecord,
    NodeRecord,
    Source,
    encode_payload,
)
from schemas.reports import SessionMessage, decode
from schemas.signing import Signer

TREE, PATH = TreeId("t" * 26), NodePath.parse("/emea")
ROOT, SIGNER = (Signer(TREE, KeyId(letter * 26), letter.encode() * 32) for letter in "rs")
NKEY = new_user_nkey(os.urandom(32))[1]


def issued(signer, kind, record):
    return Issued(signer.seal(kind, encode_payload(record)).encode())


class Meeting:
    """The centre, and runs of its child that come and go; `now` is in seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        self.centre = self.node(NodePath(), os.urandom(8).hex())
        grant = KeyGrant(SIGNER.key_id, SIGNER.public_key, ("node",))
        keys = KeysRecord(Source(API_KEYS, TREE, "", "keys"), 1, False, "", (), (grant,))
        child = NodeRecord(Source(API_NODE, TREE, "", str(PATH)), 2, False, "", (), PATH, NKEY)
        self.tell(self.centre, issued(ROOT, "keys", keys))
        self.tell(self.centre, issued(SIGNER, "node", child))

    def node(self, path, run, home=""):
        roots = {ROOT.key_id: ROOT.public_key}
        config = NodeConfig(path, TREE, roots, run, home=home)
        return Node(config, Remembered(), [], self.instant)

    @property
    def instant(self):
        return Instant(self.now, 1_000_000 + int(self.now * 1000))

    def tell(self, node, event):
        return node.handle(event, self.instant)

    def beats(self, node, event):
        """Let the centre hear what heartbeats the event leads to; the answers to them."""
        sent = [e for e in self.tell(node, event) if isinstance(e, SendHeartbeat)]
        answers = []
        for beat in sent:
            effects = self.tell(self.centre, HeartbeatArrived("emea", beat.data))
            answers += [
                decode(SessionMessage, e.data) for e in effects if isinstance(e, SendSession)
            ]
        return answers

    def join(self, run, home):
        """A run that asks for a session, hears the answer, and beats in it."""
        node = self.node(PATH, run, home)
        for answer in self.beats(node, LinkChanged(up=True)):
            self.tell(node, SessionArrived(answer))
        if not node.superseded:
            self.now += 30
            self.beats(node, Tick())
        return node


def test_a_second_home_is_told_to_stop_while_the_first_is_heard_of():
    meeting = Meeting()
    first = meeting.join("one", "here")

    second = meeting.join("two", "there")

    assert second.superseded
    assert second.second
    assert not first.superseded
    meeting.now += 30
    (answer,) = meeting.beats(first, Tick())
    assert (answer.want != "stop", answer.run) == (True, "one")


def test_the_same_home_comes_back_at_once_and_another_when_the_first_fell_silent():
    meeting = Meeting()
    meeting.join("one", "here")
    assert not meeting.join("two", "here").superseded

    meeting.now += 91
    meeting.tell(meeting.centre, Tick())
    third = meeting.join("three", "there")
    assert not third.superseded
    meeting.now += 30
    (answer,) = meeting.beats(third, Tick())
    assert answer.want != "stop"


def test_a_run_that_lost_its_place_to_another_home_stops_when_its_link_is_back():
    meeting = Meeting()
    first = meeting.join("one", "here")
    meeting.tell(meeting.centre, ChildUnlinked("emea"))
    second = meeting.join("two", "there")

    meeting.tell(first, LinkChanged(up=False))
    for answer in meeting.beats(first, LinkChanged(up=True)):
        meeting.tell(first, SessionArrived(answer))

    assert (first.superseded, first.second) == (True, False)
    assert not second.superseded


def test_a_session_of_before_the_parents_restart_holds_no_place():
    meeting = Meeting()
    first = meeting.join("one", "here")
    (request,) = [
        e
        for e in meeting.tell(meeting.node(PATH, "x", "gone"), LinkChanged(up=True))
        if isinstance(e, SendHeartbeat)
    ]
    meeting.now += 30
    (beat,) = [e for e in meeting.tell(first, Tick()) if isinstance(e, SendHeartbeat)]

    restarted = Meeting()
    for kept in (beat, request):
        restarted.tell(restarted.centre, HeartbeatArrived("emea", kept.data))

    assert not restarted.join("two", "there").superseded


def test_a_run_that_was_in_session_does_not_stop_at_its_parents_word():
    meeting = Meeting()
    first = meeting.join("one", "here")
    stop = SessionMessage("elsewhere", 0, 0, 0, 0, "stop", "one")
    meeting.tell(first, SessionArrived(stop))
    assert not first.superseded
