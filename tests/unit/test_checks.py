"""The doctor's judgement: what is well is said once, what is wrong with its cause and remedy."""

import pytest

from leafcast.checks import (
    NAMED_MAX,
    Facts,
    NodeFacts,
    PlacementFacts,
    StuckFacts,
    checks,
    exit_code,
)
from leafcast.commands.doctor import doctor_view
from tests.unit.test_tree_views import shown

NOW = 1_800_000_000_000
GB = 1_000_000_000
MINUTE = 60_000


def node(path, **more):
    said = {
        "role": "edge",
        "state": "up",
        "answers": True,
        "starts": 1,
        "free_bytes": 90 * GB,
        "store_bytes": 1_000_000,
        "index_age_ms": 1000,
    }
    return NodeFacts(path, **{**said, **more})


def stuck(severity=0, reason="Denied"):
    return StuckFacts(severity, "deployments.apps/shop/web", reason, 2, "/emea/s1")


def placement(**more):
    return PlacementFacts(
        **{"name": "shop", "destinations": 2, "unreachable": 0, "complete": True, **more}
    )


def facts(*nodes, placements=(), **more):
    said = {"now_ms": NOW, "folder": "/data", "free_bytes": 90 * GB}
    return Facts(
        **{**said, **more}, nodes=[node("/", role="centre"), *nodes], placements=placements
    )


def wrong(*nodes, **more):
    return [check for check in checks(facts(*nodes, **more)) if check.state != "ok"]


def test_of_a_healthy_tree_each_group_says_so_in_a_line_or_two():
    found = checks(facts(node("/emea"), placements=[placement()]))
    assert {check.state for check in found} == {"ok"}
    assert [check.group for check in found] == [
        "Here",
        "Here",
        "Servers",
        "Links",
        "Lag",
        "Clock",
        "Disk",
        "Staleness",
        "Objects",
    ]
    assert exit_code(found) == 0


def test_without_a_tree_only_this_machine_is_judged():
    found = checks(facts(not_running="no tree is running"))
    assert [check.state for check in found] == ["failure", "ok"]
    assert "leafcast up" in found[0].remedy
    assert exit_code(found) == 1


AWAY = {"state": "unreachable", "since_ms": NOW - 5 * MINUTE, "answers": False}


@pytest.mark.parametrize(
    ("one", "group", "state", "said"),
    [
        (
            node("/emea", **AWAY, destinations=3),
            "Links",
            "failure",
            "for 5m; 3 destinations are behind it",
        ),
        (
            node("/emea", **{**AWAY, "state": "stopped"}),
            "Links",
            "warning",
            "/emea is stopped for 5m",
        ),
        (
            node("/emea", state="connecting", answers=False),
            "Links",
            "warning",
            "not in session yet",
        ),
        (
            node("/emea", answers=False, refusal="busy"),
            "Servers",
            "failure",
            "does not answer: busy",
        ),
        (node("/emea", starts=3), "Servers", "warning", "was started 3 times"),
        (node("/emea", lag=101), "Lag", "warning", "101 messages to read"),
        (node("/emea", clock_ms=7000), "Clock", "warning", "7s ahead of the centre's"),
        (node("/emea", clock_ms=-90_000), "Clock", "failure", "90s behind the centre's"),
        (node("/emea", free_bytes=GB), "Disk", "warning", "1.0 GB free"),
        (node("/emea", free_bytes=1000), "Disk", "failure", "1.0 kB free"),
        (node("/emea", index_age_ms=30 * MINUTE), "Staleness", "failure", "no index for 30m"),
        (node("/emea", withheld=2), "Staleness", "warning", "2 placements that its mailbox lacks"),
    ],
)
def test_what_is_wrong_with_a_node_has_a_cause_and_a_remedy(one, group, state, said):
    (check,) = wrong(one)
    assert (check.group, check.state) == (group, state)
    assert said in check.said
    assert check.cause
    assert check.remedy


@pytest.mark.parametrize(
    ("item", "state", "said", "remedy"),
    [
        (placement(problem="no field tells objects apart"), "failure", "no field", "apply it"),
        (placement(held="10 objects"), "warning", "10 objects", "leafcast accept shop"),
        (placement(stuck=[stuck()]), "failure", "deployments.apps/shop/web: Denied (at 2", "mend"),
        (
            placement(stuck=[stuck(2, "ImagePullBackOff")]),
            "warning",
            "ImagePullBackOff",
            "leafcast describe deployments.apps web -n shop --at /emea/s1",
        ),
        (placement(stuck=[stuck(1, "StaleView: old")]), "failure", "old", "above /emea/s1 again"),
        (placement(complete=False, blocking=["/emea"]), "warning", "from /emea", "in a moment"),
    ],
)
def test_what_is_stuck_is_named_with_what_to_do(item, state, said, remedy):
    (check,) = wrong(placements=[item])
    assert check.state == state
    assert said in check.said
    assert remedy in check.remedy


def test_who_is_behind_a_silent_node_is_not_named_again():
    assert len(wrong(node("/emea", **AWAY), node("/emea/s1", **AWAY))) == 1
    assert len(wrong(node("/emea", answers=False), node("/emea/s1", answers=False))) == 1


def test_a_clock_that_was_set_back_is_noticed_at_the_centre():
    (check,) = wrong(ahead_ms=MINUTE)
    assert (check.group, check.state) == ("Clock", "failure")


def test_what_is_wrong_with_many_is_bounded():
    found = wrong(*(node(f"/r{number}", **AWAY) for number in range(50)))
    assert len(found) == NAMED_MAX + 1
    assert found[-1].said == f"and {50 - NAMED_MAX} more"
    assert found[-1].state == "failure"


def test_the_view_has_the_tick_first_and_fits_80_columns():
    text = shown(
        doctor_view(checks(facts(node("/emea", **AWAY), placements=[placement(stuck=[stuck()])])))
    )
    lines = text.splitlines()
    assert all(len(line) <= 80 for line in lines)
    links = lines.index("Links")
    assert lines[links + 1].startswith("  ✓ ")
    assert lines[links + 2].startswith("  ✗ /emea is unreachable")
    assert lines[links + 3].startswith("    why: ")
    assert lines[-1] == "2 failed, 0 to look at"
