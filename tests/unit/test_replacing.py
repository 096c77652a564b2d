"""The active member goes on with a change of the members, and answers who wants a place."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest
from nacl.public import PrivateKey

from leafcast.members import replacing
from leafcast.members.founding import founded, settle
from leafcast.members.membership import DONE, REMOVED, TRUSTED
from leafcast.members.replacing import ActiveSide, ReplacementWish, Replacing, _Draft
from leafcast.members.settings import kept_member
from leafcast.members.steps import carry_out
from leafcast.node.credentials.account_seeds import new_seeds
from leafcast.node.member_change import NOT_LOST, ReplacementRefused
from leafcast.node.member_forms import APPLIED
from relay.adapters.clock import SystemClock
from relay.adapters.jetstream.cluster_peers import UnplacedStream, peer_id
from relay.adapters.jetstream.member_presence import ROLE, STANDBY
from relay.adapters.jetstream.member_servers import MemberServer
from relay.ports import BusBroken
from schemas.enrolment.member_requests import MemberRequest
from schemas.values.wire import replace as with_fields
from tests.unit.test_member_replacement import DICE, KEYS, NAMES, NOW_MS, PATH, TREE

ALL_KEYS = {**KEYS, "m5": PrivateKey(b"5" * 32)}


class Hurried(SystemClock):
    """Waits for nothing, and lets others run."""

    async def sleep(self, seconds):
        del seconds
        await asyncio.sleep(0)


def here(name):
    """A machine that is reached on this machine alone, as it asks."""
    at = int(name[1:])
    key = bytes(ALL_KEYS[name].public_key)
    return MemberRequest(PATH, key, "1.0", NOW_MS, "127.0.0.1", 6000 + at, 7000 + at, 8000 + at)


def server(settings, name):
    return replace(settings.cluster, member=name).server_name(PATH)


class Active:
    """Member m1 as the active one, of a region on one machine of which m2 is lost."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        machines = {name: here(name) for name in NAMES}
        made = founded(TREE, PATH, machines, None, new_seeds(DICE), DICE, NOW_MS)
        settle(made["m1"], bytes(KEYS["m1"]), folder, folder / "lc_emea")
        self.settings = kept_member(folder)
        self.roles = {"m1": STANDBY, "m3": STANDBY}
        # What each said that it carried out; None: what the active one did.
        self.applied = {}
        self.kept, self.broken, self.looks = [], None, asyncio.Event()
        # What the cluster counts, and which streams nobody placed at the new server.
        self.counted, self.lacking, self.placed = frozenset[str](), [], []
        monkeypatch.setattr(replacing, "member_servers", self.servers)
        monkeypatch.setattr(replacing, "cluster_peers", self.peers)
        monkeypatch.setattr(replacing, "streams_behind", self.behind)
        monkeypatch.setattr(replacing, "streams_lacking", self.lacks)
        monkeypatch.setattr(replacing, "have_placed", self.place)
        monkeypatch.setattr(replacing, "PLACE_SECONDS", 0.0)
        own = ActiveSide(
            folder,
            folder / "lc_emea",
            lambda: self.settings,
            SimpleNamespace(confirm=self.confirm),
            SimpleNamespace(look=self.look),
            SimpleNamespace(running=()),
            None,
            None,
            self.account,
            lambda urls: None,
            self.commit,
            self.carry_out,
        )
        self.replacing = Replacing(own, None, Hurried(), DICE)

    async def confirm(self):
        await asyncio.sleep(0)

    async def servers(self, relay):
        del relay
        return [MemberServer(name) for name in self.roles]

    async def peers(self, system, servers):
        del system, servers
        return self.counted

    async def behind(self, system, name, servers):
        del system, name, servers
        return [it.stream for it in self.lacking]

    async def lacks(self, system, name, servers):
        del system, name, servers
        return self.lacking

    async def place(self, connection, it, gone):
        self.placed.append((connection, it.stream, gone))
        self.lacking = [other for other in self.lacking if other != it]

    @asynccontextmanager
    async def account(self, name):
        yield name

    async def look(self):
        self.looks.set()
        own = list(self.settings.applied)
        return {
            name: {ROLE: role, APPLIED: self.applied.get(name, own)}
            for name, role in self.roles.items()
        }

    async def commit(self, change):
        if self.broken is not None:
            raise self.broken
        self.kept.append(change)

    async def carry_out(self):
        self.settings = carry_out(self.folder, self.settings, self.replacing.change)

    async def wish(self, lost, name, asked=None):
        return await self.replacing.answer(ReplacementWish(lost, name, asked).arguments())

    async def until(self, task, step, came):
        """Go on until a change is that far."""
        while not (self.kept and (self.kept[-1].step, self.kept[-1].came) == (step, came)):
            assert not task.done(), task
            await asyncio.sleep(0)


