"""The doctor's judgement: what is well is said once, what is wrong with its cause and remedy."""

import dataclasses

import pytest

from leafcast.cli.commands.doctor import NAMED_MAX, doctor_form, doctor_view
from leafcast.doctor.checks import checks
from leafcast.doctor.findings import (
    DoctorFacts,
    Expiry,
    LedgerFacts,
    NodeFacts,
    PlacementFinding,
    exit_code,
)
from schemas.reports.reports import ExceptionSample
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
        "snapshot_age_ms": 1000,
    }
    return NodeFacts(path, **{**said, **more})


def stuck(severity=0, reason="Denied"):
    return ExceptionSample(severity, "deployments.apps/shop/web", reason, 2, "/emea/s1")


def placement(**more):
    return PlacementFinding(
        **{"name": "shop", "destinations": 2, "unreachable": 0, "complete": True, **more}
    )


HELD = {
    "reason": "RemovalHeld",
    "message": "10 objects would go",
    "remedy": "leafcast accept epl/shop",
    "destinations": 3,
}


def facts(*nodes, placements=(), **more):
    said = {"now_ms": NOW, "folder": "/data", "free_bytes": 90 * GB}
    return DoctorFacts(
        **{**said, **more}, nodes=[node("/", role="centre"), *nodes], placements=placements
    )


def wrong(*nodes, **more):
    return [check for check in checks(facts(*nodes, **more)) if check.state != "ok"]


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        (("2.15.1", "2.15.1"), "3 of 3 nodes answer; nats-server 2.15.1"),
        (("2.15.1", "2.16.0"), "3 of 3 nodes answer; nats-server 2.15.1: 2, 2.16.0: 1"),
        (("2.15.1", ""), "3 of 3 nodes answer; nats-server 2.15.1"),
    ],
)
def test_who_answers_is_counted_by_the_nats_server_that_it_runs(versions, said):
    own = node("/", role="centre", server_version="2.15.1")
    others = [node(f"/r{at}", server_version=it) for at, it in enumerate(versions)]
    whole = dataclasses.replace(facts(*others), nodes=[own, *others])
    assert said in [check.said for check in checks(whole) if check.group == "Servers"]


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
        "Objects",
    ]
    assert exit_code(found) == 0


def test_a_tree_that_is_not_sealed_is_warned_of_with_the_command_that_seals_it():
    (sealed,) = [it for it in checks(facts()) if "sealed" in it.said]
    assert (sealed.state, sealed.remedy) == ("ok", "")
    (found,) = [it for it in checks(facts(sealed=False)) if "sealed" in it.said]
    assert (found.state, found.remedy) == ("warning", "leafcast keys seal")


def test_without_a_tree_only_this_machine_is_judged():
    found = checks(facts(not_running="no tree is running"))
    assert [check.state for check in found] == ["ok", "failure"]
    assert "leafcast up" in found[1].remedy
    assert exit_code(found) == 1


def test_an_old_index_is_laid_to_the_relays_above_and_at_the_centre_to_itself():
    late = 25 * MINUTE
    (shown_none,) = wrong(node("/emea", snapshot_age_ms=late))
    assert "/emea was shown no snapshot for 25m" in shown_none.said
    found = checks(DoctorFacts(NOW, "/data", 90 * GB, nodes=[node("/", snapshot_age_ms=late)]))
    (signs_none,) = [check for check in found if check.state != "ok"]
    assert signs_none.said == "/ has signed no snapshot for 25m"
    assert "relays above" not in signs_none.remedy


