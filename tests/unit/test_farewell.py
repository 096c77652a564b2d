"""A run that ends in good order says so: its parent need not wait until it is silent for long."""

import pytest

from relay.core.effects import Noted, SendHello
from relay.core.events import Ending, HelloArrived, ReportArrived, Tick
from tests.unit.meeting import PATH, Meeting


def farewell(meeting, run):
    """The last words of a run; nothing if it was never in session."""
    return [e.data for e in meeting.tell(run, Ending()) if isinstance(e, SendHello)]


def hear(meeting, data):
    return meeting.centre_hears(HelloArrived("emea", data))


def standing(meeting):
    return meeting.centre.standing_of("emea")


def test_a_child_that_said_farewell_is_unreachable_at_once_and_known_to_have_left():
    meeting = Meeting()
    first = meeting.join("one", "here")
    (last,) = farewell(meeting, first)

    effects = hear(meeting, last)

    assert standing(meeting).silent_since_ms == meeting.instant.wall_ms
    assert standing(meeting).word == "stopped"
    assert [e.reason for e in effects if isinstance(e, Noted)] == ["Left"]
    assert not [e for e in hear(meeting, last) if isinstance(e, Noted)], "said once"


@pytest.mark.parametrize("home", ["here", "there"])
def test_a_child_that_left_is_back_with_its_next_run_from_any_home(home):
    meeting = Meeting()
    (last,) = farewell(meeting, meeting.join("one", "here"))
    hear(meeting, last)

    second = meeting.join("two", home)

    assert not second.stopped
    assert standing(meeting).word == "up"


def test_what_was_under_way_when_a_child_left_does_not_bring_it_back():
    meeting = Meeting()
    first = meeting.join("one", "here")
    meeting.now += 30
    (late,) = [e.data for e in meeting.tell(first, Tick()) if isinstance(e, SendHello)]
    (last,) = farewell(meeting, first)
    hear(meeting, last)

    hear(meeting, late)
    meeting.centre_hears(ReportArrived("emea", "k", b"", 1))

    assert standing(meeting).word == "stopped"


def test_the_farewell_of_a_run_that_was_superseded_says_nothing_of_the_newer_one():
    meeting = Meeting()
    first = meeting.join("one", "here")
    (last,) = farewell(meeting, first)
    meeting.now += 1
    meeting.join("two", "here")

    hear(meeting, last)

    assert standing(meeting).word == "up"


def test_a_node_that_was_never_in_session_says_no_farewell():
    meeting = Meeting()
    assert not farewell(meeting, meeting.node(PATH, "x"))
    assert not farewell(meeting, meeting.centre)
