"""The disk of a region or an edge falls back: it ends exact, and lets go of what it should alone.

The edge's cluster is somewhere else, and goes on: of an edge only what the node itself keeps is
old. So what it knows of its cluster is wrong, and sequence numbers go backwards.
"""

import asyncio

import pytest
import pytest_asyncio

from schemas.objects.objects import ObjectKey
from tests.nats.chaos_member import copy_folder
from tests.nats.chaos_tree import ChaosTree, config_map

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(600)]

REGION, EDGE = "/r1", "/r1/e1"
AGES = [0, 1, 2]
"""After which step of a placement's life the disk is copied that is put back at its end."""


@pytest_asyncio.fixture
async def tree(tmp_path):
    tree = ChaosTree(tmp_path)
    try:
        yield tree
    finally:
        await tree.close()


class Disks:
    """The stores of some nodes at several moments."""

    def __init__(self, tree: ChaosTree, paths) -> None:
        self._tree, self._paths = tree, paths
        self._copies = 0

    async def copy(self) -> int:
        """Keep them as they are now; the name of the copy."""
        self._copies += 1
        await self._stop()
        for path in self._paths:
            copy_folder(self._store(path), self._kept(path, self._copies))
        self._start()
        return self._copies

    async def put_back(self, copy: int) -> None:
        await self._stop()
        for path in self._paths:
            copy_folder(self._kept(path, copy), self._store(path))
        self._start()

    async def _stop(self) -> None:
        async with asyncio.TaskGroup() as group:
            for path in self._paths:
                group.create_task(self._tree.members[path].stop())

    def _start(self) -> None:
        for path in self._paths:
            self._tree.members[path].start()

    def _store(self, path):
        return self._tree.members[path].node_folder / "jetstream" / "jetstream" / "RELAY"

    def _kept(self, path, copy):
        return self._tree.folder / f"copy-{path.strip('/').replace('/', '-')}-{copy}"


@pytest.mark.parametrize(
    ("fallen", "ages"),
    [
        pytest.param([REGION], [0], id="region"),
        pytest.param([EDGE], [0], id="edge", marks=pytest.mark.long),
        pytest.param([REGION], AGES[1:], id="region-later", marks=pytest.mark.long),
        pytest.param([EDGE], AGES[1:], id="edge-later", marks=pytest.mark.long),
        pytest.param([REGION, EDGE], AGES, id="both", marks=pytest.mark.long),
    ],
)
async def test_a_disk_that_falls_back_ends_exact_and_lets_go_of_what_it_should_alone(
    tree, fallen, ages
):
    await tree.start()
    await tree.place("still")
    await tree.put("still", stays="s")
    await tree.join(REGION, relay=True)
    await tree.join(EDGE)
    disks, stays = Disks(tree, fallen), (await tree.exact([EDGE]))[EDGE].objects["stays"]
    for age in ages:
        name, once = f"shop{age}", f"once{age}"
        await tree.place(name)
        await tree.put(name, **{once: "1", f"changes{age}": "1", f"again{age}": "1"})
        copies = [await delivered(tree, disks, name)]
        await tree.put(name, **{f"changes{age}": "2", f"new{age}": "1"})
        await tree.drop(name, f"again{age}")
        copies.append(await delivered(tree, disks, name))
        await tree.put(name, **{f"again{age}": "2"})
        await tree.drop(name, once)
        copies.append(await delivered(tree, disks, name))
        # The placement had something of that name: it is a person's now.
        async with tree.members[EDGE].space() as cluster:
            made = await cluster.apply(config_map("nobody", once, "person"), "person")
        people = {once: "person"}
        await disks.put_back(copies[age])
        after = await tree.holds(EDGE, tree.meant() | people)
        await tree.put(name, **{f"changes{age}": "3"})
        await tree.holds(EDGE, tree.meant() | people)
        await tree.counted(name, synced=1)
        await tree.withdraw(name)
        left = await tree.holds(EDGE, tree.meant() | people)
        assert left.objects["stays"] == stays
        assert left.objects[once].uid == after.objects[once].uid == made["metadata"]["uid"]
        async with tree.members[EDGE].space() as cluster:
            await cluster.delete(ObjectKey("", "configmaps", "default", once))
    await tree.exact([EDGE])


async def delivered(tree, disks, name) -> int:
    """A copy of the disks once all is delivered, and known to the centre."""
    await tree.exact([EDGE])
    await tree.counted(name, synced=1)
    copy = await disks.copy()
    await tree.counted(name, synced=1)
    return copy