def test_those_that_never_joined_are_one_warning_and_no_failure():
    late = [node(f"/s{n}", state="never joined", answers=False) for n in range(7)]
    (said,) = wrong(*late)
    assert said.state == "warning"
    assert said.said.startswith("7 nodes were added and never joined: /s0, ")
    assert said.said.endswith(" and 2 more")
    assert "unreachable" not in said.said


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
            node("/emea", **{**AWAY, "state": "revoked"}),
            "Links",
            "warning",
            "the key of /emea is revoked",
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
        (
            node("/emea", answers=False, refusal_reason="Unreachable", heard_ms=NOW - 7000),
            "Servers",
            "failure",
            "does not answer; it was last heard of 7s ago",
        ),
        (
            node("/emea", answers=False, refusal_reason="Expired"),
            "Clock",
            "failure",
            "/emea is more than two minutes ahead of the centre's",
        ),
        (
            node("/emea", starts=3, server_up_ms=9000),
            "Servers",
            "warning",
            "was started again 2 times, 9s ago last",
        ),
        (
            node("/emea", server_version="2.12.5"),
            "Servers",
            "failure",
            "the nats-server of /emea is 2.12.5, older than 2.12.6",
        ),
        (
            node("/emea", server_version="dev"),
            "Servers",
            "warning",
            "the nats-server of /emea says that it is dev",
        ),
        (
            node("/emea", starts=2, removals=1, server_up_ms=9000),
            "Servers",
            "warning",
            "what /emea stores was removed while it ran, 9s ago",
        ),
        (
            node("/emea", contested=2),
            "Links",
            "failure",
            "two programs run as /emea: its session was taken over 2 times",
        ),
        (
            node("/emea", unsaid=3),
            "Links",
            "warning",
            "at least 3 things said at or below /emea found no room at its parent",
        ),
        (node("/emea", lag=101), "Lag", "warning", "101 messages to read"),
        (node("/emea", clock_ms=7000), "Clock", "warning", "7s ahead of the centre's"),
        (node("/emea", clock_ms=-90_000), "Clock", "failure", "90s behind the centre's"),
        (node("/emea", free_bytes=GB), "Disk", "warning", "1.0 GB free"),
        (node("/emea", free_bytes=1000), "Disk", "failure", "1.0 kB free"),
        (
            node("/emea", free_bytes=1000, here=True),
            "Disk",
            "failure",
            "/emea (/data/lc_emea) has 1.0 kB",
        ),
        (node("/emea", orphaned=3), "Staleness", "warning", "3 records that the centre"),
        (node("/emea", snapshot_age_ms=30 * MINUTE), "Staleness", "failure", "no snapshot for 30m"),
        (node("/emea", withheld=2), "Staleness", "warning", "2 records that its mailbox lacks"),
        (node("/emea", disbelieved=1), "Staleness", "failure", "1 message that the centre did not"),
        (
            node("/emea", refused=101),
            "Links",
            "warning",
            "said 101 things to its parent that nobody",
        ),
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
        (placement(held=[HELD]), "warning", "10 objects", "leafcast accept epl/shop"),
        (placement(stuck=[stuck()]), "failure", "shop/deployments.apps/web: Denied (at 2", "mend"),
        (
            placement(stuck=[stuck(2, "ImagePullBackOff")]),
            "warning",
            "ImagePullBackOff",
            "leafcast describe deployments.apps web -n shop --at /emea/s1",
        ),
        (
            placement(stuck=[ExceptionSample(2, "", "Secrets stay: name them", 2, "/emea/s1")]),
            "warning",
            "shop: Secrets stay",
            "do as it says",
        ),
        (placement(stuck=[stuck(1, "StaleView: old")]), "failure", "old", "above /emea/s1 again"),
        (placement(stuck=[stuck(1, "Overridden: by x")]), "failure", "by x", "leafcast accept"),
        (placement(stuck=[stuck(0, "ContentRefused: x")]), "failure", "x", "apply the placement"),
        (placement(complete=False, blocking=["/emea"]), "warning", "from /emea", "in a moment"),
    ],
)
def test_what_is_stuck_is_named_with_what_to_do(item, state, said, remedy):
    (check,) = wrong(placements=[item])
    assert check.state == state
    assert said in check.said
    assert remedy in check.remedy


@pytest.mark.parametrize("reason", ["ContentRefused: x", "Overridden: x", "StaleView: x"])
def test_a_cluster_is_not_blamed_for_what_is_none_of_its(reason):
    (check,) = wrong(placements=[placement(stuck=[stuck(1, reason)])])
    assert "cluster" not in check.cause


def test_what_a_removed_folder_takes_with_it_is_told_as_it_is():
    """The centre's objects are nowhere else; what any other node held is sent to it again."""
    removed = {"starts": 2, "removals": 1, "server_up_ms": 9000}
    centre = node("/", role="centre", **removed)
    of_centre, of_edge = (
        next(
            check
            for check in checks(DoctorFacts(NOW, "/data", 90 * GB, nodes=nodes))
            if check.cause
        )
        for nodes in ([centre], [node("/"), node("/emea", **removed)])
    )
    assert "with it all objects that were applied" in of_centre.cause
    assert "leafcast restore" in of_centre.remedy
    assert "apply your manifests again" in of_centre.remedy
    assert "is lost" not in of_centre.cause
    assert "its parent sends it again" in of_edge.cause
    assert "manifests" not in of_edge.remedy


def test_one_program_that_ended_late_is_not_called_two():
    assert not wrong(node("/emea", contested=1))


def test_a_little_that_came_too_late_to_be_taken_is_no_news():
    assert not wrong(node("/emea", refused=100))


