"""Power is cut amid changes: what a person was told is kept, and all ends exact."""

import asyncio
import random
from collections.abc import Iterable
from contextlib import suppress

import pytest
import pytest_asyncio
from nats.js.errors import NotFoundError

from relay import atomic_file
from relay.adapters.spaces.embedded_space import path_of
from schemas.objects.objects import ObjectKey
from tests.nats.chaos_member import Member, copy_folder
from tests.nats.chaos_tree import ChaosTree
from tests.nats.power import PowerDisk, cut_power
from tests.nats.seeds import chosen, replayable, seeds

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(600)]

REGION, EDGE = "/r1", "/r1/e1"
FOLDERS = {"/": "tree", REGION: "r1", EDGE: "r1-e1"}
PATHS = {"centre": "/", "region": REGION, "edge": EDGE}
CUTS, MANY, BLOCK = range(5), 55, 10
"""So many cuts of each role in `make test`, and altogether, each from a seed."""
UNSYNCED = {"relay.adapters.server.nats_config.SYNC_ALWAYS": ""}
"""A server that acknowledges what is not on its disk."""


@pytest.fixture
def powered(tmp_path):
    """Puts a disk whose power can be cut under a node's folder."""
    disks = []

    def power(name: str) -> PowerDisk:
        disks.append(PowerDisk(tmp_path / f"{name}.image", tmp_path / name))
        return disks[-1]

    yield power
    for disk in disks:
        disk.close()


@pytest_asyncio.fixture
async def tree(tmp_path):
    tree = ChaosTree(tmp_path)
    try:
        yield tree
    finally:
        await tree.close()


class Changes:
    """Objects are made, changed and deleted one after the other; none is made a second time.

    So each that was acknowledged and is lost is missed for good.
    """

    def __init__(self, tree: ChaosTree, dice: random.Random) -> None:
        self.count = 0
        self.acknowledged: dict[str, str | None] = {}
        """What each object was when the centre last answered; None: deleted."""
        self.asked: tuple[str, str | None] = ("", None)
        """What was asked for last, and what it is to be: that may be so before the answer."""
        self._tree = tree
        self._dice = dice
        self._more = asyncio.Event()
        self._stopped = False

    async def run(self) -> None:
        while not self._stopped:
            self.count += 1
            names = sorted(self._tree.wanted["shop"])
            kind, name = self._dice.random(), f"c{self.count}"
            if names and kind < 0.4:
                name = self._dice.choice(names)
            value = None if names and kind < 0.2 else str(self.count)
            self.asked = name, value
            if value is None:
                await self._tree.drop("shop", name)
            else:
                await self._tree.put("shop", **{name: value})
            self.acknowledged[name] = value
            self._more.set()

    async def some(self, number: int) -> None:
        """Wait until so many more are acknowledged."""
        for _ in range(number):
            self._more.clear()
            await self._more.wait()

    def stop(self) -> None:
        self._stopped = True

    async def lost(self) -> dict[str, str | None]:
        """What was acknowledged before now, and is otherwise at the centre."""
        acknowledged = dict(self.acknowledged)
        kept = await self._tree.centre_values()
        # Whatever was answered meanwhile is later than what is compared.
        return {
            name: value
            for name, value in acknowledged.items()
            if kept.get(name) != value
            and self.acknowledged[name] == value
            and self.asked != (name, kept.get(name))
        }


async def told_of(centre: Member, names: Iterable[str]) -> str:
    """What the centre's server says of these objects; its store is copied beside its folder."""
    copy_folder(centre.node_folder / "jetstream", centre.folder.with_name("store-that-lost"))
    async with centre.client() as client:
        stream = client.jetstream()
        told = [str((await stream.stream_info("KV_workloads")).state)]
        for name in names:
            path = path_of(ObjectKey("", "configmaps", "default", name))
            with suppress(NotFoundError):
                last = await stream.get_last_msg("KV_workloads", f"$KV.workloads.{path}")
                told.append(f"{name}: {last.seq} {last.headers}")
    return "\n".join(told)


async def grow(tree: ChaosTree) -> None:
    await tree.start()
    await tree.place("still")
    await tree.put("still", stays="s")
    await tree.place("shop")
    await tree.join(REGION, relay=True)
    await tree.join(EDGE)


@pytest.mark.parametrize(
    ("role", "seeds"), chosen([seeds(role, CUTS, MANY, BLOCK) for role in PATHS])
)
async def test_what_was_acknowledged_outlives_cuts_of_power(tree, powered, request, role, seeds):
    path = PATHS[role]
    disk = powered(FOLDERS[path])
    await grow(tree)
    before = (await tree.exact([EDGE]))[EDGE]
    disk.sync()
    changes = Changes(tree, random.Random(role))
    async with asyncio.TaskGroup() as group:
        group.create_task(changes.run())
        for seed in seeds:
            dice = random.Random(f"{role} {seed}")
            with replayable(request, role, seed, "its power was cut"):
                await changes.some(dice.randrange(1, 40))
                await asyncio.sleep(dice.uniform(0, 0.05))
                await cut_power(tree.members[path], disk)
                tree.members[path].start()
                lost = await changes.lost()
                assert lost == {}, f"{changes.asked}: {await told_of(tree.centre, lost)}"
        changes.stop()
    after = (await tree.exact([EDGE]))[EDGE]
    assert after.objects["stays"] == before.objects["stays"]
    for placement in ("still", "shop"):
        await tree.counted(placement, synced=1)
    await tree.withdraw("shop")
    left = (await tree.exact([EDGE]))[EDGE]
    assert left.objects == before.objects


