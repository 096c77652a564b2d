"""What each child counts for: what it reported if it is in step, else what is expected there."""

import pytest

from relay.core.collectors.collected_results import CollectedResults
from relay.core.content.content import Content
from relay.core.gates import GateNames
from relay.core.link.session import Presence
from relay.core.reports.child_reports import (
    UNSENT_BYTES_MAX,
    UNSENT_MAX,
    ChildReports,
    ExpectedCounts,
    ExpectedWaves,
)
from relay.core.reports.reduce import EMPTY, repeated
from schemas.objects.objects import ObjectKey
from schemas.reports.collectors import Collected
from schemas.reports.reports import (
    ExceptionSample,
    ObjectResult,
    Report,
    ReportPart,
    Summary,
    part_key,
)
from schemas.reports.states import NEVER_JOINED
from schemas.values.identity import short_key
from schemas.values.wire import encode, replace

NOT_COLLECTED = CollectedResults(Content((), []), None)
KEY = short_key(bytes(20))
UNSENT = [short_key(at.to_bytes(20, "big")) for at in range(1, UNSENT_MAX + 2)]
DONE = Summary({"synced": 1}, {"healthy": 1}, {"arm": 1})
IN_STEP = Presence.IN_STEP


def facts(**changes):
    said = {"expected": 1, "sent": True, "generation": 7, "presence": IN_STEP, "edge": True}
    return ExpectedCounts(**{**said, **changes})


def report(revision=1, generation=7, run="r", summary=DONE, parts=0, gone=False, key=KEY):
    return Report(key, 0, run, revision, generation, gone, parts, summary)


def reports(known):
    """The reports of children whose first run is `r`, and who are as `known`."""
    found = ChildReports(
        lambda child: ord(child) - ord("a"), lambda _child, _key: known, NOT_COLLECTED
    )
    for child in "ab":
        found.void_until_repeated(child, "r")
    return found


def summary_of(known, said=None):
    found = reports(known)
    if said is not None:
        found.take("a", said)
    found.refresh("a", KEY)
    found.assert_invariants()
    return found.summary(KEY)


def counted(state, health="unknown", count=1):
    return repeated(Summary({state: 1}, {health: 1}, {"older": 1}), count)


PENDING = counted("pending")


@pytest.mark.parametrize(
    ("presence", "state", "health"),
    [
        (Presence.NEVER_JOINED, NEVER_JOINED, NEVER_JOINED),
        (Presence.SILENT, "unreachable", "unknown"),
        (Presence.LEFT, "unreachable", "unknown"),
        (Presence.CATCHING_UP, "pending", "unknown"),
    ],
)
@pytest.mark.parametrize("said", [None, report(), report(run="before"), report(generation=6)])
def test_of_a_child_that_is_not_in_step_what_is_expected_counts(presence, state, health, said):
    for expected in (1, 3):
        known = facts(presence=presence, expected=expected, edge=expected == 1)
        assert summary_of(known, said) == counted(state, health, expected)
    assert summary_of(facts(presence=presence, expected=0), said) == EMPTY


@pytest.mark.parametrize(
    ("known", "said", "counts"),
    [
        (facts(), report(), DONE),
        (facts(edge=False, expected=2), report(summary=repeated(DONE, 2)), repeated(DONE, 2)),
        (facts(), None, PENDING),
        (facts(edge=False, expected=3), None, repeated(PENDING, 3)),
        (facts(), report(run="before"), PENDING),
        (facts(), report(gone=True, summary=EMPTY), PENDING),
        (facts(), report(generation=6), counted("pending", "progressing")),
        (facts(expected=0), report(generation=6), counted("leaving", "unknown")),
        (facts(expected=0), report(gone=True, summary=EMPTY), EMPTY),
        (facts(), report(generation=8), counted("pending", "progressing")),
        (facts(expected=0, sent=False), report(), EMPTY),
        (facts(expected=0, sent=False), None, EMPTY),
    ],
)
def test_of_a_child_in_step_what_it_reported_counts(known, said, counts):
    assert summary_of(known, said) == counts


