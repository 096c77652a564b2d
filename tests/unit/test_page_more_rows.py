"""Rollouts, events, requests and the doctor's findings, as the page shows them."""

import pytest

from leafcast.doctor.findings import Check
from leafcast.ui.events_seen import EVENTS_MAX, EventsSeen
from leafcast.ui.more_rows import (
    check_rows,
    event_rows,
    request_rows,
    rollout_flow,
    rollout_row,
)
from tests.doubles.page_facts import event, rollout, wave

NOTHING_HELD = {"placements": {}, "inventory": {}, "spaces": {}, "ledger": ""}


@pytest.mark.parametrize(
    ("phase", "word"),
    [
        ("Progressing", "by itself"),
        ("Soaking", "by itself"),
        ("AwaitingApproval", "until somebody approves"),
        ("Paused", "until somebody resumes"),
        ("Held", "until what holds it"),
        ("Complete", "Nothing"),
    ],
)
def test_a_rollout_says_what_happens_if_nobody_acts(phase, word):
    flow = rollout_flow(rollout("shop", phase, [wave("all", "Progressing", 3)], wave=1))
    assert word in flow["head"]["unattended"]


def test_a_rollout_whose_wave_failed_is_bad_and_does_not_go_on():
    obj = rollout("shop", "Progressing", [wave("all", "Failed", 3)], wave=1)
    assert rollout_row(obj)["tone"] == "bad"
    assert "failed" in rollout_flow(obj)["head"]["unattended"]


def test_the_waves_say_where_it_is_and_what_each_waits_for():
    soaking = wave("canary", "Soaking", 4, soaked=60, definition={"soak": "1h"})
    rest = wave("rest", definition={"approval": "before"})
    flow = rollout_flow(rollout("shop", "Soaking", [soaking, rest], wave=1))
    assert [(it["id"], it["inHand"], it["tone"]) for it in flow["waves"]] == [
        ("canary", True, "busy"),
        ("rest", False, "none"),
    ]
    assert (flow["waves"][0]["soak"], flow["waves"][1]["approval"]) == ("1h", "before")
    assert flow["head"]["headline"] == "revision 7, wave 1 of 2, canary: soaking 60s of 1h"


def test_a_rollout_that_has_not_begun_is_shown_without_waves():
    flow = rollout_flow({"metadata": {"name": "a"}, "spec": {"placement": {"name": "shop"}}})
    assert (flow["waves"], flow["head"]["placement"]) == ([], "epl/shop")


def test_events_are_searched_by_all_words_and_by_kind():
    events = [
        event("Failing", "edgeplacement/shop", "no image", warning=True),
        event("Working", "edgeplacement/shop", "working at 3"),
        event("Reached", "/region-1", "is back"),
    ]
    rows = event_rows(events, "SHOP image", warnings=False)["rows"]
    assert [it["reason"] for it in rows] == ["Failing"]
    assert [it["reason"] for it in event_rows(events, "", warnings=True)["rows"]] == ["Failing"]
    assert event_rows(events, "", warnings=False)["count"] == 3


def answer(run, through, *events):
    return {"run": run, "through": through, "events": list(events)}


def test_an_event_that_happens_again_is_one_and_the_newest():
    seen = EventsSeen()
    seen.take(answer("a", 2, event("A", "x", "m"), event("B", "x", "m")))
    seen.take(answer("a", 3, event("A", "x", "m", count=2)))
    assert [(it["reason"], it["count"]) for it in seen.newest_first()] == [("A", 2), ("B", 1)]
    assert (seen.run, seen.through) == ("a", 3)


def test_events_of_a_former_run_of_the_daemon_are_forgotten_and_there_is_a_bound():
    seen = EventsSeen()
    seen.take(answer("a", 1, event("A", "x", "m")))
    seen.take(answer("b", 1, *(event("B", "x", str(at)) for at in range(EVENTS_MAX + 1))))
    assert [it["message"] for it in seen.newest_first()][-1] == "1"
    assert len(seen.newest_first()) == EVENTS_MAX


def test_what_waits_for_a_person_comes_with_the_command():
    node = {"path": "/r/s9", "said": "till", "nkey": "UABC", "askedMs": 5}
    held = {**NOTHING_HELD, "placements": {"shop": "40 go"}, "ledger": "3 records"}
    stalled = {"type": "Stalled", "status": "True", "lastTransitionTime": "2027-01-15T08:00:00Z"}
    waves = [wave("all", "AwaitingApproval", 3)]
    asks = rollout("web", "AwaitingApproval", waves, next="do it", conditions=[stalled])
    rows = request_rows([node], held, [asks, rollout("other", "Complete", [])])
    assert [row["command"] for row in rows] == [
        "leafcast node approve /r/s9",
        "leafcast accept epl/shop",
        "leafcast accept --ledger",
        "do it",
    ]
    # What holds a removal is told without a time.
    assert [row["sinceMs"] for row in rows] == [5, None, None, 1_800_000_000_000]
    assert request_rows([], NOTHING_HELD, []) == []


def test_what_failed_comes_before_what_is_well():
    found = [Check("a", "ok", "1"), Check("b", "warning", "2"), Check("c", "failure", "3")]
    assert [(row["said"], row["tone"]) for row in check_rows(found)] == [
        ("3", "bad"),
        ("2", "held"),
        ("1", "good"),
    ]
