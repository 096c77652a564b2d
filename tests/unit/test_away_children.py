"""What a parent knows of who is away outlives its own restart, in good order or not."""

from relay.core.effects import SendHello, StoreOwn
from relay.core.events import Ending, HelloArrived, OwnRecord, Remembered, ReportArrived, Tick
from tests.unit.meeting import Meeting
from tests.viewed_node import ViewedNode

NOTE = "_away_emea"
QUARTER_SECONDS = 900


def restarted(meeting):
    """The centre as it starts again, of what it keeps."""
    kept = [OwnRecord(it.key, it.data, "", 0) for it in meeting.centre.records.values()]
    notes = [it.data for it in meeting.done if isinstance(it, StoreOwn) and it.key == NOTE]
    kept += [OwnRecord(NOTE, data, "", 0) for data in notes[-1:] if data]
    remembered = Remembered(tuple(kept), heard=frozenset({"emea"}))
    meeting.centre = ViewedNode(meeting.centre.config, remembered, [], meeting.instant)
    meeting.centre.start()


def standing(meeting):
    return meeting.centre.standing_of("emea")


def last_hello(meeting, run, event):
    """The bytes of the last hello that a run says at an event."""
    said = [it.data for it in meeting.tell(run, event) if isinstance(it, SendHello)]
    return said[-1]


def silent():
    """A centre whose child was heard of last at its first hello, and its last word."""
    meeting = Meeting()
    first = meeting.join("one", "here")
    meeting.now += 30
    word, said_ms = last_hello(meeting, first, Tick()), meeting.instant.wall_ms
    meeting.centre_hears(HelloArrived("emea", word))
    meeting.now += 90
    meeting.centre_hears(Tick())
    return meeting, word, said_ms


def test_who_was_silent_is_so_since_the_same_moment_in_the_next_run():
    meeting, word, said_ms = silent()
    assert standing(meeting).silent_since_ms == said_ms
    meeting.now += QUARTER_SECONDS
    restarted(meeting)
    assert (standing(meeting).word, standing(meeting).silent_since_ms) == ("unreachable", said_ms)
    meeting.centre_hears(HelloArrived("emea", word, said_ms))
    meeting.centre_hears(ReportArrived("emea", "k", b"", 1))
    assert standing(meeting).word == "unreachable", "these were said to the former run"
    assert meeting.centre.heard("emea").last_ms == said_ms


def test_who_stopped_in_good_order_is_known_to_have_in_the_next_run():
    meeting = Meeting()
    word = last_hello(meeting, meeting.join("one", "here"), Ending())
    meeting.centre_hears(HelloArrived("emea", word))
    at_ms = meeting.instant.wall_ms
    meeting.now += QUARTER_SECONDS
    restarted(meeting)
    assert (standing(meeting).word, standing(meeting).silent_since_ms) == ("stopped", at_ms)
    meeting.centre_hears(HelloArrived("emea", word, at_ms))
    assert (standing(meeting).word, standing(meeting).silent_since_ms) == ("stopped", at_ms)


def test_a_farewell_that_nobody_was_there_to_hear_is_heard_by_the_next_run():
    meeting = Meeting()
    word = last_hello(meeting, meeting.join("one", "here"), Ending())
    at_ms = meeting.instant.wall_ms
    meeting.now += QUARTER_SECONDS
    restarted(meeting)
    assert standing(meeting).word == "connecting"
    meeting.centre_hears(HelloArrived("emea", word, at_ms))
    assert (standing(meeting).word, standing(meeting).silent_since_ms) == ("stopped", at_ms)


def test_who_fell_silent_while_the_parent_was_down_was_heard_of_last_before_that():
    meeting = Meeting()
    first = meeting.join("one", "here")
    meeting.now += 30
    word, said_ms = last_hello(meeting, first, Tick()), meeting.instant.wall_ms
    meeting.now += QUARTER_SECONDS
    restarted(meeting)
    meeting.centre_hears(HelloArrived("emea", word, said_ms))
    assert standing(meeting).word != "unreachable", "it may be on its way back"
    meeting.now += 90
    meeting.centre_hears(Tick())
    assert (standing(meeting).word, standing(meeting).silent_since_ms) == ("unreachable", said_ms)


def test_who_comes_back_is_there_and_the_note_is_erased():
    for home in ("here", "there"):
        meeting, word, said_ms = silent()
        restarted(meeting)
        meeting.centre_hears(HelloArrived("emea", word, said_ms))
        second = meeting.join("two", home)
        assert not second.stopped
        assert standing(meeting).word == "up"
        assert [it.data for it in meeting.done if getattr(it, "key", "") == NOTE][-1] is None
        restarted(meeting)
        assert standing(meeting).word == "connecting"


def test_the_run_that_was_silent_comes_back_itself():
    meeting, word, said_ms = silent()
    restarted(meeting)
    meeting.centre_hears(HelloArrived("emea", word, said_ms))
    meeting.centre_hears(HelloArrived("emea", word))
    assert standing(meeting).silent_since_ms is None


def test_a_child_is_noted_once_and_one_that_is_there_never():
    meeting, _, _ = silent()
    meeting.now += QUARTER_SECONDS
    meeting.centre_hears(Tick())
    notes = [it for it in meeting.done if isinstance(it, StoreOwn) and it.key == NOTE]
    assert len(notes) == 1
    assert not [it for it in Meeting().done if getattr(it, "key", "") == NOTE]


def test_a_note_that_cannot_be_read_counts_as_none():
    meeting, _, _ = silent()
    kept = [OwnRecord(it.key, it.data, "", 0) for it in meeting.centre.records.values()]
    remembered = Remembered((*kept, OwnRecord(NOTE, b"\xc1", "", 0)), heard=frozenset({"emea"}))
    meeting.centre = ViewedNode(meeting.centre.config, remembered, [], meeting.instant)
    assert standing(meeting).word == "connecting"