@pytest.mark.parametrize(
    "said",
    [
        Summary({"synced": 1_000_000}, {"healthy": 1_000_000}, {"arm": 1_000_000}),
        Summary({"leaving": 1}, {"healthy": 1}, {"arm": 1}),
        EMPTY,
    ],
    ids=["many", "leaving", "nobody"],
)
def test_an_edge_counts_for_one_destination_whatever_it_says(said):
    assert summary_of(facts(), report(summary=said)) == PENDING


def test_an_older_report_is_passed_over():
    found = reports(facts())
    assert found.take("a", report(revision=2))
    assert found.take("a", report(revision=1, summary=EMPTY))
    assert found.summary(KEY) == DONE


def test_a_report_of_another_run_than_the_present_one_is_not_kept():
    found = reports(facts())
    found.take("a", report())
    assert not found.take("a", report(run="before", revision=9, summary=EMPTY))
    assert not found.take_part("a", ReportPart(KEY, 1, "before", 9, 7, ()))
    assert found.summary(KEY) == DONE


def test_what_came_before_the_hello_counts_once_its_run_is_the_present_one():
    found = ChildReports(lambda child: 0, lambda _child, _key: facts(), NOT_COLLECTED)
    found.take("a", report())
    assert found.summary(KEY) == PENDING
    found.void_until_repeated("a", "r")
    found.refresh_child("a")
    assert found.summary(KEY) == DONE
    assert found.drop_void("a", "r") == []
    found.assert_invariants()


def test_who_reports_other_rows_and_the_same_counts_has_them_passed_on():
    room = CollectedResults(Content((), []), None)
    found = ChildReports(lambda _child: 0, lambda _child, _key: facts(), room)
    found.void_until_repeated("a", "r")
    rows = (Collected(ObjectKey("", "x", "n", "o"), "program", bytes(16), b"rows"),)
    others = (replace(rows[0], rows=b"others"),)
    passed_on = []
    for revision, said in enumerate((rows, rows, others, ()), 1):
        assert found.take("a", replace(report(revision), collected=said))
        passed_on.append(KEY in found.take_dirty())
    assert passed_on == [True, False, True, True]


def test_what_a_new_run_did_not_say_is_erased_with_its_first_progress():
    other = short_key(b"1" * 20)
    found = reports(facts())
    found.take("a", report())
    found.take("a", report(key=other, parts=1))
    found.take_part("a", ReportPart(other, 1, "r", 1, 7, (RESULT,)))
    found.void_until_repeated("a", "s")
    found.take("a", report(run="s"))
    found.assert_invariants()
    assert found.drop_void("a", "r") == []
    assert sorted(found.drop_void("a", "s")) == sorted([other, part_key(other, 1)])
    found.assert_invariants()
    assert (found.summary(KEY), found.summary(other)) == (DONE, PENDING)
    assert not found.results(other)
    assert found.drop_void("a", "s") == []


def test_who_says_everything_again_loses_what_it_does_not_say_again():
    other = short_key(b"1" * 20)
    found = reports(facts())
    for at, key in enumerate((KEY, other)):
        found.take("a", report(revision=at + 1, key=key))
    found.void_until_repeated("a", "r")
    assert found.digest("a") == bytes(16)
    found.take("a", report(revision=3))
    found.assert_invariants()
    assert found.drop_void("a", "r") == [other]
    assert found.summary(KEY) == DONE
    found.assert_invariants()


RESULT = ObjectResult(ObjectKey("", "x", "n", "a"), 1, "d", b"")


def test_parts_above_those_named_go():
    other = ObjectResult(ObjectKey("", "x", "n", "b"), 1, "d", b"")
    found = reports(facts())
    found.take_part("a", ReportPart(KEY, 1, "r", 1, 7, (RESULT,)))
    found.take_part("a", ReportPart(KEY, 2, "r", 1, 7, (other,)))
    found.take("a", report(parts=1))
    assert list(found.results(KEY)) == [RESULT.key]
    found.take("a", report(revision=2, gone=True))
    assert not found.results(KEY)
    found.assert_invariants()


