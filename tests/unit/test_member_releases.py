"""Beside each of three members: a release is fetched at all, and their launchers go in turn."""

import asyncio
import json
from base64 import b64encode
from dataclasses import replace

import pytest

from leafcast.launcher.launch_folder import LaunchFolder
from leafcast.members.layout import PortPool, lay_out_members
from leafcast.members.settings import kept_member
from leafcast.node.member_forms import CHILDREN, VERSION
from leafcast.upgrades import member_keeper
from leafcast.upgrades.member_keeper import MemberReleases
from leafcast.upgrades.member_words import RELEASE, Told
from leafcast.upgrades.release_folder import ReleaseFolder, wanted_by
from leafcast.upgrades.standing import Choice
from relay.adapters.clock import SystemDice
from relay.adapters.jetstream.member_presence import ACTIVE, ROLE, STANDBY
from relay.adapters.jetstream.member_servers import MemberServer
from relay.core.events import BlobArrived
from schemas.records.records import API_RELEASE, ReleaseRecord, Source, encode_payload
from schemas.records.release_body import ReleaseWave
from schemas.records.signing import Envelope
from schemas.releases.release_folder import PIECES, PINNED, RELEASES, LaunchNote, LaunchState
from schemas.values.identity import KeyId, NodePath, TreeId
from tests.leaping_time import LoopClock
from tests.unit.releases_world import PLATFORM, LauncherLock, release

pytestmark = pytest.mark.leaps

OLD, NEW = "1.0.0", "9.0.0"
PATH, TREE = NodePath.parse("/emea"), TreeId("t" * 26)
NAMES = ("m1", "m2", "m3")
BODY, BLOBS = release(NEW, ReleaseWave(1))
WANTED = wanted_by(BODY)
RECORD = ReleaseRecord(Source(API_RELEASE, TREE, "", "release"), 7, "", "", BODY)
SECONDS = 60


class Trio:
    """Three members of a relay with their launchers; who is away answers nobody."""

    def __init__(self, folder, fails=()):
        folders = {name: folder / name for name in NAMES}
        lay_out_members(folders, PATH.domain, TREE, PATH, SystemDice(), PortPool())
        self.clock, self.fails = LoopClock(), fails
        self.active, self.away, self.order = "m1", set(), []
        self.versions = dict.fromkeys(NAMES, OLD)
        self.tells = Told(Choice(WANTED, 1, may_begin=True), RECORD.source.key).form()
        self.folders = {name: ReleaseFolder(place / RELEASES) for name, place in folders.items()}
        self.keepers, self.locks = {}, []
        for name, place in folders.items():
            self.folders[name].path.mkdir()
            (self.folders[name].path / PINNED).write_text("{}")
            self.keep(name, LaunchNote(OLD))
            self.locks.append(LauncherLock(self.folders[name].path))
            settings = kept_member(place)
            self.keepers[name] = MemberReleases(
                place, lambda it=settings: it, self.clock, platform=PLATFORM
            )

    def keep(self, name, note):
        LaunchFolder(self.folders[name].path, OLD).keep(note)

    def note(self, name):
        return self.folders[name].launcher()

    async def look(self):
        """As the presence of a member: what all say that are not away."""
        said = {}
        for name in {*NAMES} - self.away:
            role = ACTIVE if name == self.active else STANDBY
            facts = {ROLE: role, VERSION: self.versions[name], CHILDREN: []}
            facts |= self.keepers[name].facts()
            said[name] = {**facts, RELEASE: self.tells if role == ACTIVE else None}
        return json.loads(json.dumps(said))

    async def launcher(self, name):
        """Installs what is wanted once it is its turn, and says in between what it tries."""
        folder = LaunchFolder(self.folders[name].path, OLD)
        while (wish := folder.wanted()) is None or self.note(name).attempt == wish.attempt > 0:
            await self.clock.sleep(0.3)
        about = {"manifest": wish.manifest, "attempt": wish.attempt}
        self.keep(name, LaunchNote(OLD, **about, state=LaunchState.INSTALLING))
        while folder.waits(wish):
            await self.clock.sleep(0.3)
        trial = LaunchNote(NEW, OLD, LaunchState.SOAKING, **about)
        self.keep(name, trial)
        folder.forget_turn()
        assert not [it for it in NAMES if it != name and self.note(it).is_on_trial]
        assert not self.away
        self.order.append(name)
        self.away.add(name)
        if name == self.active:
            self.active = next(it for it in NAMES if it != name)
        await self.clock.sleep(3)
        self.away.remove(name)
        await self.clock.sleep(3)
        if name in self.fails:
            state, why = LaunchState.ROLLED_BACK, "code 3"
            self.keep(name, LaunchNote(OLD, "", state, why, **about))
        else:
            self.versions[name] = NEW
            self.keep(name, replace(trial, state=LaunchState.HEALTHY))


