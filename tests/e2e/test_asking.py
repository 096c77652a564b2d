"""Any node answers what it is asked, hop by hop, and nodes come and go while the tree runs."""

from __future__ import annotations

import asyncio
import json

import pytest

from leafcast.ask.api import ApiError
from relay.shell.asker import AskFailed
from schemas.values.identity import NodePath
from tests.e2e.centre_parts import Members, Parts
from tests.memory_tree import config_map, memory_tree, placement

PATHS = ["/r1", "/r2", "/r1/s1", "/r1/s2", "/r2/s1"]
S1 = NodePath.parse("/r1/s1")
NEW = NodePath.parse("/r1/s9")


@pytest.fixture
async def tree(tmp_path):
    async with memory_tree(tmp_path, PATHS) as grown:
        await grown.apply(
            placement("shop", "shop"),
            config_map("a", "shop", colour="green"),
            config_map("b", "shop"),
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "door", "namespace": "shop"},
                "stringData": {"code": "1234-secret"},
            },
        )
        await grown.until("shop", lambda c: c.exact and c.summary.states == {"synced": 3})
        yield grown


def node(path):
    return NodePath.parse(path)


async def test_an_edge_shows_its_copies_page_by_page_and_no_secret(tree):
    maps = {"resource": "configmaps", "namespace": "shop"}
    answer = await tree.asks.ask(S1, "get", {**maps, "name": "a"})
    assert answer["objects"][0]["data"] == {"colour": "green"}

    first = await tree.asks.ask(S1, "get", {**maps, "limit": "1"})
    rest = await tree.asks.ask(S1, "get", {**maps, "limit": "1", "after": first["next"]})
    assert [obj["metadata"]["name"] for obj in first["objects"] + rest["objects"]] == ["a", "b"]
    assert rest["next"] == ""

    secrets = await tree.asks.ask(S1, "get", {"resource": "secrets"})
    assert "1234-secret" not in json.dumps(secrets)
    nothing = await tree.asks.ask(S1, "get", {"resource": "pods", "selector": '{"matchLabels":{}}'})
    assert nothing == {"objects": [], "next": ""}


async def test_relays_tell_the_destinations_of_a_placement(tree):
    key = await tree.placement_key("shop")
    found = {}
    for path in ("/", "/r1", "/r2"):
        answer = await tree.asks.ask(node(path), "status", {"placement": key})
        assert answer["exact"]
        for child in answer["children"]:
            assert sum(child["states"].values()) == (2 if child["name"] == "r1" else 1)
            if child["destination"]:
                found[f"{path}/{child['name']}"] = child["states"]
    assert found == {path: {"synced": 1} for path in ("/r1/s1", "/r1/s2", "/r2/s1")}

    unknown = await tree.asks.ask(S1, "status", {"placement": "0" * 32})
    assert unknown["known"] is False


async def test_a_node_says_who_it_is(tree):
    edge = await tree.asks.ask(S1, "node", {})
    assert (edge["path"], edge["role"], edge["objectsApplied"]) == ("/r1/s1", "edge", 4)
    relay = await tree.asks.ask(S1.parent, "node", {})
    assert relay["role"] == "relay"
    in_session = {name: child["inSession"] for name, child in relay["children"].items()}
    assert in_session == {"s1": True, "s2": True}


async def test_what_is_cut_off_is_unreachable_and_the_rest_answers(tree):
    tree.network.cut(S1)
    began_ms = tree.clock.now().wall_ms
    with pytest.raises(AskFailed) as failed:
        await tree.asks.ask(S1, "node", {})
    fault = failed.value.fault
    assert (fault.reason, fault.path) == ("Unreachable", "/r1/s1")
    assert 0 < fault.since_ms <= began_ms
    for path, verb, reason in (
        ("/r1", "get", "NoCluster"),
        ("/r1/s2", "get", "BadArguments"),
        ("/r1/s2", "dance", "UnknownVerb"),
    ):
        with pytest.raises(AskFailed) as failed:
            await tree.asks.ask(node(path), verb, {"resource": ""})
        assert failed.value.fault.reason == reason


@pytest.fixture
def members(tree, tmp_path):
    return Members(tree, Parts(tree), tmp_path)


def counted(tree):
    """What each node wrote and applied."""
    written = {path: driver.counters.mail_written for path, driver in tree.drivers.items()}
    revisions = {path: space._revision for path, space in tree.spaces.items()}
    return written, revisions