@pytest.mark.parametrize("presence", [IN_STEP, Presence.SILENT])
def test_who_has_to_let_go_of_a_placement_returns_no_state_of_it(presence):
    known = {"a": facts(expected=0, presence=presence), "b": facts()}
    found = ChildReports("ab".index, lambda child, _key: known[child], NOT_COLLECTED)
    for child, status in (("a", b"former"), ("b", b"present")):
        found.void_until_repeated(child, "r")
        found.take(child, report(parts=1))
        result = replace(RESULT, destination=child, status=status)
        found.take_part(child, ReportPart(KEY, 1, "r", 1, 7, (result,)))
    assert [item.status for item in found.results(KEY).values()] == [b"present"]


def test_only_what_its_present_run_said_is_gone_is_gone():
    found = reports(facts(expected=0))
    assert not found.take("a", report(gone=True, summary=EMPTY))
    assert found.is_gone("a", KEY)
    assert not found.knows("a", KEY)
    found.void_until_repeated("a", "s")
    assert not found.is_gone("a", KEY)
    found.take("a", report(run="s", revision=2))
    assert not found.is_gone("a", KEY)
    assert found.knows("a", KEY)


def test_what_a_child_was_not_sent_counts_for_nothing_but_belongs_to_its_digest():
    known = {KEY: facts(), **dict.fromkeys(UNSENT, facts(expected=0, sent=False))}
    found = ChildReports(lambda _child: 0, lambda _child, key: known[key], NOT_COLLECTED)
    found.void_until_repeated("a", "r")
    for at, key in enumerate(UNSENT[:-1], 1):
        assert found.take("a", report(at, key=key))
    before = found.digest("a")
    assert not found.take("a", report(UNSENT_MAX + 1, key=UNSENT[-1]))
    assert found.take("a", report(UNSENT_MAX + 2))
    assert before not in (bytes(16), found.digest("a"))
    assert found.summary(UNSENT[0]) == EMPTY
    # One that it was sent meanwhile leaves room for another, and counts.
    known[UNSENT[0]] = facts()
    found.refresh("a", UNSENT[0])
    assert found.summary(UNSENT[0]) == DONE
    assert found.take("a", report(UNSENT_MAX + 3, key=UNSENT[-1]))
    found.assert_invariants()
    found.take("a", report(UNSENT_MAX + 4, key=UNSENT[1], gone=True))
    found.assert_invariants()


def test_a_flood_of_reports_on_what_a_child_was_not_sent_costs_each_the_same():
    asked = 0

    def counted(_child, _key):
        nonlocal asked
        asked += 1
        return facts(expected=0, sent=False)

    found = ChildReports(lambda _child: 0, counted, NOT_COLLECTED)
    found.void_until_repeated("a", "r")
    for at, key in enumerate(UNSENT[:-1], 1):
        assert found.take("a", report(at, key=key))
    asked, flood = 0, 4 * UNSENT_MAX
    for at in range(flood):
        assert not found.take("a", report(UNSENT_MAX + at, key=UNSENT[-1]))
    # A look at all of them for each took 10 ms: a child that said 2,000 a second stopped the node.
    assert asked <= 3 * flood


def test_of_what_a_child_was_not_sent_only_so_many_bytes_are_kept():
    found = reports(facts(expected=0, sent=False))
    long = [ExceptionSample(1, f"Deployment/{at}", "x" * 700, 1, "/a") for at in range(20)]
    large = replace(DONE, exceptions=tuple(long))
    most = UNSENT_BYTES_MAX // len(encode(large))
    taken = [found.take("a", report(at, key=key, summary=large)) for at, key in enumerate(UNSENT)]
    assert sum(taken) == most
    found.assert_invariants()
    some = UNSENT[: most + 1]
    small = [found.take("b", report(at, key=key)) for at, key in enumerate(some, 1)]
    assert all(small), "each child has room of its own"
    grown = [
        found.take("b", report(UNSENT_MAX + at, key=key, summary=large))
        for at, key in enumerate(some)
    ]
    assert sum(grown) == most, "one that is known needs room for what is new in it"
    found.assert_invariants()