@pytest.fixture
def active(tmp_path, monkeypatch):
    return Active(tmp_path, monkeypatch)


async def test_each_step_is_kept_before_it_is_gone_on_with_and_the_last_ends_the_run(active):
    active.applied["m4"] = [1, REMOVED]
    active.roles["m4"] = STANDBY
    assert await active.wish("m2", "m4", here("m4")) == {"waits": active.kept[0].said}
    with pytest.raises(BusBroken, match="m4 is a member in the place of m2"):
        await active.replacing.run()
    assert [it.step for it in active.kept] == list(range(TRUSTED, DONE + 1))


async def test_a_machine_that_was_lost_before_it_came_is_waited_for_no_more(active):
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        await active.wish("m2", "m4", here("m4"))
        running = group.create_task(active.replacing.run())
        await active.until(running, REMOVED, "m4")
        active.looks.clear()
        await active.looks.wait()
        assert await active.wish("m4", "m5", here("m5")) == {"waits": active.kept[-1].said}
        await active.until(running, REMOVED, "m5")
        running.cancel()
    assert active.kept[-1].former == ("m2", "m4")


async def test_streams_that_nobody_placed_at_the_new_server_are_placed(active):
    await active.wish("m2", "m4", here("m4"))
    m1, m2, m3, m4 = (server(active.settings, it) for it in ("m1", "m2", "m3", "m4"))
    left = frozenset({peer_id(m1), peer_id(m3)})
    active.lacking = [
        UnplacedStream("RELAY", "OWN", left | {peer_id(m2)}),
        UnplacedStream("SPACE", "KV_pods", left),
    ]
    active.counted = left | {peer_id(m4)}
    active.applied["m4"], active.roles["m4"] = [1, REMOVED], STANDBY
    async with asyncio.timeout(60):
        with pytest.raises(BusBroken, match="m4 is a member"):
            await active.replacing.run()
    assert active.placed == [("RELAY", "OWN", m2), ("SPACE", "KV_pods", "")]
    assert active.kept[-1].step == DONE


async def test_what_may_be_kept_or_not_ends_the_run_and_is_gone_on_with_by_nobody(active):
    active.broken = BusBroken("no answer")
    with pytest.raises(BusBroken, match="no answer"):
        await active.wish("m2", "m4", here("m4"))
    assert active.replacing.change is None
    async with asyncio.timeout(60):
        with pytest.raises(BusBroken, match="no answer"):
            await active.replacing.run()


async def test_a_machine_may_say_another_address_until_the_others_are_told(active):
    elsewhere = with_fields(here("m4"), route_port=6099)
    drafted = await active.replacing._drafted("m2", here("m4"))
    active.replacing._draft = _Draft("m2", with_fields(here("m4"), now_ms=0), drafted)
    await active.wish("m2", "m4", elsewhere)
    assert active.kept[-1].machines["m4"].route_port == 6099
    again = with_fields(elsewhere, now_ms=NOW_MS + 1)
    assert await active.wish("m2", "m4", again) == {"waits": active.kept[-1].said}
    with pytest.raises(ReplacementRefused, match=r"m4 is reached at 127\.0\.0\.1:6099"):
        await active.wish("m2", "m4", here("m4"))


async def test_a_member_that_is_heard_is_not_lost_by_a_word_of_its_own(active):
    active.roles["m2"] = STANDBY
    with pytest.raises(ReplacementRefused) as refused:
        await active.wish("m2", "m4", here("m4"))
    assert refused.value.word == NOT_LOST
