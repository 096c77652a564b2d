"""When a node's report is complete, what each child counts for, and which session is granted."""

import pytest

from relay.core.children import Child
from relay.core.reduce import EMPTY, merge, times, unreachable
from relay.core.reporting import Facts, Reporting
from schemas.identity import short_key
from schemas.objects import ObjectKey
from schemas.reports import (
    NEVER_JOINED,
    Heartbeat,
    ObjectResult,
    Report,
    ReportPart,
    SessionMessage,
    Summary,
    encode,
)
from schemas.wire import INT_MAX

KEY = short_key(bytes(20))
DONE = Summary({"synced": 1}, {"healthy": 1}, {"arm": 1})


def facts(**changes):
    said = {
        "concerned": True,
        "sent": True,
        "bearing": 5,
        "silent": False,
        "edge": True,
        "generation": 7,
        "most": 1,
    }
    return Facts(**{**said, **changes})


def report(answered=5, revision=1, generation=7, incarnation="i", summary=DONE, parts=0):
    return Report(KEY, 0, 1, revision, generation, incarnation, answered, False, parts, summary)


def summary_of(known, said=None):
    reporting = Reporting(lambda child: 0, lambda child, key: known)
    if said is not None:
        reporting.take("a", said, "i")
    reporting.refresh("a", KEY)
    return reporting.summary(KEY, EMPTY)


PENDING = Summary({"pending": 1}, {"unknown": 1}, {"older": 1}, (), 0, False, ("/a",))
GONE = Summary({"unreachable": 1}, {"unknown": 1}, {"older": 1})
OPEN = Summary(complete=False, blocking=("/a",))
LATE = Summary(DONE.states, DONE.health, DONE.arms, (), 0, False, ("/a",))
LOST = Summary({"unreachable": 1}, {"unknown": 1}, DONE.arms)
STALE, LEAVING = (
    Summary({state: 1}, DONE.health, {"older": 1}, (), 0, False, ("/a",))
    for state in ("pending", "leaving")
)


def test_who_never_joined_counts_apart_without_an_answer_behind_a_relay_by_the_profiles():
    one = Summary({NEVER_JOINED: 1}, {NEVER_JOINED: 1}, {"older": 1})
    never = {"joined": False, "bearing": None}
    assert summary_of(facts(**never)) == one
    assert summary_of(facts(**never, silent=True)) == one
    assert summary_of(facts(**never, edge=False, most=3)) == times(one, 3)
    assert summary_of(facts(**never, edge=False, most=0)) == EMPTY
    assert summary_of(facts(**never, concerned=False, most=0)) == EMPTY


def test_falling_silent_merges_with_those_that_never_joined():
    never = Summary({NEVER_JOINED: 2}, {NEVER_JOINED: 2}, {"older": 2})
    assert unreachable(merge(DONE, never)) == merge(unreachable(DONE), unreachable(never))
    assert unreachable(never).states == {NEVER_JOINED: 2}


def test_more_destinations_than_there_are_make_no_summary_complete():
    none = facts(concerned=False, edge=False, most=0)
    assert not summary_of(none, report()).complete
    assert not summary_of(facts(edge=False, most=1), report(summary=times(DONE, 2))).complete
    assert summary_of(facts(edge=False, most=2), report(summary=times(DONE, 2))).complete
    leaving = Summary({"leaving": 1}, DONE.health, DONE.arms)
    assert summary_of(none, report(summary=leaving)).complete


@pytest.mark.parametrize(
    ("known", "said", "counts"),
    [
        (facts(), report(), DONE),
        (facts(), report(answered=9), DONE),
        (facts(), report(answered=4), LATE),  # something was written to it since
        (facts(bearing=None), report(), LATE),  # something is still to be written to it
        (facts(), report(incarnation="h"), LATE),  # its sequences are of another incarnation
        (facts(generation=8, bearing=6), report(), STALE),  # it does not hold what is wanted now
        (facts(generation=8, bearing=6, concerned=False), report(), LEAVING),
        (facts(), None, PENDING),  # an edge has just one destination
        (facts(edge=False), None, OPEN),
        (facts(silent=True), None, GONE),  # the parent of an edge decides itself
        (facts(silent=True, edge=False), None, OPEN),  # never answered: named
        (facts(silent=True), report(), LOST),
        (facts(silent=True, edge=False), report(answered=4), LOST),
        (facts(concerned=False, sent=False), report(), EMPTY),
        (facts(concerned=False, sent=False), None, EMPTY),
        (facts(concerned=False), report(summary=EMPTY), EMPTY),
    ],
)
def test_a_child_counts_for_what_it_answered_or_keeps_the_report_open(known, said, counts):
    assert summary_of(known, said) == counts


