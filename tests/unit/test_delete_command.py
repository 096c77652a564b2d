"""`leafcast delete` on spaces in memory: what goes, in which order, and what is told of it."""

import asyncio
import re

import pytest
from click import ClickException

from leafcast.changes.removals import Removals
from leafcast.cli.commands.delete import DeleteRequest, delete_all
from leafcast.cli.resource_arguments import BadResourceArguments
from relay.space_errors import SpaceError
from tests.doubles.memory_space import MemorySpace
from tests.unit.test_object_commands import (
    CLOCK,
    CONFIG,
    CRD,
    DICE,
    OX,
    PLACEMENT,
    SHOP,
    WEB,
    applied,
    daemon_with,
    manifests,
    session_with,
)

LOSS = {"placement": "shop", "copies": 80, "places": 5, "large": True}


def planned(*losses):
    """What a centre answers that would plan a change."""
    answer = {"plan": 1, "losses": list(losses)}
    return {f"plan-{word}": answer for word in ("begin", "put", "weigh", "end")}


@pytest.fixture
def session():
    return session_with(MemorySpace(CLOCK, DICE))


async def test_objects_go_in_the_order_that_spares_what_others_lean_on(session, capsys):
    await applied(session, WEB, SHOP, PLACEMENT)
    capsys.readouterr()
    assert (
        await delete_all(session, DeleteRequest(loaded=tuple(manifests(WEB, SHOP, PLACEMENT)))) == 0
    )
    assert capsys.readouterr().out.splitlines() == [
        'edgeplacement.edge.kubestellar.io "shop" deleted',
        'deployment.apps "web" deleted',
        'namespace "shop" deleted',
    ]
    assert (await session.workloads.list()).objects == ()


class KeepsAWhile(MemorySpace):
    """A space in which a placement is seen for some time after it was deleted, as on a hub."""

    def __init__(self, *, looks):
        super().__init__(CLOCK, DICE)
        self.looks = looks
        self.leaving = {}

    async def delete(self, key, uid=""):
        self.leaving[key] = await self.get(key)
        await super().delete(key, uid)

    async def get(self, key):
        if key in self.leaving and self.looks:
            self.looks -= 1
            return self.leaving[key]
        return await super().get(key)


async def test_a_placement_that_was_deleted_is_gone_when_the_command_ends(capsys):
    space = KeepsAWhile(looks=3)
    there = session_with(space)
    await applied(there, PLACEMENT)
    await delete_all(there, DeleteRequest(loaded=tuple(manifests(PLACEMENT))))
    assert not space.looks
    assert 'edgeplacement.edge.kubestellar.io "shop" deleted' in capsys.readouterr().out


async def test_what_one_command_deletes_goes_out_together():
    class Told(MemorySpace):
        async def delete(self, key, uid=""):
            daemon.paused.said.append(("delete", key.name))
            return await super().delete(key, uid)

    daemon = daemon_with(Told(CLOCK, DICE), beside=planned())
    await applied(daemon.session, WEB, SHOP)
    daemon.paused.said.clear()
    await delete_all(daemon.session, DeleteRequest(loaded=tuple(manifests(WEB, SHOP)), dry=True))
    assert not daemon.paused.said
    await delete_all(daemon.session, DeleteRequest(loaded=tuple(manifests(WEB, SHOP))))
    (begin, name), *deleted, (end, same) = daemon.paused.said
    assert (begin, end) == ("hold", "release")
    assert deleted == [("delete", "web"), ("delete", "shop")]
    assert name == same


@pytest.mark.parametrize(("confirmed", "left"), [(False, 2), (True, 0)])
async def test_a_deletion_that_takes_much_is_refused_with_the_number_unless_it_is_confirmed(
    capsys, confirmed, left
):
    daemon = daemon_with(MemorySpace(CLOCK, DICE), beside=planned(LOSS))
    session = daemon.session
    await applied(session, WEB, SHOP)
    request = DeleteRequest(loaded=tuple(manifests(WEB, SHOP)), confirmed=confirmed)
    said = "takes away 80 copies at 5 destinations (epl/shop)"
    if confirmed:
        await delete_all(session, request)
        assert f"Note: this {said}" in capsys.readouterr().err
    else:
        with pytest.raises(ClickException, match=re.escape(said)) as refused:
            await delete_all(session, request)
        assert "nothing was deleted; if that is meant, say --confirm-removals" in str(refused.value)
    assert len((await session.workloads.list()).objects) == left
    allowed = [said for word, said in daemon.paused.said if word == "confirm"]
    assert allowed == ([{"shop": 80}] if confirmed else [])


