"""Files of a centre's store are damaged: nothing is removed anywhere, and what is lost is named."""

import random
import shutil

import pytest
import pytest_asyncio

from tests.awaiting import eventually
from tests.nats.chaos_member import copy_folder
from tests.nats.chaos_tree import ChaosTree, config_map, doctor

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(1200)]

REGION, EDGE = "/r1", "/r1/e1"
PLACES = ((5, "KV_workloads"), (4, "KV_workloads"), (1, "OWN"), (2, "BLOB"))
"""Objects, what was issued for them, and its content."""
PLACEMENTS = ("a", "b")


@pytest_asyncio.fixture
async def tree(tmp_path):
    tree = ChaosTree(tmp_path)
    try:
        yield tree
    finally:
        await tree.close()


def damage(folder, place, dice) -> str:
    """Flip a bit, zero a piece, or cut off the end of a stream's block."""
    (file,) = folder.rglob(f"{place}/msgs/1.blk")
    data = bytearray(file.read_bytes())
    kind, at = dice.choice(("bit", "zeroes", "cut")), dice.randrange(len(data))
    if kind == "bit":
        data[at] ^= 1 << dice.randrange(8)
    elif kind == "zeroes":
        data[at : at + 64] = bytes(len(data[at : at + 64]))
    else:
        del data[at:]
    file.write_bytes(data)
    return f"{kind} at {at} of {file.relative_to(folder)}"


async def test_nothing_goes_anywhere_for_what_is_damaged_at_the_centre(tree):
    await tree.start()
    for name in PLACEMENTS:
        await tree.place(name)
        await tree.put(name, **{f"{name}{at}": "v" * 50 for at in range(6)})
    await tree.join(REGION, relay=True)
    await tree.join(EDGE)
    before = (await tree.exact([EDGE]))[EDGE]
    for name in PLACEMENTS:
        await tree.counted(name, synced=1)
    await tree.centre.stop()
    whole = tree.folder / "whole"
    copy_folder(tree.centre.folder, whole)
    for seed, place in PLACES:
        shutil.rmtree(tree.centre.folder)
        shutil.copytree(whole, tree.centre.folder)
        said = damage(tree.centre.folder, place, random.Random(seed))
        tree.centre.start()
        await tree.serving()
        objects = await tree.centre_values()
        lost = {name for name, value in tree.meant().items() if objects.get(name) != value}
        print(f"{seed}: {said}; lost at the centre: {sorted(lost)}")
        if lost:

            async def named():
                return "RemovalHeld" in str(await doctor(tree)) or "orphan" in str(tree.told)

            await eventually(named, f"{seed}: {said}: {lost} is not named", seconds=30)
        assert_kept(before, (await tree.look([EDGE]))[EDGE], f"{seed}: {said}")
        # What a person applies again is there for good.
        for name in PLACEMENTS:
            await tree.place(name)
            await tree.apply(*(config_map(name, *it) for it in tree.wanted[name].items()))
        await tree.centre.restart()
        await tree.serving()
        assert await tree.centre_values() == tree.meant(), f"{seed}: {said}"
        await tree.exact([EDGE])
        assert_kept(before, (await tree.look([EDGE]))[EDGE], f"{seed}: {said}")
        await tree.centre.stop()


def assert_kept(before, after, said) -> None:
    assert after.values == before.values, said
    uids = {name: stored.uid for name, stored in before.objects.items()}
    assert {name: stored.uid for name, stored in after.objects.items()} == uids, said
