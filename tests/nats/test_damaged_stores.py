"""Files of a node's store are damaged: nothing is removed anywhere, and what is lost is named."""

import random

import pytest
import pytest_asyncio

from tests.awaiting import eventually
from tests.nats.chaos_tree import ChaosTree, config_map, doctor
from tests.nats.seeds import chosen, replayable, seeds
from tests.nats.store_damage import strike

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(1200)]

REGION, EDGE = "/r1", "/r1/e1"
PATHS = {"centre": "/", "region": REGION, "edge": EDGE}
FEW = {"centre": range(5), "region": range(5), "edge": (0, 2, 3, 4, 10)}
"""With the tenth an edge loses the newest of its records, of which no snapshot tells yet."""
MANY = {"centre": 80, "region": 60, "edge": 60}
"""So many places of each role are struck in `make long`, 200 altogether."""
SOON_SAID = {
    "relay.adapters.jetstream.stream_reader.HEARTBEAT_SECONDS": 1,
    "relay.core.link.session.HELLO_SECONDS": 2.0,
    "relay.core.link.children.SAY_AFTER_SECONDS": 2.0,
}
"""So soon a reader learns that its server goes on without a damaged message, and a child says again
what its parent's server took and lost with a damaged block: only its next hellos tell of that."""
BLOCK = 20
PLACEMENTS = ("a", "b")
CLUSTER = "KV_wec"
"""What stands for an edge's cluster, which is elsewhere."""


@pytest_asyncio.fixture
async def tree(tmp_path):
    tree = ChaosTree(tmp_path, SOON_SAID)
    try:
        yield tree
    finally:
        await tree.close()


async def grow(tree):
    """A tree in which everything is delivered; what the edge holds."""
    await tree.start()
    for name in PLACEMENTS:
        await tree.place(name)
        await tree.put(name, **{f"{name}{at}": "v" * 50 for at in range(6)})
    await tree.join(REGION, relay=True)
    await tree.join(EDGE)
    return await delivered(tree)


async def delivered(tree):
    """What the edge holds, once that is exact and the centre knows it."""
    found = (await tree.exact([EDGE]))[EDGE]
    for name in PLACEMENTS:
        await tree.counted(name, synced=1)
    return found


@pytest.mark.parametrize(
    ("role", "seeds"), chosen([seeds("centre", FEW["centre"], MANY["centre"], BLOCK)])
)
async def test_nothing_goes_anywhere_for_what_is_damaged_at_the_centre(tree, request, role, seeds):
    before = await grow(tree)
    for seed in seeds:
        await tree.centre.stop()
        said = strike(tree.centre.node_folder, random.Random(f"{role} {seed}"))
        tree.centre.start()
        with replayable(request, role, seed, said):
            await tree.serving()
            objects = await tree.centre_values()
            meant = tree.meant()
            lost = {name for name, value in meant.items() if objects.get(name) != value}
            print(f"{role} {seed}: {said}; lost at the centre: {sorted(lost)}")
            # What is there is as somebody wrote it.
            assert objects.items() <= meant.items()
            if lost:
                await eventually(lambda: named(tree), f"{lost} is not named")
            assert_kept(before, (await tree.look([EDGE]))[EDGE])
            # What a person applies again is there for good.
            for name in PLACEMENTS:
                await tree.place(name)
                await tree.apply(*(config_map(name, *it) for it in tree.wanted[name].items()))
            await delivered(tree)
            if lost:
                await tree.centre.restart()
                await tree.serving()
            assert await tree.centre_values() == meant
            assert_kept(before, await delivered(tree))


async def named(tree) -> bool:
    return "RemovalHeld" in str(await doctor(tree)) or "orphan" in str(tree.told)


@pytest.mark.parametrize(
    ("role", "seeds"),
    chosen([seeds(role, FEW[role], MANY[role], BLOCK) for role in ("region", "edge")]),
)
async def test_what_is_damaged_below_the_centre_is_had_again_from_above(tree, request, role, seeds):
    before = await grow(tree)
    member = tree.members[PATHS[role]]
    for seed in seeds:
        await member.stop()
        said = strike(member.node_folder, random.Random(f"{role} {seed}"), CLUSTER)
        print(f"{role} {seed}: {said}")
        member.start()
        with replayable(request, role, seed, said):
            await tree.put("a", changes=str(seed))
            after = await delivered(tree)
            uids = {name: stored.uid for name, stored in before.objects.items()}
            assert {name: after.objects[name].uid for name in uids} == uids
            before = after


def assert_kept(before, after) -> None:
    assert after.values == before.values
    uids = {name: stored.uid for name, stored in before.objects.items()}
    assert {name: stored.uid for name, stored in after.objects.items()} == uids