class LateAnswers:
    """A centre that has done what it was asked for, and answers only when it is let."""

    def __init__(self) -> None:
        self.wanted: dict[str, dict[str, str]] = {"shop": {}}
        self.values: dict[str, str] = {}
        self.done, self._may_answer = asyncio.Event(), asyncio.Event()

    async def put(self, placement: str, **values: str) -> None:
        self.wanted[placement].update(values)
        self.values.update(values)
        await self._answered()

    async def drop(self, placement: str, name: str) -> None:
        del self.wanted[placement][name]
        del self.values[name]
        await self._answered()

    async def _answered(self) -> None:
        self._may_answer.clear()
        self.done.set()
        await self._may_answer.wait()

    def answer(self) -> None:
        self.done.clear()
        self._may_answer.set()

    async def centre_values(self) -> dict[str, str]:
        return dict(self.values)


async def test_what_is_done_and_not_answered_yet_is_no_loss_and_all_else_is():
    centre = LateAnswers()
    changes = Changes(centre, random.Random("centre"))
    running = asyncio.create_task(changes.run())
    for _ in range(30):
        await centre.done.wait()
        assert await changes.lost() == {}
        centre.answer()
    await centre.done.wait()
    kept = {name for name, value in changes.acknowledged.items() if value is not None}
    name = min(kept - {changes.asked[0]})
    for value in ("another", None):
        centre.values[name] = value
        assert await changes.lost() == {name: changes.acknowledged[name]}
    running.cancel()


@pytest.mark.parametrize("durability", ["disk", "periodic"])
async def test_an_edge_that_is_durable_itself_is_where_it_was_and_another_falls_back(
    tree, powered, durability
):
    disk = powered(FOLDERS[EDGE])
    await grow(tree)
    edge = tree.members[EDGE]
    await tree.exact([EDGE])
    edge.command += ["--durability", durability]
    await edge.restart()
    await tree.counted("still", synced=1)
    disk.sync()
    await tree.put("shop", **{f"c{at}": "1" for at in range(5)})
    before = (await tree.exact([EDGE]))[EDGE]
    await tree.counted("shop", synced=1)
    await tree.members[REGION].stop()
    await cut_power(edge, disk)
    edge.start()
    # Nobody above is there to have anything again from.
    there = (await tree.look([EDGE]))[EDGE]
    assert (there.objects == before.objects) is (durability == "disk")
    tree.members[REGION].start()
    await tree.exact([EDGE])


async def test_a_server_that_does_not_sync_is_found(tree, powered):
    disk = powered(FOLDERS["/"])
    tree.settings = UNSYNCED
    await tree.start()
    await tree.place("shop")
    changes = Changes(tree, random.Random(1))
    async with asyncio.TaskGroup() as group:
        running = group.create_task(changes.run())
        await changes.some(10)
        running.cancel()
    await cut_power(tree.centre, disk)
    tree.centre.start()
    assert await changes.lost() != {}


@pytest.mark.parametrize("unsynced", [False, True])
async def test_keys_are_there_after_a_cut_and_if_they_are_not_synced_that_is_found(
    tree, powered, unsynced
):
    disk = powered(FOLDERS["/"])
    tree.settings = {"unsynced": True} if unsynced else {}
    await tree.start()
    keys = tree.centre.folder / "keys" / "keys.json"
    before = keys.read_bytes()
    await cut_power(tree.centre, disk)
    assert (keys.exists() and keys.read_bytes() == before) is not unsynced


@pytest.mark.parametrize("path", FOLDERS)
async def test_a_node_whose_disk_fails_says_so_and_stops(tree, powered, path):
    disk = powered(FOLDERS[path])
    await grow(tree)
    before = (await tree.exact([EDGE]))[EDGE]
    disk.sync()
    disk.cut()
    member, meant = tree.members[path], tree.wanted["shop"]
    changing = asyncio.create_task(tree.put("shop", changed="1"))
    assert await member.ended() == 1
    assert f"the disk of {disk.folder}" in member.said
    assert "fails (Input/output error): see what the kernel says" in member.said
    disk.power_on()
    member.start()
    await changing
    assert meant == {"changed": "1"}
    after = (await tree.exact([EDGE]))[EDGE]
    assert after.objects["stays"] == before.objects["stays"]


class Files:
    """What is written on a disk before its power is cut."""

    def __init__(self, disk: PowerDisk) -> None:
        self.disk = disk
        self.place = disk.folder / "keys" / "of" / "one"
        atomic_file.make_folder(self.place)
        for name in ("written", "moved"):
            atomic_file.atomic_write(self.place / name, "before")
        disk.sync()

    def change(self) -> None:
        atomic_file.atomic_write(self.place / "written", "after")
        atomic_file.make_folder(self.place / "new" / "folder")
        (self.place / "next").write_text("after")
        self.disk.sync()
        atomic_file.move_file(self.place / "next", self.place / "moved")

    def after_the_cut(self) -> tuple[str, str, bool]:
        self.disk.cut()
        self.disk.power_on()
        made = (self.place / "new" / "folder").is_dir()
        return (self.place / "written").read_text(), (self.place / "moved").read_text(), made


def test_a_file_that_was_written_or_moved_is_there_after_a_cut(powered):
    files = Files(powered("files"))
    files.change()
    assert files.after_the_cut() == ("after", "after", True)


@pytest.mark.parametrize("fault", ["_sync", "sync_folder"])
def test_a_file_or_a_folder_that_is_not_synced_is_found(powered, monkeypatch, fault):
    files = Files(powered("files"))
    monkeypatch.setattr(atomic_file, fault, lambda _: None)
    atomic_file.atomic_write(files.place / "written", "after")
    assert files.after_the_cut()[0] != "after"
