"""A centre of three members: whichever of it dies or stops, what was acknowledged is kept."""

import asyncio
import json
import os
import re
import signal
from contextlib import asynccontextmanager

import pytest

from leafcast.members.settings import FILE
from relay.adapters.server.admin import cut_links
from relay.adapters.server.ports import free_port
from tests.awaiting import eventually
from tests.nats.chaos_member import GOES_ON, PAUSED, until
from tests.nats.trio_tree import TrioTree, daemon_log

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(240)]

EDGE = "/edge"


class Applies:
    """Puts object after object, and knows which of them were acknowledged."""

    def __init__(self, tree: TrioTree) -> None:
        self._tree = tree
        self._put = asyncio.Event()
        self.acknowledged: list[str] = []
        self.attempted: list[str] = []

    async def run(self) -> None:
        while True:
            name = f"o{len(self.attempted)}"
            self.attempted.append(name)
            await self._tree.put("web", **{name: name})
            self.acknowledged.append(name)
            put, self._put = self._put, asyncio.Event()
            put.set()

    async def more(self, count: int) -> None:
        """Wait for so many more to be acknowledged."""
        for _ in range(count):
            await self._put.wait()


@asynccontextmanager
async def changing_tree(tmp_path):
    """A tree with an edge, under changes without a pause; at the end all of it has to be exact."""
    tree = TrioTree(tmp_path)
    try:
        await tree.start()
        await tree.join(EDGE)
        await tree.place("web")
        applies = Applies(tree)
        changing = asyncio.create_task(applies.run())
        await applies.more(5)
        began = (await tree.look([EDGE]))[EDGE]
        yield tree, applies
        await applies.more(5)
        changing.cancel()
        await asyncio.wait([changing])
        await nothing_is_lost(tree, applies, began)
    finally:
        await tree.close()


async def nothing_is_lost(tree, applies, began):
    """The edge holds what the centre does, and that has all that was acknowledged."""
    values = await tree.centre_values()
    assert set(applies.acknowledged) <= values.keys() <= set(applies.attempted)
    tree.wanted["web"] = values
    held = (await tree.exact([EDGE]))[EDGE]
    assert {name: held.objects[name].uid for name in began.objects} == {
        name: stored.uid for name, stored in began.objects.items()
    }
    assert not [name for name in held.asked if name.startswith("-")]


async def test_a_killed_member_is_followed_by_another(tmp_path):
    async with changing_tree(tmp_path) as (tree, applies):
        first = tree.active()
        tree.centres[first].kill()
        second = await tree.until_active(beside=first)
        await applies.more(3)
        # It comes back and stands by, so that another one can be lost.
        tree.centres[first].start()
        await until(lambda: tree.stands_by(first), lambda: str(tree.said()))
        await applies.more(3)
        tree.centres[second].kill()
        await tree.until_active(beside=second)


@pytest.mark.long
async def test_the_server_of_the_active_member_is_killed(tmp_path):
    async with changing_tree(tmp_path) as (tree, applies):
        for pid in tree.centres[tree.active()].server_pids():
            os.kill(pid, signal.SIGKILL)
        await applies.more(5)


@pytest.mark.long
async def test_the_server_of_a_standby_is_killed_and_nobody_takes_over(tmp_path):
    async with changing_tree(tmp_path) as (tree, applies):
        active = tree.active()
        standby = min(tree.centres.keys() - {active})
        for pid in tree.centres[standby].server_pids():
            os.kill(pid, signal.SIGKILL)
        await applies.more(20)
        assert tree.active() == active


@pytest.mark.long
async def test_without_an_active_member_nothing_is_accepted_and_that_is_said(tmp_path):
    tree = TrioTree(tmp_path)
    try:
        await tree.start()
        # One of three cannot become active.
        for name in tree.centres.keys() - {"m2"}:
            await tree.centres[name].stop()
        said = r"^no member is active since \d+ s; accepted: nothing"
        await until(lambda: matches(said, tree), lambda: str(tree.said()))
        await tree.restart("m1", "m3")
        await tree.serving()
    finally:
        await tree.close()


async def matches(said, tree):
    """Whether the tree refuses what is asked, and says so."""
    try:
        return re.match(said, await tree.refused("tree")) is not None
    except AssertionError:
        return False  # Of the last two one may have become active for a moment.