async def test_a_node_that_joins_gets_what_is_meant_for_it_and_disturbs_nobody(tree, members):
    written, revisions = counted(tree)

    tree.seeds[NEW] = await members.let_in(str(NEW), {"env": "prod"})

    labels, _ = members.enrolling.known_of(NEW)
    assert labels == {"id": "r1-s9", "region": "r1", "env": "prod"}
    async with asyncio.TaskGroup() as group:
        await tree.start(NEW, group, attached=True)
        await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 4})
        listed = await members.all()
        assert listed[str(NEW)]["reached"]
        assert listed[str(NEW)]["syncTarget"] == "r1-s9"

        later, later_revisions = counted(tree)
        grew = {path for path, count in later.items() if count > written.get(path, 0)}
        assert grew <= {NodePath(), NEW.parent}
        assert later[NodePath()] - written[NodePath()] == 3, "a node, a profile, a location"
        assert {path: later_revisions[path] for path in revisions} == revisions

        gone = await members.membership.remove(str(NEW))
        assert gone["removed"] == [str(NEW)]
        assert all("objects" not in left for left in gone["left"])
        maps = await tree.spaces[NEW].list("", "configmaps")
        assert maps.objects == ()
        await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 3})
        await tree.stop(NEW)


async def test_a_node_that_does_not_answer_goes_by_force_and_what_it_keeps_is_said(tree, members):
    tree.network.cut(S1)
    with pytest.raises(ApiError) as refused:
        await members.membership.remove(str(S1))
    assert refused.value.code == "Unreachable"
    assert "--force" in refused.value.remedy
    with pytest.raises(ValueError, match="nodes below it"):
        await members.membership.remove("/r1")

    gone = await members.membership.remove("/r1", force=True)

    assert gone["removed"] == ["/r1", "/r1/s1", "/r1/s2"]
    assert any(
        left.startswith("what /r1/s1 was sent before: it does not answer") for left in gone["left"]
    )
    await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 1})
    assert list(await members.all()) == ["/r2", "/r2/s1"]
    with pytest.raises(ApiError, match="no such node"):
        await members.membership.remove("/r1", force=True)


async def test_what_cannot_be_added_is_refused_with_a_remedy(tree, members):
    for path, match in (("/", "centre"), ("/nowhere/s1", "add /nowhere first"), ("s1", "starts")):
        with pytest.raises(ValueError, match=match):
            await members.let_in(path)
    with pytest.raises(ApiError, match="labels"):
        await members.let_in(str(NEW), {"bad key!": "x"})
    tree.network.cut(S1.parent)
    with pytest.raises(ApiError) as refused:
        await members.let_in(str(NEW))
    assert refused.value.code == "Unreachable"


async def test_a_new_key_makes_no_edge_of_a_relay_and_no_relay_of_an_edge(tree, members):
    before = dict(tree.controllers.issuer.records)
    for path, relay, match in (
        ("/r1", False, r"a relay, with nodes below it \(2\); say --relay"),
        (str(S1), True, 'an edge, of SyncTarget "r1-s1"; leave out --relay'),
    ):
        with pytest.raises(ValueError, match=match):
            await members.let_in(path, relay=relay)
    assert dict(tree.controllers.issuer.records) == before

    # What nothing hangs below may have been added so by mistake.
    await members.let_in(str(NEW), relay=True)
    await members.let_in(str(NEW), replace=True)
    assert members.enrolling.known_of(NEW)[0]["id"] == "r1-s9"
    before = members.enrolling.record(S1.parent).nkey
    await members.let_in("/r1", relay=True, replace=True)
    assert members.enrolling.record(S1.parent).nkey != before


async def test_what_exists_is_replaced_only_if_said_and_told_what_that_cuts_off(tree, members):
    before = dict(tree.controllers.issuer.records)
    for path, relay, cut in (
        (str(S1), False, "it is up and would be cut off then"),
        ("/r1", True, "it is up, and 2 nodes below it, and would be cut off then"),
    ):
        with pytest.raises(ApiError) as refused:
            await members.let_in(path, relay=relay)
        assert refused.value.code == "AlreadyExists"
        assert refused.value.message == f'node "{path}" already exists'
        assert f"--replace lets another key in: {cut}" in refused.value.remedy
    assert dict(tree.controllers.issuer.records) == before
    await members.let_in(str(NEW))
    with pytest.raises(ApiError, match="already exists") as refused:
        await members.let_in(str(NEW))
    assert refused.value.remedy == "--replace lets another key in: it has never joined"


async def test_nothing_is_added_below_an_edge(tree, members):
    with pytest.raises(ValueError, match=r'/r1/s1 is an edge, of SyncTarget "r1-s1"'):
        await members.let_in("/r1/s1/x")


async def test_many_are_added_as_one_or_none_if_one_is_wrong(tree, members):
    before = dict(tree.controllers.issuer.records)
    nodes = [{"path": f"/r1/many-{n}", "labels": {"kind": "store"}} for n in range(30)]
    wrong = [*nodes, {"path": str(S1), "labels": {}}, {"path": "/no/x", "labels": {}}]
    said = await members.admission.add(wrong)
    assert [(it["at"], it["reason"]) for it in said["faults"]] == [
        (30, "AlreadyExists"),
        (31, "Invalid"),
    ]
    assert await members.admission.add(nodes, dry_run=True) == {"faults": [], "added": []}
    assert (await members.admission.tokens())["tokens"] == []
    added = (await members.admission.add(nodes))["added"]
    assert len({it["token"] for it in added}) == 30
    assert dict(tree.controllers.issuer.records) == before