def test_of_those_whose_results_find_no_room_the_lowest_is_named():
    nodes = [node("/emea", unsaid=3), node("/emea/s1", unsaid=3), node("/emea/s2")]
    (found,) = [
        check for check in checks(DoctorFacts(NOW, "/data", 90 * GB, nodes=nodes)) if check.cause
    ]
    assert found.about == "/emea/s1"


def test_a_server_that_ended_long_ago_is_no_news():
    assert not wrong(node("/emea", starts=3, server_up_ms=2 * 60 * MINUTE))


def test_a_node_that_is_shown_an_old_view_is_in_session_nevertheless():
    (check,) = wrong(node("/emea", state="stale", snapshot_age_ms=30 * MINUTE))
    assert check.group == "Staleness"


def test_a_remedy_is_for_the_place_where_the_node_runs():
    (here,), (there,) = wrong(node("/emea", **AWAY, here=True)), wrong(node("/emea", **AWAY))
    assert "leafcast down, then leafcast up" in here.remedy
    assert "leafcast join" in there.remedy
    assert "leafcast node remove /emea --force" in there.remedy


def test_what_is_wrong_says_which_object_it_is_about():
    found = wrong(
        node("/emea", **AWAY), node("/apac", lag=101), placements=[placement(stuck=[stuck()])]
    )
    assert {check.about for check in found} == {"/emea", "/apac", "edgeplacement/shop"}


def test_what_is_well_is_told_without_those_that_are_not():
    found = checks(facts(node("/emea", clock_ms=90_000), node("/apac", clock_ms=20)))
    said = [check.said for check in found if check.group == "Clock"]
    assert said[0] == "1 clock differs from the centre's by 20 ms at most"
    assert "/emea" in said[1]


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([], "no other clock is compared with the centre's"),
        ([-7], "1 clock differs from the centre's by 7 ms at most"),
        ([0, 30], "2 clocks differ from the centre's by 30 ms at most"),
    ],
)
def test_the_clock_of_the_centre_is_not_compared_with_itself(others, said):
    nodes = [node(f"/edge-{at}", clock_ms=off) for at, off in enumerate(others)]
    assert [it.said for it in checks(facts(*nodes)) if it.group == "Clock"] == [said]


@pytest.mark.parametrize(
    ("ledger", "state", "said", "remedy"),
    [
        (LedgerFacts(lost="4 records"), "warning", "4 records", "leafcast accept --ledger"),
        (
            LedgerFacts(lost_spaces={"abc": "2 SyncTargets"}),
            "warning",
            "2 SyncTargets",
            "leafcast accept --space abc",
        ),
        (
            LedgerFacts(held={"synctargets": "all are gone"}),
            "warning",
            "synctargets: all are gone",
            "leafcast accept --inventory",
        ),
        (
            LedgerFacts(wrong={"location/east": "spec.selector: no"}),
            "failure",
            "location/east: spec.selector: no",
            "apply it",
        ),
        (
            LedgerFacts(unplaced={"s1": 'SyncTarget "s1" has no annotation; set it to /s1'}),
            "warning",
            'SyncTarget "s1" has no annotation',
            "set it to /s1",
        ),
    ],
)
def test_what_waits_at_the_centre_is_named_with_the_command_that_ends_it(
    ledger, state, said, remedy
):
    (check,) = wrong(ledger=ledger)
    assert (check.group, check.state) == ("Objects", state)
    assert said in check.said
    assert remedy in check.remedy


def test_a_tree_that_hangs_is_not_called_stopped():
    _, check = checks(facts(not_running="the tree does not answer", hangs=True))
    assert "frozen" in check.cause
    assert "leafcast down, then leafcast up" in check.remedy


def test_a_centre_without_an_active_member_is_not_to_be_ended():
    said = "no member is active since 12 s; accepted: nothing"
    _, check = checks(facts(not_running=said, hangs=True, has_members=True))
    assert "two of them" in check.cause
    assert "leafcast down" not in check.remedy


def test_what_is_behind_a_mute_node_is_not_judged():
    (check,) = wrong(node("/emea", answers=False), node("/emea/s1", state="unknown", answers=False))
    assert check.about == "/emea"


def test_who_is_behind_a_silent_node_is_not_named_again():
    assert len(wrong(node("/emea", **AWAY), node("/emea/s1", **AWAY))) == 1
    assert len(wrong(node("/emea", answers=False), node("/emea/s1", answers=False))) == 1


