"""A run that ends in good order says so: its parent need not wait for three heartbeats."""

from relay.core.effects import Noted, SendHeartbeat
from relay.core.events import ChildUnlinked, Ending, HeartbeatArrived, ReportArrived, Tick
from tests.unit.test_second_home import PATH, Meeting


def farewell(meeting, run):
    """The last words of a run; nothing if it was never in session."""
    return [e.data for e in meeting.tell(run, Ending()) if isinstance(e, SendHeartbeat)]


def hear(meeting, data):
    return meeting.tell(meeting.centre, HeartbeatArrived("emea", data))


def since(meeting):
    return meeting.centre.children()["emea"]


def test_a_child_that_said_farewell_is_unreachable_at_once_and_known_to_have_left():
    meeting = Meeting()
    first = meeting.join("one", "here")
    (last,) = farewell(meeting, first)

    effects = hear(meeting, last)

    assert since(meeting) == meeting.instant.wall_ms
    assert meeting.centre.left() == {"emea"}
    assert [e.reason for e in effects if isinstance(e, Noted)] == ["Left"]
    assert not [e for e in hear(meeting, last) if isinstance(e, Noted)], "said once"


def test_a_child_that_left_is_back_with_its_next_run_from_any_home():
    for home in ("here", "there"):
        meeting = Meeting()
        (last,) = farewell(meeting, meeting.join("one", "here"))
        hear(meeting, last)

        second = meeting.join("two", home)

        assert not second.superseded
        assert since(meeting) is None
        assert not meeting.centre.left()


def test_what_was_under_way_when_a_child_left_does_not_bring_it_back():
    meeting = Meeting()
    first = meeting.join("one", "here")
    meeting.now += 30
    (beat,) = [e.data for e in meeting.tell(first, Tick()) if isinstance(e, SendHeartbeat)]
    (last,) = farewell(meeting, first)
    hear(meeting, last)

    hear(meeting, beat)
    meeting.tell(meeting.centre, ReportArrived("emea", "_labels", b""))

    assert meeting.centre.left() == {"emea"}


def test_the_farewell_of_a_run_that_was_superseded_says_nothing_of_the_newer_one():
    meeting = Meeting()
    first = meeting.join("one", "here")
    (last,) = farewell(meeting, first)
    meeting.now += 1
    meeting.join("two", "here")

    hear(meeting, last)

    assert since(meeting) is None
    assert not meeting.centre.left()


def test_a_parent_that_starts_finds_the_farewell_in_its_streams():
    meeting = Meeting()
    (last,) = farewell(meeting, meeting.join("one", "here"))
    restarted = Meeting()

    hear(restarted, last)

    assert restarted.centre.left() == {"emea"}
    assert not restarted.join("two", "there").superseded


def test_a_node_that_was_never_in_session_says_no_farewell():
    meeting = Meeting()
    assert not farewell(meeting, meeting.node(PATH, "x"))
    assert not farewell(meeting, meeting.centre)


def test_another_home_is_let_in_once_the_link_of_the_first_is_gone():
    meeting = Meeting()
    meeting.join("one", "here")
    meeting.tell(meeting.centre, ChildUnlinked("emea"))
    assert since(meeting) is None, "a link may come back: that is no silence yet"

    assert not meeting.join("two", "there").superseded


def test_a_link_that_came_back_keeps_another_home_out():
    meeting = Meeting()
    first = meeting.join("one", "here")
    meeting.tell(meeting.centre, ChildUnlinked("emea"))
    meeting.now += 30
    meeting.beats(first, Tick())

    assert meeting.join("two", "there").superseded
