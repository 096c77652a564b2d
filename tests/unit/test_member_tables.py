"""How members are told of: what a server says of its peers, what a relay answers, and the table."""

import pytest

from leafcast.ask.remote import checked_answer
from leafcast.node.member_forms import member_forms, unled_forms
from leafcast.show.member_tables import NONE_HAS, members_view
from relay.adapters.jetstream.cluster_peers import peer_id
from relay.adapters.jetstream.member_servers import MemberServer, servers_in
from schemas.values.identity import NodePath

CLUSTER = {
    "leader": "lc_emea.m2",
    "replicas": [
        {"name": "lc_emea.m1", "current": True},
        {"name": "lc_emea.m3", "current": False, "offline": True, "lag": 7},
    ],
}
LACKS = {"version": "", "sameChildren": False, "encrypted": None, "clock": "", "change": ""}
FORMS = member_forms(
    {"m1": {"role": "active", "activeSeconds": 61.5}, "m2": {"role": "standby"}},
    servers_in(CLUSTER),
)


def shown(nodes) -> str:
    return "\n".join(members_view({"nodes": nodes}, 0).lines(None, styled=False))


def test_the_leader_and_its_followers_are_named_as_members():
    assert servers_in(CLUSTER) == (
        MemberServer("m2", leads=True),
        MemberServer("m1"),
        MemberServer("m3", is_reached=False, lag=7, is_current=False),
    )
    lease = {"leader": "lc_emea.m3", "replicas": [{"name": "lc_emea.m2"}]}
    assert [it.is_current for it in servers_in(CLUSTER, lease)] == [False, True, False]
    assert servers_in({}) == ()


def test_a_lost_member_has_its_name_also_where_a_server_was_started_since():
    # As nats-server says it of lc_emea.m3.
    lost = {"name": f"Server name unknown at this time (peerID: {peer_id('lc_emea.m3')})"}
    found = servers_in({"leader": "lc_emea.m2", "replicas": [lost]})
    assert [it.member for it in found] == ["m2", "m3"]
    other = {"name": "Server name unknown at this time (peerID: 00000000)"}
    assert servers_in({"leader": "lc_emea.m2", "replicas": [other]})[1].member == other["name"]


def test_a_member_whose_process_is_silent_and_whose_server_is_down_is_told_of():
    assert FORMS == [
        {"name": "m1", "role": "active", "seconds": 61, "server": "follows", "lag": 0, **LACKS},
        {"name": "m2", "role": "standby", "seconds": 0, "server": "leads", "lag": 0, **LACKS},
        {"name": "m3", "role": "silent", "seconds": 0, "server": "down", "lag": 7, **LACKS},
    ]


def test_the_table_has_a_row_a_member_and_names_who_does_not_answer():
    nodes = [
        {"path": "/", "members": FORMS, "is_edge": False},
        {"path": "/emea", "members": None, "is_edge": False},
        {"path": "/emea/s1", "members": None, "is_edge": True},
    ]
    head, *rows, silent = shown(nodes).splitlines()
    assert head.split() == ["NODE", "MEMBER", "ROLE", "SINCE", "SERVER", "LAG"]
    assert [row.split()[1:3] for row in rows] == [
        ["m1", "active"],
        ["m2", "standby"],
        ["m3", "silent"],
    ]
    assert "/emea does not answer" in silent


def test_only_a_member_that_lets_in_whom_the_active_one_does_has_confirmed_it():
    facts = {
        "m1": {"role": "active", "children": "new"},
        "m2": {"role": "standby", "children": "new"},
        "m3": {"role": "standby", "children": "old"},
    }
    servers = servers_in({"leader": "lc.m4"})
    forms = checked_answer(NodePath(), {"children": {}, "members": member_forms(facts, servers)})[
        "members"
    ]
    assert [it["sameChildren"] for it in forms] == [True, True, False, False]


def test_how_far_a_change_of_the_members_is_is_said_once_beneath_them():
    said = "m4 comes in the place of m2: it has to come, and to catch up"
    members = [it | {"change": said if it["name"] == "m2" else ""} for it in FORMS]
    text = shown([{"path": "/emea", "members": members, "is_edge": False}])
    assert text.count(f"/emea: {said}") == 1


def test_a_tree_without_members_says_so():
    assert shown([{"path": "/", "members": [], "is_edge": False}]) == NONE_HAS


@pytest.mark.parametrize("said", [None, "m1", {"name": "m1"}, [1, "m"], [[]]])
def test_members_in_no_form_are_none(said):
    assert checked_answer(NodePath(("emea",)), {"children": {}, "members": said})["members"] == []


def test_what_a_relay_says_of_its_members_is_bounded():
    one = {"name": "n" * 100_000, "role": 3, "server": "leads", "lag": -1, "seconds": True, "x": 1}
    found = checked_answer(NodePath(("emea",)), {"children": {}, "members": [one] * 100})["members"]
    assert len(found) == 8
    assert found[0] == {
        "name": "",
        "role": "",
        "server": "leads",
        "lag": 0,
        "seconds": 0,
        **LACKS,
    }


def test_while_no_member_is_active_it_is_told_what_each_says_of_itself_and_whose_server_answers():
    facts = {
        "m1": {"role": "standby", "silentSeconds": 12.3, "servers": ["m1", "m3"]},
        "m4": {"role": "standby", "servers": []},
    }
    members = unled_forms(["m1", "m2", "m3"], facts)
    nodes = [{"path": "/", "members": members, "is_edge": False}]
    view = members_view({"nodes": nodes, "silentSeconds": 12.3}, 0)
    none, _, *rows = "\n".join(view.lines(None, styled=False)).splitlines()
    assert none.startswith("No member of the centre is active since 12 s; accepted: nothing.")
    assert [row.split()[1:4] for row in rows] == [
        ["m1", "standby", "answers"],
        ["m2", "silent", "down"],
        ["m3", "silent", "answers"],
    ]


def test_where_a_member_says_that_it_is_active_nobody_is_told_that_none_is():
    assert unled_forms(["m1", "m2"], {"m2": {"role": "active"}, "m1": {"role": "standby"}}) == []
