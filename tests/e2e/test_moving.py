"""An edge that hangs elsewhere stays the destination it is, keeps what it has, and counts once."""

from __future__ import annotations

import asyncio

import pytest

from controllers.issuing.nodes import NodeRefused, add_node
from leafcast.ask.api import ApiError
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.core.link.session import HELLO_SECONDS, SILENT_AFTER_SECONDS
from schemas.enrolment.enrolment import JoinRequest, open_answer, sign_request
from schemas.enrolment.tokens import read_token
from schemas.objects.objects import ObjectKey
from schemas.records.moves import MOVED_ANNOTATION
from schemas.values.identity import NodePath
from schemas.values.refusals import BadIdentity
from schemas.values.wire import encode
from tests.awaiting import eventually
from tests.e2e.centre_parts import Members, Parts
from tests.memory_tree import MANAGER, config_map, memory_tree, placement

PATHS = ["/r1", "/r2", "/r1/s1", "/r1/s2", "/r2/s3"]
R1, R2, OLD, NEW = map(NodePath.parse, ("/r1", "/r2", "/r1/s1", "/r2/s9"))
TARGET = ObjectKey("edge.kubestellar.io", "synctargets", "", "r1-s1")
GREEN = ObjectKey("", "configmaps", "shop", "a")


@pytest.fixture
async def tree(tmp_path):
    async with memory_tree(tmp_path, PATHS) as grown:
        await grown.apply(
            placement("shop", "shop"),
            config_map("a", "shop", colour="green"),
            placement("first", "first", locationSelectors=[{"matchLabels": {"region": "r1"}}]),
            config_map("one", "first"),
            placement("second", "second", locationSelectors=[{"matchLabels": {"region": "r2"}}]),
            config_map("two", "second"),
        )
        await settled(grown, shop=3, first=2, second=1)
        yield grown


@pytest.fixture
def parts(tree):
    return Parts(tree)


@pytest.fixture
def members(tree, parts, tmp_path):
    return Members(tree, parts, tmp_path)


async def settled(tree, **synced: int) -> None:
    for name, count in synced.items():
        await tree.until(
            name, lambda c, n=count: c.exact and c.summary.states == {"synced": n}, seconds=120
        )


async def holds(tree, path: NodePath, names: set[str]) -> bool:
    return await maps_at(tree, path) == names


async def maps_at(tree, path: NodePath) -> set[str]:
    return {
        obj["metadata"]["name"] for obj in (await tree.spaces[path].list("", "configmaps")).objects
    }


async def test_it_is_the_same_destination_elsewhere_and_holds_what_is_meant_there(
    tree, parts, members
):
    await refused_without_a_change(tree, parts, members)
    uid = (await tree.inventory.get(TARGET))["metadata"]["uid"]
    kept = await tree.spaces[OLD].get(GREEN)

    made = await members.moves.move(str(OLD), str(NEW))

    token = read_token(made["token"])
    assert (made["name"], made["path"], token.path) == ("r1-s1", str(NEW), NEW)
    assert made["labels"] == {"id": "r1-s1", "region": "r2"}
    assert (await members.all())[str(NEW)]["state"] == "never joined"
    grant = await granted(tree, members, token)
    assert (grant.path, grant.former, grant.relay) == (NEW, (OLD,), False)
    await tree.carry(OLD, NEW)
    async with asyncio.TaskGroup() as group:
        await tree.start(NEW, group, attached=True, former=(OLD,))
        await settled(tree, shop=3, first=1, second=2)
        await eventually(lambda: holds(tree, NEW, {"a", "two"}))
        assert await tree.spaces[NEW].get(GREEN) == kept, "what is meant there, too, is untouched"
        target = await tree.inventory.get(TARGET)
        assert target["metadata"]["uid"] == uid
        listed = await members.all()
        assert str(OLD) not in listed
        assert listed[str(NEW)]["syncTarget"] == "r1-s1"

        # Its old path is free, and its name is not.
        await members.let_in(str(OLD))
        assert members.enrolling.known_of(OLD)[0]["id"] == "r1-s1-2"
        again = await members.admission.add([{"path": str(NEW), "labels": {}}], replace=True)
        grant = await granted(tree, members, read_token(again["added"][0]["token"]))
        assert (grant.former, grant.labels["id"]) == ((OLD,), "r1-s1")
        await tree.stop(NEW)


async def granted(tree, members, token):
    """What who asks with a token is granted, once that is approved."""
    entropy = tree.dice.entropy(32)
    tree.seeds[token.path], nkey = new_user_nkey(entropy)
    request = sign_request(token, JoinRequest(token.path, nkey), entropy)
    await members.admission.decide(encode(request))
    if asking := (await members.admission.requests())["requests"]:
        await members.admission.approve([it["path"] for it in asking])
    return open_answer(token, request, await members.admission.decide(encode(request))).grant


async def refused_without_a_change(tree, parts, members) -> None:
    """What cannot move there stays as it is."""
    parts.here = {NodePath.parse("/r1/s2")}
    await members.let_in("/r4", relay=True)
    before = dict(tree.controllers.issuer.records)
    for old, new, said in (
        ("/r1/s8", "/r2/s9", "there is no such node; `leafcast node list`"),
        ("/r1/s2", "/r2/s2", "`leafcast up` starts it here"),
        ("/r4", "/r2/r4", "it is a relay, and keeps nothing that could move; add one"),
        ("/r1/s1", "/r2/s\u00e9", "is not a node path"),
    ):
        with pytest.raises((NodeRefused, BadIdentity)) as refused:
            await members.moves.move(old, new)
        assert said in str(refused.value)
    with pytest.raises(ApiError, match="env"):
        await members.moves.move(str(OLD), str(NEW), labels={"env": "not a value"})
    records = tree.controllers.issuer.records
    assert {key for key in records if records[key] != before.get(key)} <= {"_index"}
    await members.membership.remove("/r4", force=True)


