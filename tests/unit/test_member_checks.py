"""The doctor tells of each member that is lost, and of nothing where all are there."""

import pytest

from leafcast.doctor.findings import DoctorFacts, NodeFacts
from leafcast.doctor.member_checks import LAG_MESSAGES_MAX, member_checks
from leafcast.node.member_forms import member_forms
from relay.adapters.jetstream.member_servers import MemberServer

ROLES = {"m1": {"role": "active"}, "m2": {"role": "standby"}, "m3": {"role": "standby"}}
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
    assert "3 members of /emea" in check.said
    assert "6.0 MB together" in check.said


def test_nodes_that_run_once_are_not_told_of():
    assert list(member_checks(facts(NodeFacts("/", "centre", "up")))) == []


@pytest.mark.parametrize(
    ("roles", "servers", "said"),
    [
        ({**ROLES, "m3": {}}, SERVERS, "the process of member m3 of /emea does not answer"),
        (
            {**ROLES, "m3": {"role": "standby", "storeFull": True}},
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
            {**ROLES, "m1": {"role": "active", "stuck": {"OWN": "lc_emea.m2"}}},
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
