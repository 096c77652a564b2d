"""Nobody comes by a key that nobody came with in time: its parent looks, by its own clock."""

import os

import pytest

from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.core.effects import AddChild, Noted, RemoveChild, StoreOwn
from relay.core.events import HelloArrived, Instant, OwnRecord, Remembered, Tick
from relay.core.link.invitations import LOOK_SECONDS, Invitations
from relay.core.node import Node
from schemas.records.records import API_NODE, NodeRecord, Source, encode_payload
from schemas.reports.link import Hello
from schemas.reports.reports import NEVER_JOINED
from schemas.values.wire import encode
from tests.unit.meeting import NKEY, PATH, SIGNER, START_MS, TERM, TREE, Meeting

ANOTHER = new_user_nkey(os.urandom(32))[1]
MINUTE = 60.0
UNTIL = START_MS + 60_000
NOTE = "_session_emea"


class Invited(Meeting):
    """A centre with a child that may come within a minute, and did not yet."""

    def __init__(self, until_ms=UNTIL):
        super().__init__()
        self.key = self.invite(NKEY, until_ms)

    def record(self, nkey, until_ms):
        source = Source(API_NODE, TREE, "", str(PATH))
        return NodeRecord(source, self.generation + 1, TERM.hex(), "", PATH, nkey, until_ms)

    def invite(self, nkey, until_ms=UNTIL):
        return self.issue("node", self.record(nkey, until_ms))

    def hello(self, run="one"):
        hello = Hello(run, "home", "", 0, b"", 0)
        return self.centre_hears(HelloArrived("emea", encode(hello)))

    def after(self, seconds):
        self.now = seconds
        return self.centre_hears(Tick())

    @property
    def let_in_by(self):
        return [it.nkey for it in self.done if isinstance(it, AddChild) and it.path == PATH][-1]

    @property
    def notes(self):
        return [it for it in self.done if isinstance(it, StoreOwn) and it.key == NOTE]

    def again(self):
        """What a centre that starts again does, of what it keeps."""
        kept = [OwnRecord(it.key, it.data, "", 0) for it in self.centre.records.values()]
        kept += [OwnRecord(NOTE, it.data, "", 0) for it in self.notes[-1:] if it.data]
        self.centre = Node(self.centre.config, Remembered(tuple(kept)), [], self.instant)
        self.done += self.centre.start()
        return self.let_in_by


@pytest.fixture
def invited():
    return Invited()


def test_who_did_not_come_in_time_is_let_in_no_more_and_counts_for_nothing(invited):
    assert invited.centre.deadline() <= MINUTE + 0.001
    invited.after(MINUTE)
    assert invited.let_in_by == NKEY
    invited.after(MINUTE + 0.001)
    assert invited.let_in_by == ""
    assert Noted("Lapsed", "emea", "nobody joined with its bundle in time") in invited.done
    invited.hello()
    assert invited.centre.standing_of("emea").word == NEVER_JOINED
    assert invited.notes == []
    before = len(invited.done)
    invited.after(2 * MINUTE)
    assert AddChild(PATH, "") not in invited.done[before:]


def test_the_time_is_looked_at_before_anything_that_comes_after_it(invited):
    invited.now = MINUTE + 1
    invited.hello()
    assert invited.let_in_by == ""
    assert invited.notes == []


def test_who_came_in_time_comes_for_ever_also_after_a_restart(invited):
    invited.hello()
    invited.after(2 * MINUTE)
    assert invited.let_in_by == NKEY
    assert invited.again() == NKEY
    # A centre that was put back says the time once more.
    invited.invite(NKEY)
    assert invited.let_in_by == NKEY


def test_a_parent_that_was_off_meanwhile_opens_to_nobody_who_did_not_come(invited):
    invited.now = 2 * MINUTE
    assert invited.again() == ""


def test_a_record_that_arrives_late_opens_nothing():
    assert Invited(START_MS - 1).let_in_by == ""


def test_a_record_without_a_time_lets_in_again(invited):
    invited.after(2 * MINUTE)
    invited.invite(NKEY, 0)
    assert invited.let_in_by == NKEY
    assert invited.centre.deadline() is None or invited.centre.deadline() > 2 * MINUTE
    invited.after(3 * MINUTE)
    assert invited.let_in_by == NKEY


def test_a_bundle_that_takes_the_place_of_one_that_was_used_ends_as_well(invited):
    invited.hello()
    invited.invite(ANOTHER)
    assert [it.data for it in invited.notes][-1] is None
    # The run that has the former key says something yet.
    invited.hello()
    assert invited.again() == ANOTHER
    invited.after(MINUTE + 1)
    assert invited.let_in_by == ""


def test_a_bundle_that_takes_the_place_of_another_is_used_by_a_new_run(invited):
    invited.hello()
    invited.invite(ANOTHER)
    invited.hello("two")
    invited.after(2 * MINUTE)
    assert invited.let_in_by == ANOTHER


def test_of_a_child_that_goes_nothing_is_kept(invited):
    invited.hello()
    invited.sign(drop=[invited.key])
    assert RemoveChild(PATH) in invited.done
    assert invited.notes[-1].data is None


def test_a_clock_that_is_set_forward_is_noticed_soon():
    awaited = Invitations({}, [])
    awaited.put("late", NKEY, 10**9, 0)
    assert awaited.deadline(Instant(5.0, 0)) == 5.0 + LOOK_SECONDS
    assert awaited.deadline(Instant(5.0, 10**9 - 999)) == 6.0
    assert awaited.deadline(Instant(5.0, 10**9 + 999)) == 5.0
    assert awaited.take_lapsed(10**9) == []
    assert awaited.take_lapsed(10**9 + 1) == ["late"]
    assert awaited.deadline(Instant(5.0, 0)) is None


def test_an_older_record_says_no_time():
    record = NodeRecord(Source(API_NODE, TREE, "", str(PATH)), 1, TERM.hex(), "", PATH, NKEY)
    assert record.until_ms == 0
    assert SIGNER.seal("node", encode_payload(record)).kind == "node"