async def test_it_keeps_and_repairs_what_it_has_until_its_new_parent_knows_it(tree):
    issuer, entropy = tree.controllers.issuer, tree.dice.entropy(32)
    await add_node(issuer, NEW, entropy, new_user_nkey)
    await tree.drivers[R2].until(lambda node: NEW.name in node.children())
    tree.network.cut(R2)
    target = await tree.inventory.get(TARGET)
    told = {"leafcast.io/path": str(NEW), MOVED_ANNOTATION: str(OLD)}
    metadata = target["metadata"]
    there = {**metadata, "annotations": {**metadata["annotations"], **told}}
    await tree.inventory.apply({**target, "metadata": there}, MANAGER)
    await tree.drivers[R1].until(lambda node: OLD.name not in node.children())
    await tree.carry(OLD, NEW)
    space = tree.spaces[NEW]
    async with asyncio.TaskGroup() as group:
        moved = await tree.start(NEW, group, attached=True, former=(OLD,))
        await moved.until(lambda node: node.ready and node.may_prune)
        changed = await space.apply(config_map("a", "shop", colour="red"), "someone")
        await until_written(space, changed)
        assert await maps_at(tree, NEW) == {"a", "one"}
        assert (await space.get(GREEN))["data"] == {"colour": "green"}
        tree.network.heal(R2)
        await settled(tree, shop=3, first=2, second=1)
        assert await maps_at(tree, NEW) == {"a", "one"}
        await tree.stop(NEW)


async def until_written(space, before) -> None:
    """Wait until an object is another than this."""
    async with asyncio.timeout(60):
        async for change in space.watch(before["metadata"]["resourceVersion"]):
            if change.key == GREEN:
                return


async def test_with_its_old_parent_gone_it_counts_once(tree, members):
    tree.network.cut(R1)
    for _ in range(2):
        await tree.leap(SILENT_AFTER_SECONDS / 2 + 1)
    await tree.centre.until(lambda node: node.standing_of(R1.name).silent_since_ms)
    await tree.leap(HELLO_SECONDS)
    await tree.until(
        "shop", lambda c: c.exact and c.summary.states == {"unreachable": 2, "synced": 1}
    )
    key, seen = await tree.placement_key("shop"), []

    def look(node):
        count = node.count(key)
        if count.exact:
            seen.append(dict(count.summary.states))
        return False

    async with asyncio.TaskGroup() as group:
        looking = group.create_task(tree.centre.until(look))
        made = await members.moves.move(str(OLD), str(NEW))
        await granted(tree, members, read_token(made["token"]))
        await tree.carry(OLD, NEW)
        await tree.start(NEW, group, attached=True, former=(OLD,))
        away = {"synced": 2, "unreachable": 1}
        await tree.until("shop", lambda c: c.exact and c.summary.states == away)
        looking.cancel()
        # Neither does a centre that starts again take the old word for a whole one.
        await tree.stop_controllers()
        await tree.stop(NodePath())
        await tree.start(NodePath(), group, attached=False)
        await tree.control(group)
        for _ in range(2):
            await tree.leap(SILENT_AFTER_SECONDS / 2 + 1)
        await tree.until("shop", lambda c: c.exact and c.summary.states == away)
        tree.network.heal(R1)
        await settled(tree, shop=3, first=1, second=2)
        for path in (NEW, NodePath()):
            await tree.stop(path)
        await tree.stop_controllers()
    assert {sum(states.values()) for states in seen} == {3}, seen


async def test_a_move_that_ends_without_a_token_says_how_to_make_one(
    tree, members, tmp_path, monkeypatch
):
    with monkeypatch.context() as full:
        full.setattr("controllers.core.access.issued_tokens.TOKENS_MAX", 0)
        with pytest.raises(ApiError, match="at most 0 can be"):
            await members.moves.move(str(OLD), str(NEW))
    # Nothing was moved before there was room for its token.
    assert str(OLD) in await members.all()

    with monkeypatch.context() as hasty:
        hasty.setattr("leafcast.daemon.nodes.moving.ADMIT_SECONDS_MAX", -1)
        with pytest.raises(ApiError, match="the centre has not seen it yet") as late:
            await members.moves.move(str(OLD), str(NEW))
    remedy = f"make a token with `leafcast node add {NEW} --approved`"
    assert remedy in late.value.remedy
    await eventually(lambda: members.enrolling.record(OLD) is None)
    nodes = [{"path": str(NEW), "labels": {}}]
    (added,) = (await members.admission.add(nodes, sure=True))["added"]
    assert (await granted(tree, members, read_token(added["token"]))).former == (OLD,)

    # Neither does a disk that takes no token leave it there without a word.
    (tmp_path / "tokens").rename(tmp_path / "tokens of before")
    (tmp_path / "tokens").touch()
    other, there = "/r1/s2", "/r2/s8"
    with pytest.raises(ApiError, match=f"{other} was moved to {there}") as unwritten:
        await members.moves.move(other, there)
    assert unwritten.value.remedy == remedy.replace(str(NEW), there)
