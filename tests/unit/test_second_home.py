"""A node that runs already is not run twice: the second one is told to stop, the first goes on."""

from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.core.effects import Noted
from relay.core.events import HelloArrived, LinkChanged, Tick, Welcomed
from schemas.records.records import API_NODE, NodeRecord, Source
from schemas.reports.link import Repair, Welcome
from tests.unit.meeting import NKEY, PATH, TERM, TREE, Meeting, hellos

OTHER_KEY = new_user_nkey(bytes(32))[1]


def reasons(meeting):
    """What people are told of."""
    return [effect.reason for effect in meeting.done if isinstance(effect, Noted)]


def test_a_second_home_is_told_to_stop_while_the_first_is_heard_of():
    meeting = Meeting()
    first = meeting.join("one", "here")

    second = meeting.join("two", "there")

    assert second.stopped
    assert meeting.wait(first, 30) == [], "there is nothing to tell it"
    assert not first.stopped
    assert reasons(meeting) == ["SecondHome"]


def test_the_same_home_comes_back_at_once_and_another_when_the_first_fell_silent():
    meeting = Meeting()
    meeting.join("one", "here")
    assert not meeting.join("two", "here").stopped

    meeting.now += 91
    meeting.centre_hears(Tick())
    third = meeting.join("three", "there")
    assert not third.stopped
    assert meeting.wait(third, 30) == []


def test_who_was_told_to_stop_asks_again_each_minute_and_says_nothing_else():
    meeting = Meeting()
    first = meeting.join("one", "here")
    second = meeting.join("two", "there")

    for _ in range(6):
        said = []
        for _ in range(2):
            meeting.wait(first, 30)
            said += meeting.tell(second, Tick())
        assert len(hellos(said)) == 1
        assert {type(effect).__name__ for effect in said} <= {"SendHello", "StoreOwn"}

    meeting.now += 91
    answers = meeting.talk(second, Tick())
    assert [it.repair for it in answers] == [Repair.STOP], "silence is found out by the clock"
    meeting.wait(second, 60)
    assert not second.stopped


def test_a_run_that_lost_its_place_to_another_home_stops_when_its_link_is_back():
    meeting = Meeting()
    first = meeting.join("one", "here")
    meeting.now += 91
    meeting.centre_hears(Tick())
    second = meeting.join("two", "there")

    meeting.tell(first, LinkChanged(up=False))
    meeting.talk(first, LinkChanged(up=True))

    assert first.stopped
    assert not second.stopped


def test_a_hello_of_before_the_parents_restart_holds_its_place_until_it_falls_silent():
    old = Meeting()
    first = old.join("one", "here")
    old.now += 30
    kept = [e.data for e in old.tell(first, Tick()) if type(e).__name__ == "SendHello"]

    restarted = Meeting()
    for data in kept:
        restarted.centre_hears(HelloArrived("emea", data))

    assert restarted.join("two", "there").stopped
    restarted.now += 91
    restarted.centre_hears(Tick())
    assert not restarted.join("three", "there").stopped


def give(meeting, nkey):
    """The centre lets the child in by these keys."""
    source = Source(API_NODE, TREE, "", str(PATH))
    meeting.issue("node", NodeRecord(source, meeting.generation + 1, TERM.hex(), "", PATH, nkey))


def test_whoever_comes_by_a_new_key_has_the_place_at_once_wherever_it_runs():
    """The former run cannot come any more; what it said before counts for nothing."""
    meeting = Meeting()
    first = meeting.join("one", "here")
    meeting.now += 30
    under_way = [e.data for e in meeting.tell(first, Tick()) if type(e).__name__ == "SendHello"]

    give(meeting, OTHER_KEY)
    assert reasons(meeting) == ["Unreachable"]
    for data in under_way:
        meeting.centre_hears(HelloArrived("emea", data))
    second = meeting.join("two", "there")

    assert not second.stopped
    assert meeting.wait(second, 30) == []
    assert meeting.join("three", "elsewhere").stopped, "its place is as safe as any"


def test_who_changes_over_from_key_to_key_keeps_its_place():
    meeting = Meeting()
    first = meeting.join("one", "here")
    give(meeting, f"{NKEY} {OTHER_KEY}")
    give(meeting, OTHER_KEY)

    assert meeting.join("two", "there").stopped
    assert meeting.wait(first, 30) == []
    assert reasons(meeting) == ["SecondHome"]


def test_a_stop_that_is_said_to_another_run_stops_nobody():
    meeting = Meeting()
    first = meeting.join("one", "here")
    meeting.tell(first, Welcomed(Welcome("elsewhere", "two", 0, b"", Repair.STOP)))
    assert not first.stopped
    assert meeting.node(PATH, "x").stopped is False