class Backwards(MemorySpace):
    """Deletes the objects in `turns` from the last to the first, and refuses one of them."""

    turns = ("a", "b", "c")
    refused = ""

    def __init__(self):
        super().__init__(CLOCK, DICE)
        self.left, self.gone, self.turn = list(self.turns), [], asyncio.Condition()

    async def delete(self, key, uid=""):
        async with self.turn:
            await self.turn.wait_for(lambda: key.name not in self.left or key.name == self.left[-1])
            if key.name in self.left:
                self.left.pop()
            self.turn.notify_all()
        if key.name == self.refused:
            raise SpaceError("ServiceUnavailable", f"{key}: it stays")
        self.gone.append(key.name)
        return await super().delete(key, uid)


def in_shop(*names):
    return (CONFIG.replace("%s", f"{name}, namespace: shop") for name in names)


async def test_what_does_not_lean_on_another_is_deleted_at_once_and_told_in_order(capsys):
    session = session_with(Backwards())
    texts = [SHOP, *in_shop("a", "b", "c")]
    await applied(session, *texts)
    capsys.readouterr()
    async with asyncio.timeout(60):
        assert await delete_all(session, DeleteRequest(loaded=tuple(manifests(*texts)))) == 0
    assert capsys.readouterr().out.splitlines() == [
        'configmap "a" deleted',
        'configmap "b" deleted',
        'configmap "c" deleted',
        'namespace "shop" deleted',
    ]
    assert session.workloads.gone == ["c", "b", "a", "shop"]


async def test_where_one_deletion_is_refused_what_others_lean_on_stays(capsys):
    session = session_with(Backwards())
    session.workloads.refused = "b"
    texts = [SHOP, *in_shop("a", "b", "c")]
    await applied(session, *texts)
    capsys.readouterr()
    with pytest.raises(SpaceError, match="configmaps/shop/b: it stays"):
        await delete_all(session, DeleteRequest(loaded=tuple(manifests(*texts))))
    told = capsys.readouterr().out.splitlines()
    assert told == ['configmap "a" deleted', 'configmap "c" deleted']
    left = (await session.workloads.list()).objects
    assert {obj["metadata"]["name"] for obj in left} == {"b", "shop"}


async def test_what_a_namespace_holds_goes_with_it(session, capsys):
    await applied(session, WEB, SHOP, CONFIG % "other")
    capsys.readouterr()
    await delete_all(session, DeleteRequest(("ns", "shop"), dry=True))
    assert (await session.workloads.list(namespace="shop")).objects
    await delete_all(session, DeleteRequest(("ns", "shop")))
    assert (await session.workloads.list(namespace="shop")).objects == ()
    assert len((await session.workloads.list()).objects) == 1
    assert "(dry run)" in capsys.readouterr().out


async def test_what_a_definition_defines_goes_with_it(session, capsys):
    await applied(session, SHOP, CRD, OX, OX.replace("bill", "jill, namespace: shop"))
    capsys.readouterr()
    name = "oxen.farm.example"
    assert await delete_all(session, DeleteRequest(("crd", name))) == 0
    assert capsys.readouterr().out.splitlines() == [
        'ox.farm.example "bill" deleted',
        'ox.farm.example "jill" deleted',
        f'customresourcedefinition.apiextensions.k8s.io "{name}" deleted',
    ]


async def test_nothing_is_deleted_without_a_name_a_selector_or_all(session):
    await applied(session, CONFIG % "a")
    with pytest.raises(BadResourceArguments, match="no name was specified"):
        await delete_all(session, DeleteRequest(("cm",)))
    with pytest.raises(BadResourceArguments, match="leave out one"):
        await delete_all(session, DeleteRequest(("cm", "a"), every=True))
    assert len((await session.workloads.list()).objects) == 1
    assert await delete_all(session, DeleteRequest(("cm", "b"))) == 1
    assert await delete_all(session, DeleteRequest(("cm",), every=True)) == 0
    assert (await session.workloads.list()).objects == ()


def test_what_is_all_kept_is_not_asked_for():
    loss = {"placement": "shop", "copies": 40, "places": 2, "large": True}
    assert Removals([loss]).are_large
    assert Removals([{**loss, "kept": 39}]).are_large
    assert not Removals([{**loss, "kept": 40}]).are_large
