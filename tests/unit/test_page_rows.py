"""What the page shows of facts: worst first, counts that say if they are exact, causes grouped."""

import pytest

from leafcast.ui.rows import level_rows, placement_head, placements_form, tier_rows
from leafcast.ui.tones import node_tone, placement_tone
from schemas.reports.states import NEVER_JOINED
from tests.doubles.page_facts import NOW_MS, condition, counts, node, placement, tier_node


def listed(*forms):
    return placements_form({"placements": list(forms), "lostSpaces": {}, "backupTrouble": ""})


def test_placements_come_the_worst_first():
    rows = listed(placement("a"), placement("b", synced=4, failing=2), placement("c", synced=5))
    assert [row["id"] for row in rows["rows"]] == ["epl/b", "epl/c", "epl/a"]
    rows = listed(placement("a", held=[{"reason": "RolloutPaused"}]), placement("b", failing=1))
    assert [row["tone"] for row in rows["rows"]] == ["bad", "held"]


@pytest.mark.parametrize(
    ("form", "tone"),
    [
        (placement("a"), "good"),
        (placement("a", complete=False), "busy"),
        (placement("a", synced=5), "busy"),
        (placement("a", keptBack=1), "busy"),
        (placement("a", synced=5, failing=1), "bad"),
        (placement("a", healthy=5, degraded=1), "bad"),
        (placement("a", problem="no such kind"), "bad"),
        (placement("a", synced=5, unreachable=1), "away"),
        (placement("a", held=[{"reason": "RolloutPaused"}]), "held"),
        (placement("a", 0), "none"),
        (placement("a", 0, complete=False), "busy"),
    ],
)
def test_a_placement_is_as_well_as_the_worst_of_it(form, tone):
    assert placement_tone(form) == tone


@pytest.mark.parametrize(
    ("said", "tone"),
    [
        ({}, "good"),
        ({"complete": False}, "busy"),
        ({"healthy": 0}, "busy"),
        ({"state": "catching up"}, "busy"),
        ({"failing": 1}, "bad"),
        ({"degraded": 1}, "bad"),
        ({"unreachable": 1}, "away"),
        ({"state": "unreachable"}, "away"),
        ({"state": "revoked"}, "away"),
        ({"state": "unknown", "complete": False}, "away"),
        ({"state": "stopped"}, "held"),
        ({"maintenance_until_ms": NOW_MS + 1}, "held"),
        ({"maintenance_until_ms": NOW_MS}, "good"),
        ({"state": NEVER_JOINED}, "none"),
        ({"destinations": 0, "synced": 0, "healthy": 0}, "none"),
    ],
)
def test_a_node_is_as_well_as_the_worst_below_it(said, tone):
    assert node_tone(node("/a", **said), NOW_MS) == tone


def test_a_count_says_whether_it_is_exact():
    (row,) = listed(placement("a", 9, synced=4, complete=False))["rows"]
    assert row["delivered"] == {"n": 4, "of": 9, "exact": False}


def test_failures_of_one_cause_are_one_with_how_many_and_an_example():
    wrong = [
        (f"deployments.apps/shop/web-{at}", "ImagePullBackOff: no such image", 40, "/region-1/s-1")
        for at in range(5)
    ]
    (fault,) = placement_head(placement("shop", 50, failing=40, synced=10, wrong=wrong))["faults"]
    assert (fault["count"], fault["example"]) == (40, "/region-1/s-1")
    assert "leafcast describe deployments.apps web-0 -n shop --at /region-1/s-1" in fault["remedy"]


def test_conditions_are_told_with_since_when():
    form = placement("a", conditions=[condition("Ready", "False", "Pending", "not yet")])
    (said,) = placement_head(form)["conditions"]
    assert (said["id"], said["status"], said["reason"]) == ("Ready", "False", "Pending")
    assert said["sinceMs"] == 1_799_999_400_000


def test_the_nodes_of_a_tier_come_the_worst_first_each_with_its_own_word():
    good, bad = tier_node("/a", 3), tier_node("/b", 3, synced=2, failing=1)
    assert [(row["id"], row["tone"]) for row in tier_rows([good, bad])] == [
        ("/b", "bad"),
        ("/a", "good"),
    ]


def test_how_long_a_node_is_silent_is_told():
    form = node("/a", state="unreachable", silent_since_ms=NOW_MS - 5)
    whole = {"node": node("/", 1, children=1), "children": [form], "held": []}
    found = level_rows({**whole, "count": 1, "skip": 0, "answers": True}, NOW_MS)
    assert found["rows"][0]["silentSinceMs"] == NOW_MS - 5


def test_a_status_that_says_nothing_of_the_worst_is_told_without():
    assert counts(3)["exceptions"] == []
    assert tier_rows([tier_node("/a", 3)])[0]["worst"] == ""
