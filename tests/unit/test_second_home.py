"""A node that runs already is not run twice: the second one is told to stop, the first goes on."""

from relay.core.effects import Noted
from relay.core.events import HelloArrived, LinkChanged, Tick, Welcomed
from schemas.link import Repair, Welcome
from tests.unit.meeting import PATH, Meeting, hellos


def test_a_second_home_is_told_to_stop_while_the_first_is_heard_of():
    meeting = Meeting()
    first = meeting.join("one", "here")

    second = meeting.join("two", "there")

    assert second.stopped
    assert meeting.wait(first, 30) == [], "there is nothing to tell it"
    assert not first.stopped
    assert [e.reason for e in meeting.done if isinstance(e, Noted)] == ["SecondHome"]


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


def test_a_stop_that_is_said_to_another_run_stops_nobody():
    meeting = Meeting()
    first = meeting.join("one", "here")
    meeting.tell(first, Welcomed(Welcome("elsewhere", "two", 0, b"", Repair.STOP)))
    assert not first.stopped
    assert meeting.node(PATH, "x").stopped is False