def test_a_report_on_a_former_generation_counts_as_older():
    assert summary_of(facts(), report(generation=6)).arms == {"older": 1}


def test_an_older_report_is_passed_over():
    reporting = Reporting(lambda child: 0, lambda child, key: facts())
    assert reporting.take("a", report(revision=2), "i")
    assert not reporting.take("a", report(revision=1, summary=EMPTY), "i")
    assert reporting.summary(KEY, EMPTY) == DONE


def test_parts_above_those_named_are_ignored_and_a_stranger_leaves_nothing():
    one, two = (ObjectResult(ObjectKey("", "x", "n", name), 1, "d", b"") for name in "ab")
    reporting = Reporting(lambda child: 0, lambda child, key: facts())
    reporting.take_part("a", ReportPart(KEY, 1, 1, 1, 7, (one,)))
    reporting.take_part("a", ReportPart(KEY, 2, 1, 1, 7, (two,)))
    reporting.take("a", report(parts=1), "i")
    assert list(reporting.results(KEY, ())) == [one.key]
    closed = Reporting(lambda child: 0, lambda child, key: facts(concerned=False, sent=False))
    closed.take_part("a", ReportPart(KEY, 1, 1, 1, 7, (one,)))
    closed.take("a", report(), "i")
    assert not closed.dirty
    assert not closed.results(KEY, ())


def beat(epoch=0, sequence=5, digest=b"d", incarnation="i", last=0):
    return Heartbeat(epoch, incarnation, sequence, digest, b"", b"", 0, True, last_epoch=last)


MAIL = SessionMessage("i", 0, 5, 0, 0, "none")


@pytest.mark.parametrize(
    ("heartbeat", "want"),
    [
        (beat(), "none"),
        (beat(digest=b"x"), "again"),
        (beat(digest=b"x", sequence=4), "none"),  # they speak of different sequences
        (beat(digest=b"x", sequence=4, incarnation="h"), "again"),
        (beat(sequence=4, incarnation="h"), "none"),
    ],
)
def test_digests_are_compared_when_both_speak_of_the_same(heartbeat, want):
    assert Child("U", 0.0).answer(heartbeat, MAIL, b"d", 1000).want == want


@pytest.mark.parametrize(
    ("held", "last", "granted"), [(0, 0, 1000), (2000, 0, 2001), (0, 9000, 9001)]
)
def test_a_granted_epoch_is_higher_than_all_before(held, last, granted):
    child = Child("U", 0.0, epoch=held)
    assert child.answer(beat(last=last), MAIL, b"d", 1000).epoch == granted


def test_whatever_epoch_a_child_claims_the_answer_can_be_said():
    child = Child("U", 0.0)
    assert encode(child.answer(beat(last=INT_MAX), MAIL, b"d", 1000))
    for _ in range(3):
        assert encode(child.answer(beat(), MAIL, b"d", 1000))


def test_a_relay_out_of_reach_that_has_not_heard_who_left_it_makes_no_whole_count():
    known = facts(silent=True, edge=False, bearing=9)
    reporting = Reporting(lambda child: 0, lambda child, key: known)
    reporting.take("a", report(answered=5), "i")
    assert reporting.summary(KEY, EMPTY).complete
    reporting.regrouped("a", KEY, 8)
    reporting.refresh("a", KEY)
    assert reporting.summary(KEY, EMPTY).blocking == ("/a",)
    for said, whole in (
        (report(answered=7, revision=2), False),
        (report(answered=8, revision=3, incarnation="before"), False),
        (report(answered=8, revision=4), True),
        (report(answered=8, revision=5, incarnation="before"), True),
    ):
        reporting.take("a", said, "i")
        assert reporting.summary(KEY, EMPTY).complete is whole
    reporting.regrouped("a", KEY, 9)
    reporting.forget(KEY)
    reporting.take("a", report(answered=5, revision=6), "i")
    assert reporting.summary(KEY, EMPTY).complete
