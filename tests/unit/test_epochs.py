"""Of two runs with one identity the newer has the session, and the older stops; at every tier."""

import os

import pytest

from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.core.answers import node_answer
from relay.core.children import CONTESTED_SECONDS
from relay.core.effects import Noted, ResetMail, SendHeartbeat, SendSession
from relay.core.events import (
    HeartbeatArrived,
    Instant,
    LinkChanged,
    OwnRecord,
    Remembered,
    SessionArrived,
    Tick,
)
from relay.core.node import Node
from relay.core.state import NodeConfig
from schemas.identity import NodePath
from schemas.records import API_KEYS, API_NODE, KeyGrant, KeysRecord, NodeRecord, Source
from schemas.records import encode_payload as encoded
from schemas.reports import Heartbeat, SessionMessage, decode, encode
from tests.unit.test_second_home import ROOT, SIGNER, TREE

NKEY = new_user_nkey(os.urandom(32))[1]
ROOTS = {ROOT.key_id: ROOT.public_key}


class Link:
    """A parent that knows a child by its OWN, and runs of the child, all with one identity."""

    def __init__(self, child):
        self.path, self.now = NodePath.parse(child), 0.0
        self.parent = self.start_parent()

    def start_parent(self):
        grant = KeyGrant(SIGNER.key_id, SIGNER.public_key, ("node",))
        keys = KeysRecord(Source(API_KEYS, TREE, "", "keys"), 1, False, "", (), (grant,))
        source = Source(API_NODE, TREE, "", str(self.path))
        node = NodeRecord(source, 2, False, "", (), self.path, NKEY)
        own = tuple(
            OwnRecord(key, signer.seal(kind, encoded(record)).encode(), "", 0)
            for key, signer, kind, record in (
                ("_keys", ROOT, "keys", keys),
                (source.key, SIGNER, "node", node),
            )
        )
        config = NodeConfig(self.path.parent, TREE, ROOTS, os.urandom(8).hex())
        return Node(config, Remembered(own=own), [], self.instant)

    @property
    def instant(self):
        return Instant(self.now, 1_000_000 + int(self.now * 1000))

    def run(self, name):
        config = NodeConfig(self.path, TREE, ROOTS, name, home="one place")
        return Node(config, Remembered(), [], self.instant)

    def tell(self, child, event, *others, hears=True):
        """Tell a run of the child, and all runs what the parent answers; what they note."""
        noted = []
        for effect in child.handle(event, self.instant):
            if not isinstance(effect, SendHeartbeat):
                continue
            heard = HeartbeatArrived(self.path.name, effect.data)
            for answer in self.parent.handle(heard, self.instant):
                if isinstance(answer, SendSession):
                    said = SessionArrived(decode(SessionMessage, answer.data))
                    for run in (child, *others) if hears else ():
                        noted += [e for e in run.handle(said, self.instant) if type(e) is Noted]
        return [effect.reason for effect in noted]


@pytest.fixture(params=["/emea", "/emea/s1", "/emea/s1/till"])
def link(request):
    return Link(request.param)


def test_the_newer_run_wins_and_the_older_stops(link):
    older, newer = link.run("older"), link.run("newer")
    link.tell(older, LinkChanged(up=True))
    assert "Superseded" in link.tell(newer, LinkChanged(up=True), older)
    assert (older.superseded, newer.superseded) == (True, False)


def test_by_the_last_word_of_the_older_a_parent_knows_that_there_were_two_at_a_time(link):
    older, newer = link.run("older"), link.run("newer")
    link.tell(older, LinkChanged(up=True))
    [asks] = [e.data for e in newer.handle(LinkChanged(up=True), link.instant)]
    effects = link.parent.handle(HeartbeatArrived(link.path.name, asks), link.instant)
    # It may have ended before: by the newer one's question alone nobody can tell.
    assert not [e for e in effects if type(e) is Noted]
    [taken] = [e.data for e in effects if isinstance(e, SendSession)]
    heard = older.handle(SessionArrived(decode(SessionMessage, taken)), link.instant)
    [last] = [e.data for e in heard if isinstance(e, SendHeartbeat)]
    assert older.superseded
    effects = link.parent.handle(HeartbeatArrived(link.path.name, last), link.instant)
    noted = [(e.reason, e.subject) for e in effects if type(e) is Noted]
    assert noted == [("SecondRun", link.path.name)]


def contests(link):
    return node_answer(link.parent, "/")["children"][link.path.name]["contested"]


def test_copies_that_take_the_session_from_one_another_are_counted_while_they_do(link):
    """As two machines do where something starts each again: every start ends the other's run."""
    up = link.run("copy 0")
    link.tell(up, LinkChanged(up=True))
    for number in range(1, 5):
        link.now += 5
        newer = link.run(f"copy {number}")
        link.tell(newer, LinkChanged(up=True))
        # The older one's last heartbeat may come more than once: the slot is read again.
        last = Heartbeat(
            up._state.inbox.epoch, "", 0, b"", b"", b"", 0, False, run=f"copy {number - 1}"
        )
        for _ in range(2):
            link.parent.handle(HeartbeatArrived(link.path.name, encode(last)), link.instant)
        assert contests(link) == number
        up = newer
    link.now += CONTESTED_SECONDS + 1
    link.parent.handle(Tick(), link.instant)
    assert contests(link) == 0


def test_a_run_that_is_started_again_after_its_end_contests_nothing(link):
    for number in range(4):
        link.now += 5
        link.tell(link.run(f"run {number}"), LinkChanged(up=True))
    assert contests(link) == 0


