"""The doctor tells of each member that is lost, and of nothing where all are there."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from leafcast.doctor.findings import DoctorFacts, NodeFacts
from leafcast.doctor.member_checks import LAG_MESSAGES_MAX, member_checks, unled_checks
from leafcast.node.member_forms import member_forms, unled_forms
from relay.adapters.jetstream.member_servers import MemberServer
from relay.members.lease import clock_trouble

SAME = {"children": "c", "version": "1.2.0"}
ROLES = {
    "m1": {"role": "active", **SAME},
    "m2": {"role": "standby", **SAME},
    "m3": {"role": "standby", **SAME},
}
SERVERS = [MemberServer("m1"), MemberServer("m2", leads=True), MemberServer("m3")]


def facts(*nodes) -> DoctorFacts:
    return DoctorFacts(now_ms=0, folder="x", free_bytes=1, nodes=nodes)


def judged(roles, servers):
    members = member_forms(roles, servers)
    relay = NodeFacts("/emea", "relay", "up", store_bytes=2_000_000, members=members)
    return list(member_checks(facts(relay, NodeFacts("/emea/s1", "edge", "up"))))


def test_a_node_with_all_its_members_is_well_and_its_disks_are_told_of():
    (check,) = judged(ROLES, SERVERS)
    assert check.state == "ok"
    assert check.about == "/emea"
    assert "may be lost, or restarted now" in check.said
    assert "6.0 MB together" in check.said


@pytest.mark.parametrize(
    ("roles", "servers", "said"),
    [
        (
            ROLES,
            [*SERVERS[:2], MemberServer("m3", is_current=False)],
            "m3 of /emea has not caught up",
        ),
        (
            {**ROLES, "m3": {**ROLES["m3"], "children": "other"}},
            SERVERS,
            "m3 of /emea does not let in",
        ),
    ],
)
def test_while_a_member_is_behind_no_other_one_may_be_restarted(roles, servers, said):
    (check,) = judged(roles, servers)
    assert (check.state, check.about) == ("warning", "/emea")
    assert said in check.said
    assert "restart no other one" in check.remedy


def test_members_of_several_releases_are_named():
    check, fine = judged({**ROLES, "m3": {**ROLES["m3"], "version": "1.3.0"}}, SERVERS)
    assert (check.state, fine.state) == ("warning", "ok")
    assert "m2 is of 1.2.0, m3 is of 1.3.0" in check.said


def test_a_store_in_clear_beside_encrypted_ones_is_told_of():
    roles = {name: {**said, "encrypted": name != "m3"} for name, said in ROLES.items()}
    check, fine = judged(roles, SERVERS)
    assert (check.state, fine.state) == ("warning", "ok")
    assert check.said == "the store of m3 of /emea is in clear, others' are not"
    assert "--store-key-file" in check.remedy
    for said in ({"encrypted": True}, {"encrypted": False}, {}):
        roles = {name: {**it, **said} for name, it in ROLES.items()}
        assert [it.state for it in judged(roles, SERVERS)] == ["ok"]
    # One of a release before does not say.
    roles = {**roles, "m1": {**ROLES["m1"], "encrypted": True}}
    assert [it.state for it in judged(roles, SERVERS)] == ["ok"]


def test_a_lost_member_whose_place_is_taken_is_a_warning_that_says_how_far_that_is():
    change = SimpleNamespace(lost="m2", came="m4", said="m4 comes in the place of m2: it waits")
    roles = {name: said for name, said in ROLES.items() if name != "m2"}
    servers = [SERVERS[0], MemberServer("m3", leads=True)]
    members = member_forms(roles, servers, change)
    assert [it["name"] for it in members] == ["m1", "m2", "m3", "m4"]
    relay = NodeFacts("/emea", "relay", "up", store_bytes=2_000_000, members=members)
    (check,) = member_checks(facts(relay))
    assert (check.state, check.about) == ("warning", "/emea")
    assert "m4 comes in the place of m2" in check.said
    assert "leafcast node replace /emea --member" in check.remedy


def test_nodes_that_run_once_are_not_told_of():
    assert list(member_checks(facts(NodeFacts("/", "centre", "up")))) == []


@pytest.mark.parametrize(
    ("roles", "servers", "said"),
    [
        ({**ROLES, "m3": {}}, SERVERS, "the process of member m3 of /emea does not answer"),
        (
            {**ROLES, "m3": {**ROLES["m3"], "storeFull": True}},
            [*SERVERS[:2], MemberServer("m3", is_reached=False)],
            "the disk of member m3 of /emea is full",
        ),
        (
            ROLES,
            [*SERVERS[:2], MemberServer("m3", is_reached=False)],
            "the server of member m3 of /emea is not reached",
        ),
        (
            ROLES,
            [*SERVERS[:2], MemberServer("m3", lag=LAG_MESSAGES_MAX + 1)],
            "the server of member m3 of /emea lacks 1001 messages",
        ),
        (
            {**ROLES, "m3": {**ROLES["m3"], "clockTrouble": clock_trouble(3600.0, [0.0, 0.1])}},
            SERVERS,
            "m3 of /emea does not become active: its clock is 3600 s ahead of those of the other",
        ),
        (
            {**ROLES, "m3": {**ROLES["m3"], "unfit": "/hub.yaml cannot be opened: put it there"}},
            SERVERS,
            "m3 of /emea does not become active: /hub.yaml cannot be opened",
        ),
        (
            {**ROLES, "m1": {**ROLES["m1"], "stuck": {"OWN": "lc_emea.m2"}}},
            SERVERS,
            "the server of member m2 of /emea leads a stream that takes no writes",
        ),
    ],
)
def test_a_lost_member_is_a_failure_with_its_remedy(roles, servers, said):
    (check,) = judged(roles, servers)
    assert check.state == "failure"
    assert said in check.said
    assert check.remedy
    assert check.about == "/emea"


def test_while_none_is_active_it_is_said_of_each_member_why_it_is_not():
    waits = "member m1 copies what the node had: start it"
    roles = {
        "m2": {"role": "standby", "unfit": waits, "servers": ["m2", "m3"]},
        "m3": {"role": "standby", "servers": ["m2", "m3"]},
    }
    found = list(unled_checks(replace(facts(), unled=unled_forms(["m1", "m2", "m3"], roles))))
    assert [it.said for it in found] == [
        "the server of member m1 of / is not reached by the others",
        "member m2 of / does not become active: member m1 copies what the node had",
    ]
    assert [it.state for it in found] == ["failure"] * 2
    # Nobody is active who could let another machine take its place.
    assert "node replace" not in found[0].remedy
    assert found[1].remedy == "start it"
    assert {it.about for it in found} == {"/"}
    assert list(unled_checks(facts())) == []