@pytest.mark.long
async def test_a_member_that_reaches_no_other_sends_the_children_at_its_door_to_them(tmp_path):
    tree = TrioTree(tmp_path, {"leafcast.members.member.LONE_SECONDS": 20.0})
    try:
        await tree.start()
        await tree.join(EDGE)
        await tree.place("web")
        await tree.put("web", first="1")
        await tree.exact([EDGE])
        lone, active = tree.centres["m2"], await tree.until_active()
        await lone.stop()
        file = lone.folder / FILE
        form = json.loads(file.read_text())
        # The others dial it, and are told another password.
        dead = [f"127.0.0.1:{free_port(tmp_path, 7 + number)}" for number in range(2)]
        file.write_text(json.dumps({**form, "routes": dead, "password": "q" * 32}))
        lone.start()

        async def is_cut_off():
            for name in tree.centres.keys() - {"m2"}:
                async with tree.centres[name].client("system") as system:
                    await cut_links(system, "edge")
            async with lone.client("system") as system:
                verb = f"$SYS.REQ.SERVER.{system._server_info['server_id']}.LEAFZ"
                return json.loads((await system.request(verb, timeout=5)).data)["data"].get("leafs")

        await eventually(is_cut_off, "the edge is not linked to the lone member", every=1.0)
        if active == "m2":
            await tree.until_active(beside="m2")
        await tree.put("web", second="2")
        await tree.exact([EDGE])
        assert "closed its door to children" in daemon_log(lone)
    finally:
        await tree.close()


@pytest.mark.long
async def test_what_a_dead_member_handed_out_and_changed_is_good_at_the_next_one(tmp_path):
    async with changing_tree(tmp_path) as (tree, applies):
        for what in ("signing", "root", "signing"):
            token = await tree.invite(f"/new-{what}-{len(applies.attempted)}")
            assert (await tree.call("keys-change", what=what))["request"] is None
            first = tree.active()
            # At once: nothing but what was answered is known to anyone.
            tree.centres[first].kill()
            await tree.until_active(beside=first)
            tree.centres[first].start()
            path = "/" + token.name.rpartition("-")[0]
            member = tree.joined_with(path, token)
            await until(lambda its=member: "is in session" in its.said, lambda its=member: its.said)
            await member.stop()
            await until(lambda first=first: tree.stands_by(first), lambda: str(tree.said()))


async def test_a_stopped_member_that_goes_on_later_changes_nothing(tmp_path):
    async with changing_tree(tmp_path) as (tree, applies):
        spare = await tree.join("/spare", labels={})
        await until(lambda: "is in session" in spare.said, lambda: spare.said)
        first = tree.active()
        tree.centres[first].kill(PAUSED)
        await tree.until_active(beside=first)
        await applies.more(5)
        revoked = await tree.call("node-revoke", path="/spare")
        assert (revoked["cut"], revoked["unconfirmed"]) == (True, [first])
        tree.centres[first].kill(GOES_ON)
        await until(lambda: tree.stands_by(first), lambda: str(tree.said()))
        await applies.more(5)
        revoked = await tree.call("node-revoke", path="/spare")
        assert (revoked["cut"], revoked["unconfirmed"]) == (True, [])


async def test_a_member_that_cannot_open_the_state_says_so_and_leaves_it_to_others(tmp_path):
    tree = TrioTree(tmp_path)
    try:
        await tree.start()
        standby = min(tree.centres.keys() - {tree.active()})
        await tree.centres[standby].stop()
        file = tree.centres[standby].folder / FILE
        form = json.loads(file.read_text())
        file.write_text(json.dumps({**form, "key": "07" * 32}))
        await tree.restart(standby)
        said = f"member {standby} cannot open"
        await until(lambda: said in tree.said()[standby], lambda: str(tree.said()))
        assert tree.active() not in ("", standby)
    finally:
        await tree.close()


@pytest.mark.long
async def test_a_member_that_is_told_to_end_hands_over_at_once(tmp_path):
    async with changing_tree(tmp_path) as (tree, _):
        first = tree.active()
        await tree.centres[first].stop()
        # Sooner than the others would see that the lease is silent.
        await tree.until_active(beside=first, seconds=7)