def test_an_older_run_that_missed_the_news_is_told_at_its_next_heartbeat(link):
    older, newer = link.run("older"), link.run("newer")
    link.tell(older, LinkChanged(up=True))
    link.tell(newer, LinkChanged(up=True))
    assert not older.superseded
    link.now += 30
    assert link.tell(older, Tick(), newer) == ["Superseded"]
    assert (older.superseded, newer.superseded) == (True, False)


def test_a_parent_that_starts_again_gives_the_session_to_one_run_only(link):
    older, newer = link.run("older"), link.run("newer")
    link.tell(older, LinkChanged(up=True))
    link.tell(newer, LinkChanged(up=True))
    link.parent = link.start_parent()
    for _ in range(4):
        link.now += 30
        for run, other in ((older, newer), (newer, older)):
            if not run.superseded:
                link.tell(run, Tick(), *([] if other.superseded else [other]))
    assert older.superseded != newer.superseded


def test_epochs_only_grow_also_over_a_start_of_the_parent_and_a_clock_set_back(link):
    run = link.run("one")
    link.tell(run, LinkChanged(up=True))
    before = run.own_state()["epoch"]
    link.parent = link.start_parent()
    link.now += 1
    link.parent._state.now = Instant(link.now, 5)
    for effect in run.handle(LinkChanged(up=True), Instant(link.now, 5)):
        if isinstance(effect, SendHeartbeat):
            heard = HeartbeatArrived(link.path.name, effect.data)
            for answer in link.parent.handle(heard, Instant(link.now, 5)):
                if isinstance(answer, SendSession):
                    message = decode(SessionMessage, answer.data)
                    run.handle(SessionArrived(message), Instant(link.now, 5))
    assert run.own_state()["epoch"] > before


def test_what_a_parent_that_starts_finds_of_an_older_session_begins_none(link):
    run = link.run("one")
    link.tell(run, LinkChanged(up=True))
    link.now += 30
    (old,) = [e.data for e in run.handle(Tick(), link.instant) if isinstance(e, SendHeartbeat)]
    link.tell(run, LinkChanged(up=True))
    granted = run.own_state()["epoch"]
    link.parent = link.start_parent()
    run.handle(LinkChanged(up=True), link.instant)
    for answer in link.parent.handle(HeartbeatArrived(link.path.name, old), link.instant):
        if isinstance(answer, SendSession):
            run.handle(SessionArrived(decode(SessionMessage, answer.data)), link.instant)
    link.now += 3
    link.tell(run, Tick())
    assert run.own_state()["epoch"] > granted


def test_who_asks_anew_begins_with_no_answer_to_what_it_said_in_the_session_before(link):
    """A parent put back to an old disk finds it there: it compared what was held at that time."""
    run = link.run("one")
    link.tell(run, LinkChanged(up=True))
    before = run.own_state()["epoch"]
    link.now += 30
    (old,) = [e.data for e in run.handle(Tick(), link.instant) if isinstance(e, SendHeartbeat)]
    link.parent = link.start_parent()
    run.handle(LinkChanged(up=True), link.instant)
    begun = []
    for answer in link.parent.handle(HeartbeatArrived(link.path.name, old), link.instant):
        if isinstance(answer, SendSession):
            begun += run.handle(SessionArrived(decode(SessionMessage, answer.data)), link.instant)
    assert not [effect for effect in begun if isinstance(effect, ResetMail)]
    link.now += 3
    link.tell(run, Tick())
    assert run.own_state()["epoch"] > before


def test_nor_with_what_a_parent_says_after_it_answered_an_old_question_once_more(link):
    """Put back to an old disk it grants a session to that, and tells what comes later of it."""
    run = link.run("one")
    asked = [e.data for e in run.handle(LinkChanged(up=True), link.instant) if _is_beat(e)]
    for data in asked:
        for answer in link.parent.handle(HeartbeatArrived(link.path.name, data), link.instant):
            if isinstance(answer, SendSession):
                run.handle(SessionArrived(decode(SessionMessage, answer.data)), link.instant)
    link.now += 30
    asked += [e.data for e in run.handle(Tick(), link.instant) if _is_beat(e)]
    run.handle(LinkChanged(up=True), link.instant)
    link.parent, begun = link.start_parent(), []
    for data in asked:
        for answer in link.parent.handle(HeartbeatArrived(link.path.name, data), link.instant):
            if isinstance(answer, SendSession):
                said = SessionArrived(decode(SessionMessage, answer.data))
                begun += run.handle(said, link.instant)
    assert len(asked) == 2
    assert not [effect for effect in begun if isinstance(effect, ResetMail)]


def _is_beat(effect):
    return isinstance(effect, SendHeartbeat)


def test_an_older_run_whose_link_comes_back_does_not_take_the_session_back(link):
    """Two servers with one name cut each other's link: each run begins again, in turn."""
    older, newer = link.run("older"), link.run("newer")
    link.tell(older, LinkChanged(up=True))
    older.handle(LinkChanged(up=False), link.instant)
    link.tell(newer, LinkChanged(up=True))
    newer.handle(LinkChanged(up=False), link.instant)
    link.now += 1
    assert "Superseded" in link.tell(older, LinkChanged(up=True))
    assert "Superseded" not in link.tell(newer, LinkChanged(up=True))
    assert (older.superseded, newer.superseded) == (True, False)


def test_an_older_run_that_never_heard_of_its_session_is_told_to_stop(link):
    """Its first answer was lost, and a newer run asked before it did so again."""
    older, newer = link.run("older"), link.run("newer")
    link.tell(older, LinkChanged(up=True), hears=False)
    link.tell(newer, LinkChanged(up=True))
    link.now += 3
    assert link.tell(older, Tick(), newer) == ["Superseded"]
    assert (older.superseded, older.second) == (True, False)
    assert not newer.superseded