@pytest.fixture
def all_there(monkeypatch):
    """What servers of the node answer: its record, its content, and that all have caught up."""
    servers = {name: MemberServer(name, leads=name == "m1") for name in NAMES}
    envelope = Envelope("delta", KeyId("k" * 26), encode_payload(RECORD), b"s" * 64, RECORD.body)

    async def last_message(_connection, _stream, _subject):
        return {"data": b64encode(envelope.encode()).decode()}

    async def member_servers(_connection):
        return [*servers.values()]

    class Blobs:
        def __init__(self, *_given):
            pass

        async def load(self, reference):
            return BlobArrived(reference, BLOBS.get(reference.address), local=True)

    monkeypatch.setattr(member_keeper, "last_message", last_message)
    monkeypatch.setattr(member_keeper, "member_servers", member_servers)
    monkeypatch.setattr(member_keeper, "Blobs", Blobs)
    return servers


async def until(trio, met):
    while not met():
        await trio.clock.sleep(0.2)


async def test_all_fetch_it_and_go_in_turn_the_active_one_last(tmp_path, all_there):
    trio = Trio(tmp_path)
    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as group:
        tasks = [group.create_task(it.run(trio, None)) for it in trio.keepers.values()]
        launchers = [group.create_task(trio.launcher(name)) for name in NAMES]
        await asyncio.wait(launchers)
        assert trio.order == ["m2", "m3", "m1"]
        for name in NAMES:
            pieces = {it.name for it in (trio.folders[name].path / PIECES).iterdir()}
            assert pieces == {piece.sha256 for piece, _ in BODY.pieces_of(PLATFORM)}
            assert trio.note(name).running == NEW
        for task in tasks:
            task.cancel()


async def test_one_that_goes_back_stops_the_rest(tmp_path, all_there):
    trio = Trio(tmp_path, fails=("m2",))
    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as group:
        tasks = [group.create_task(it.run(trio, None)) for it in trio.keepers.values()]
        tasks += [group.create_task(trio.launcher(name)) for name in NAMES]
        folder = LaunchFolder(trio.folders["m3"].path, OLD)
        told = "at m2 it is rolled-back: code 3"
        await until(trio, lambda: folder.wanted() and folder.waits(WANTED) == told)
        await trio.clock.sleep(30)
        assert (trio.order, folder.waits(WANTED)) == (["m2"], told)
        for task in tasks:
            task.cancel()


async def test_a_member_on_trial_is_out_of_step_until_its_server_has_caught_up(tmp_path, all_there):
    trio = Trio(tmp_path)
    about = {"manifest": WANTED.manifest, "attempt": WANTED.attempt}
    assert trio.keepers["m2"].out_of_step == ""
    trio.keep("m2", LaunchNote(NEW, OLD, LaunchState.SOAKING, **about))
    assert trio.keepers["m2"].out_of_step == "it is not known yet whether it has caught up"
    all_there["m2"] = MemberServer("m2", is_current=False)
    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as group:
        tasks = [group.create_task(it.run(trio, None)) for it in trio.keepers.values()]
        behind = "has a server that is behind"
        await until(trio, lambda: trio.keepers["m2"].out_of_step == behind)
        # No launcher tries anything at the others.
        assert trio.keepers["m1"].out_of_step == trio.keepers["m3"].out_of_step == ""
        all_there["m2"] = MemberServer("m2")
        await until(trio, lambda: trio.keepers["m2"].out_of_step == "")
        for task in tasks:
            task.cancel()


async def test_no_turn_is_given_for_a_release_that_is_not_wanted_any_more(tmp_path, all_there):
    trio = Trio(tmp_path)
    async with asyncio.timeout(SECONDS), asyncio.TaskGroup() as group:
        tasks = [group.create_task(it.run(trio, None)) for it in trio.keepers.values()]
        folder = LaunchFolder(trio.folders["m2"].path, OLD)
        await until(trio, lambda: folder.wanted() == WANTED and not folder.waits(WANTED))
        trio.tells = {}
        await until(trio, lambda: folder.waits(WANTED))
        assert not [it for it in NAMES if trio.keepers[it].facts()["upgrade"]["claims"]]
        for task in tasks:
            task.cancel()