def test_a_child_that_goes_leaves_nothing():
    found = reports(facts())
    for child in "ab":
        found.take(child, report(parts=1))
        found.take_part(child, ReportPart(KEY, 1, "r", 1, 7, (RESULT,)))
    assert found.summary(KEY) == repeated(DONE, 2)
    assert found.by_child(KEY) == {"a": DONE, "b": DONE}
    found.forget_child("a")
    found.assert_invariants()
    assert found.by_child(KEY) == {"b": DONE}
    assert found.digest("a") == bytes(16)


def test_what_changes_is_dirty_once():
    found = reports(facts())
    found.take("a", report())
    assert list(found.take_dirty()) == [KEY]
    found.take("a", report(revision=2))
    assert not found.take_dirty()
    found.refresh_child("a")
    assert list(found.take_dirty()) == [KEY]
    found.refresh_child("b")
    assert not found.take_dirty()


STEADY = ExpectedWaves(
    5,
    lambda: GateNames(frozenset({"arm"}), frozenset({"2.0", "2.1"})),
    False,
    lambda: {"2.0": 1, "2.1": 2, "": 1},
)
ALONE = STEADY._replace(expected=lambda: {"2.0": 1})


@pytest.mark.parametrize(
    ("presence", "state", "health"),
    [
        (Presence.NEVER_JOINED, NEVER_JOINED, NEVER_JOINED),
        (Presence.SILENT, "unreachable", "unknown"),
        (Presence.CATCHING_UP, "pending", "unknown"),
        (IN_STEP, "pending", "unknown"),
    ],
)
def test_who_does_not_speak_is_counted_in_the_wave_that_the_signed_profiles_say(
    presence, state, health
):
    known = facts(presence=presence, expected=4, edge=False, rollout=STEADY)
    cells = {f"2.0/{state}/{health}": 1, f"2.1/{state}/{health}": 2}
    assert summary_of(known) == replace(counted(state, health, 4), cells=cells)


def test_a_step_makes_nothing_look_pending_that_did_not_change():
    said = replace(DONE, cells={"2.0/synced/healthy": 1})
    assert summary_of(facts(rollout=ALONE), report(summary=said)) == said
    for generation in (5, 6):
        counts = summary_of(facts(rollout=ALONE), report(generation=generation, summary=said))
        assert counts == replace(DONE, cells={"former": 1})


@pytest.mark.parametrize(
    ("generation", "rollout"),
    [(4, ALONE), (6, ALONE._replace(refused=True))],
    ids=["before it", "refused"],
)
def test_what_was_said_before_the_rollout_or_cannot_be_sent_is_pending(generation, rollout):
    before = summary_of(facts(rollout=rollout), report(generation=generation))
    assert before == replace(PENDING, cells={"2.0/pending/unknown": 1})


@pytest.mark.parametrize(
    ("generation", "cells"),
    [(6, {"2.0/synced/healthy": 1}), (7, {"former": 1}), (7, {"other": 1})],
    ids=["older", "former", "other"],
)
def test_an_edge_that_answered_the_step_and_tells_no_wave_of_it_is_pending(generation, cells):
    said, known = replace(DONE, cells=cells), facts(rollout=ALONE._replace(answered=True))
    counts = summary_of(known, report(generation=generation, summary=said))
    assert counts == replace(PENDING, cells={"2.0/pending/unknown": 1})


def test_of_a_former_step_an_arm_that_has_no_name_any_more_is_older():
    said = Summary({"synced": 2}, {"healthy": 2}, {"arm": 1, "b" * 64: 1})
    known = facts(expected=2, edge=False, rollout=STEADY)
    counts = summary_of(known, report(generation=6, summary=said))
    assert counts.arms == {"arm": 1, "older": 1}
    assert (counts.cells, counts.states) == ({"former": 2}, {"synced": 2})


def test_who_is_not_meant_any_more_is_leaving_under_a_rollout_too():
    known = facts(expected=0, rollout=STEADY)
    assert summary_of(known, report(generation=6)).states == {"leaving": 1}