def test_a_clock_that_was_set_back_is_noticed_at_the_centre():
    (check,) = wrong(ahead_ms=MINUTE)
    assert (check.group, check.state) == ("Clock", "failure")


def test_what_is_wrong_with_many_is_bounded():
    """For people; scripts get all of it."""
    found = checks(facts(*(node(f"/r{number}", **AWAY) for number in range(50))))
    form = doctor_form(found)
    assert (form["ok"], form["failures"], form["warnings"]) == (False, 50, 0)
    assert len([check for check in form["checks"] if check["about"]]) == 50
    text = shown(doctor_view(found))
    assert text.count("is unreachable") == NAMED_MAX
    assert f"and {50 - NAMED_MAX} more: leafcast doctor -o json" in text


def test_findings_are_told_by_group_what_is_well_first_and_then_the_worst():
    found = checks(
        facts(node("/a", starts=2), node("/b", answers=False), node("/c", lag=200), node("/d"))
    )
    servers = [(check.state, check.about) for check in found if check.group == "Servers"]
    assert servers == [("ok", ""), ("failure", "/b"), ("warning", "/a")]


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
    assert lines[-1] == "2 failed, 0 warnings"


DAY = 24 * 60 * MINUTE


@pytest.mark.parametrize(
    ("since", "until", "needed", "state", "said"),
    [
        (-DAY, 15 * DAY, True, "ok", "1 thing that may expire"),
        (-300 * DAY, 13 * DAY, True, "warning", "it expires in 13d"),
        (-300 * DAY, -DAY, True, "failure", "it expired 24h ago"),
        (-300 * DAY, -DAY, False, "warning", "it expired 24h ago"),
        # Of what is made for a day, two weeks before its end says nothing.
        (-DAY // 4, 3 * DAY // 4, False, "ok", "1 thing that may expire"),
        (-3 * DAY // 4, DAY // 4, False, "warning", "it expires in 6h"),
    ],
)
def test_what_expires_is_told_two_weeks_before_or_half_of_its_time(
    since, until, needed, state, said
):
    one = Expiry("it", NOW + since, NOW + until, "why", "what to do", needed=needed)
    (found,) = [it for it in checks(facts(expiries=[one])) if it.group == "Expiry"]
    assert (found.state, found.said.startswith(said)) == (state, True), found.said


def test_who_does_not_believe_the_centres_key_is_not_called_dead():
    facts = [node("/emea", answers=False, refusal="no", refusal_reason="Unbelieved")]
    (said,) = [
        it for it in checks(DoctorFacts(NOW, "/d", 10**12, nodes=facts)) if it.state == "failure"
    ]
    assert "none to it" in said.cause
    assert "leafcast keys revoke ID" in said.remedy


def test_one_cause_that_holds_several_placements_is_one_finding():
    unreadable = {"reason": "KindUnreadable", "message": "convs cannot be listed", "remedy": "x"}
    several = [placement(name=name, held=[unreadable]) for name in ("a", "b", "c")]
    (check,) = wrong(placements=several)
    assert check.state == "warning"
    assert "3 placements (epl/a, epl/b, epl/c) held: KindUnreadable" in check.said


def test_what_another_finding_tells_at_more_length_is_not_told_as_a_hold_again():
    refused = {"reason": "ObjectsRefused", "message": "bad", "remedy": "leafcast describe epl/shop"}
    (check,) = wrong(placements=[placement(held=[refused], problem="bad")])
    assert check.state == "failure"
    frozen = {"reason": "CustomizationFrozen", "message": "at 2", "remedy": "see"}
    (check,) = wrong(placements=[placement(held=[frozen], stuck=[stuck(0, "Frozen: no till")])])
    assert "no till" in check.said
    found = wrong(placements=[placement(held=[frozen], stuck=[stuck()])])
    assert [check.state for check in found] == ["failure", "warning"]


def test_an_edge_on_anothers_cluster_and_a_centre_without_its_hub_are_failures_with_a_remedy():
    taken = "it is already the edge /emea/s2; nothing is applied or deleted there: name another"
    away = "hub.yaml: it is the hub of another centre; nothing is written there: stop that"
    told = facts(node("/emea/s1", unclaimed=taken), hubs={"workloads": away})
    hub, cluster = (check for check in checks(told) if check.group == "Clusters")
    assert (hub.state, hub.about, hub.remedy) == ("failure", "/", "stop that")
    assert (cluster.state, cluster.about, cluster.remedy) == ("failure", "/emea/s1", "name another")
    assert "/emea/s2" in cluster.cause
    assert not [check for check in checks(facts(node("/emea/s1"))) if check.group == "Clusters"]
