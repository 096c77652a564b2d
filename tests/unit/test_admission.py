"""Children that come back at once read a bounded number at a time, and each gets its turn."""

import os

from hypothesis import given
from hypothesis import strategies as st

from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.core.admission import READ_SECONDS, Admission
from relay.core.effects import SendHeartbeat, SendSession, WriteMail
from relay.core.events import (
    ChildUnlinked,
    HeartbeatArrived,
    Instant,
    LinkChanged,
    MailWritten,
    Remembered,
    SessionArrived,
    Tick,
)
from relay.core.node import Node
from relay.core.state import NodeConfig
from schemas.chunks import build_index
from schemas.identity import INDEX_KEY, NodePath
from schemas.records import (
    API_INDEX,
    API_KEYS,
    API_NODE,
    IndexRecord,
    KeyGrant,
    KeysRecord,
    NodeRecord,
    Source,
)
from schemas.reports import Heartbeat, SessionMessage, decode, encode
from tests.unit.test_second_home import ROOT, SIGNER, TREE, issued

PATHS = [NodePath((name,)) for name in "abc"]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "read", "leave", "wait"]),
        st.integers(0, 9),
        st.integers(0, 60),
    ),
    max_size=80,
)


@given(STEPS, st.integers(1, 4))
def test_never_more_than_so_many_read_and_nobody_is_forgotten(steps, at_once):
    admission, now = Admission(at_once), 0.0
    asking, let_in = set(), set()

    def admit(name, question):
        if admission.admit(name, question, 0, 10, now):
            asking.discard(name)
            let_in.add(name)
        else:
            asking.add(name)

    def go_on():
        while (waited := admission.next(now)) is not None:
            admit(*waited)

    for what, number, amount in steps:
        name = f"c{number}"
        match what:
            case "ask":
                admit(name, name.encode())
            case "read":
                admission.has_read(name, amount, now)
            case "leave":
                admission.leave(name)
                asking.discard(name)
            case _:
                now += amount
        go_on()
        assert admission.reading <= at_once
        assert admission.waiting == len(asking)
        assert not asking or admission.deadline() > now
    for _ in range(10):
        now += READ_SECONDS
        go_on()
    assert not asking


def test_who_has_nothing_to_read_begins_at_once_and_order_is_kept():
    admission = Admission(1)
    assert admission.admit("a", b"", 0, 5, 0.0)
    assert admission.admit("b", b"", 5, 5, 0.0)
    assert not admission.admit("c", b"c", 0, 5, 0.0)
    assert not admission.admit("d", b"d", 0, 5, 0.0)
    assert not admission.admit("c", b"again", 0, 5, 2.0)
    admission.has_read("a", 4, 40.0)
    assert admission.next(READ_SECONDS) is None
    admission.has_read("a", 5, READ_SECONDS)
    assert admission.next(READ_SECONDS) == ("c", b"again")


def test_a_place_is_free_again_when_its_child_makes_no_progress():
    admission = Admission(1)
    admission.admit("a", b"", 0, 5, 0.0)
    admission.admit("b", b"b", 0, 5, 0.0)
    assert admission.deadline() == READ_SECONDS
    assert admission.next(READ_SECONDS) == ("b", b"b")


class Parent:
    """The centre with an index and three children, which reads one child's mail at a time."""

    def __init__(self):
        self.now, self.sequence, self.indexes, self.answers = 0.0, 0, 0, []
        config = NodeConfig(NodePath(), TREE, {ROOT.key_id: ROOT.public_key}, "x", reads_at_once=1)
        self.node = Node(config, Remembered(), [], self.instant)
        grant = KeyGrant(SIGNER.key_id, SIGNER.public_key, ("node", "index"))
        keys = KeysRecord(Source(API_KEYS, TREE, "", "keys"), 1, False, "", (), (grant,))
        self.tell(issued(ROOT, "keys", keys))
        for at, path in enumerate(PATHS):
            nkey = new_user_nkey(os.urandom(32))[1]
            source = Source(API_NODE, TREE, "", str(path))
            self.tell(issued(SIGNER, "node", NodeRecord(source, 2 + at, False, "", (), path, nkey)))
        self.renew(9)

    @property
    def instant(self):
        return Instant(self.now, 1_000_000 + int(self.now * 1000))

    def renew(self, generation):
        root = build_index([])[0].reference
        source = Source(API_INDEX, TREE, "", "index")
        self.tell(issued(SIGNER, "index", IndexRecord(source, generation, False, "", (), 0, root)))

    def tell(self, event):
        """Handle an event; what it writes is stored, whom it answers is noted."""
        for effect in self.node.handle(event, self.instant):
            if isinstance(effect, SendSession):
                self.answers.append((effect.child, decode(SessionMessage, effect.data)))
            elif isinstance(effect, WriteMail):
                self.sequence += 1
                self.indexes += effect.key == INDEX_KEY
                self.tell(MailWritten(effect.child, effect.key, effect.generation, self.sequence))

    def hear(self, child, event):
        """Hear what a child says at an event; the answers, and how often the index was written."""
        self.answers, self.indexes = [], 0
        for effect in child.handle(event, self.instant):
            if isinstance(effect, SendHeartbeat):
                self.tell(HeartbeatArrived(child.path.name, effect.data))
        return self.answers, self.indexes


class Asking:
    """A child of which only the heartbeats matter."""

    def __init__(self, path, run="one"):
        self.path = path
        config = NodeConfig(path, TREE, {ROOT.key_id: ROOT.public_key}, run)
        self.handle = Node(config, Remembered(), [], Instant(0.0, 1)).handle


def test_a_child_that_asks_again_before_its_answer_came_is_shown_the_index_once():
    parent, child = Parent(), Asking(PATHS[0])
    ((_, first),), indexes = parent.hear(child, LinkChanged(up=True))
    assert indexes == 1
    parent.now += 2
    ((_, second),), indexes = parent.hear(child, Tick())
    assert (indexes, second.last_sequence) == (0, first.last_sequence)
    assert second.epoch > first.epoch


def test_a_new_session_of_the_same_run_is_shown_the_index_again():
    parent, child = Parent(), Asking(PATHS[0])
    ((_, answer),), _ = parent.hear(child, LinkChanged(up=True))
    parent.hear(child, SessionArrived(answer))
    parent.now += 60
    assert parent.hear(child, LinkChanged(up=True))[1] == 1


def test_one_child_after_the_other_reads_and_who_is_gone_frees_its_place():
    parent = Parent()
    first, second, third = map(Asking, PATHS)
    ((name, answer),), _ = parent.hear(first, LinkChanged(up=True))
    assert name == "a"
    for waiting in (second, third):
        assert parent.hear(waiting, LinkChanged(up=True)) == ([], 0)
    assert parent.node.own_state()["reads"] == {"now": 1, "waiting": 2, "most": 1}
    read = Heartbeat(answer.epoch, "x", answer.last_sequence, b"", b"", b"", 0, True, run="one")
    parent.tell(HeartbeatArrived("a", encode(read)))
    assert [name for name, _ in parent.answers] == ["b", "a"]
    parent.tell(ChildUnlinked("b"))
    assert parent.answers[-1][0] == "c"
    parent.now += READ_SECONDS
    parent.tell(Tick())
    assert parent.node.own_state()["reads"]["most"] == 1
