"""A region cut off from the centre lives on, and what it missed it learns when the link is back."""

import asyncio
import random
import time
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from tests.awaiting import soon
from tests.nats.chaos_member import GOES_ON, PAUSED, spent, until
from tests.nats.chaos_tree import chaos_tree

pytestmark = [
    pytest.mark.nats,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

REGION, EDGES = "/r1", ("/r1/e1", "/r1/e2")
NOBODY = {"env": "nowhere"}
RETURN_SECONDS_MAX = 3.0


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tree(tmp_path_factory):
    async with chaos_tree(tmp_path_factory.mktemp("region"), [REGION], EDGES, wired=True) as grown:
        yield grown


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def clean(tree):
    await tree.clear(EDGES)


@pytest.fixture
def wire(tree):
    """The region's way to the centre; whole again after each test."""
    yield tree.members[REGION].wire
    tree.members[REGION].wire.mend()


async def back(tree, what: str, writes: dict[str, int]) -> None:
    """Mend the link, and see the exact state soon; each edge makes so many writes, and no more."""
    with soon(RETURN_SECONDS_MAX) as taken:
        tree.members[REGION].wire.mend()
        await tree.exact(EDGES)
    print(f"\n{what}: exact at every edge {taken.seconds:.2f} s after the link's return", end=" ")
    print(f"(some process waited for {taken.stalled:.2f} s of them)")
    await tree.counted("shop", synced=len(EDGES))
    now = await tree.look(EDGES)
    assert {path: now[path].writes for path in EDGES} == writes


@pytest.mark.parametrize("silently", [False, True], ids=["cut", "held"])
async def test_a_region_that_was_away_holds_exactly_the_present_soon_after(tree, wire, silently):
    await tree.place("shop")
    await tree.place("extra")
    await tree.put("shop", kept="k", changed="1", dropped="d", again="first")
    await tree.put("extra", ofextra="x")
    before = await tree.exact(EDGES)

    wire.hold() if silently else wire.cut()
    held = tree.meant()
    await tree.put("shop", changed="2", new="n")
    await tree.drop("shop", "dropped", "again")
    await tree.put("shop", again="second")
    await tree.place("extra", NOBODY)
    del tree.wanted["extra"]
    await tree.place("late")
    await tree.put("late", oflate="l")

    # Meanwhile the region is on its own: an edge repairs, and another one starts again.
    drifting, restarted = EDGES
    async with tree.members[drifting].space() as space:
        listing = await space.list("", "configmaps")
        one = next(obj for obj in listing.objects if obj["metadata"]["name"] == "changed")
        await space.apply({**_bare(one), "data": {"value": "by hand"}}, "somebody")
    again = tree.members[restarted]
    sessions = again.said.count("in session")
    # What was erased there stays erased, so nothing comes back even for a moment.
    again.strike_server()
    again.kill()
    await again.ended()
    again.start()
    repaired = await tree.holds(drifting, held)
    # By hand, and back.
    assert spent(before, {drifting: repaired}) == {drifting: (2, 1)}
    await until(lambda: again.said.count("in session") > sessions, lambda: again.said)
    same = await tree.holds(restarted, held)
    # What it was killed before it had noted it asks for again, and that writes nothing.
    assert same.objects == before[restarted].objects, again.said[-3000:]
    assert same.writes == before[restarted].writes

    # Changed, made again, and two new ones; one dropped, and one that is not selected any more.
    needed = 2 + 2 + 2
    writes = {drifting: repaired.writes + needed, restarted: same.writes + needed}
    await back(tree, f"a region away ({'held' if silently else 'cut'})", writes)
    after = await tree.look(EDGES)
    for path in EDGES:
        assert after[path].objects["kept"] == before[path].objects["kept"]
    made = {drifting: repaired, restarted: same}
    assert spent(made, after) == dict.fromkeys(EDGES, (needed, needed))


async def test_deletions_made_while_an_edge_was_away_reach_it(tree):
    await tree.place("shop")
    await tree.place("going")
    await tree.put("shop", stays="s", goes="g")
    await tree.put("going", whole="w")
    before = await tree.exact(EDGES)
    away = tree.members[EDGES[0]]
    await away.stop()
    await tree.drop("shop", "goes")
    await tree.withdraw("going")
    await tree.exact(EDGES[1:])
    away.start()
    after = await tree.exact(EDGES)
    for path in EDGES:
        assert after[path].objects["stays"] == before[path].objects["stays"]
    assert spent(before, after) == dict.fromkeys(EDGES, (2, 2))
    await tree.counted("shop", synced=2)


async def test_an_edge_whose_disk_was_wiped_is_served_by_its_region_alone(tree, wire):
    await tree.place("shop")
    await tree.put("shop", one="1", two="2")
    before = await tree.exact(EDGES)
    wiped = tree.members[EDGES[1]]
    await wiped.stop()
    wire.cut()
    wiped.wipe()
    wiped.start()
    anew = await tree.holds(EDGES[1], tree.meant())
    # The space's identity, and two objects.
    assert anew.writes == 3
    await back(tree, "an edge wiped meanwhile", {EDGES[0]: before[EDGES[0]].writes, EDGES[1]: 3})


@asynccontextmanager
async def slowly_linked(edge):
    """Lets 200 kB/s through to an edge."""
    edge.wire.slow(200_000)
    try:
        yield
    finally:
        edge.wire.mend()


@asynccontextmanager
async def seldom_awake(edge):
    """Has the process of an edge run a tenth of the time, and read what comes no faster."""

    async def doze() -> None:
        try:
            while True:
                edge.kill(PAUSED)
                await asyncio.sleep(0.18)
                edge.kill(GOES_ON)
                await asyncio.sleep(0.02)
        finally:
            edge.kill(GOES_ON)

    async with asyncio.TaskGroup() as group:
        dozing = group.create_task(doze())
        yield
        dozing.cancel()


@pytest.mark.parametrize("slowed", [slowly_linked, seldom_awake])
async def test_a_slow_edge_delays_nobody_and_gets_there(tree, slowed):
    dice = random.Random(4)
    slow, other = EDGES
    await tree.place("shop")
    await tree.put("shop", kept="k")
    before = await tree.exact(EDGES)
    async with slowed(tree.members[slow]):
        # Three rounds of 400 KB that nothing makes smaller.
        for _ in range(3):
            await tree.put("shop", **{f"o{at}": dice.randbytes(20_000).hex() for at in range(10)})
        began = time.monotonic()
        await tree.exact([other])
        fast = time.monotonic() - began
        after = await tree.exact(EDGES)
        print(f"\nexact after {fast:.1f} s; the slow one after {time.monotonic() - began:.1f} s")
        for path in EDGES:
            assert after[path].objects["kept"] == before[path].objects["kept"]
            assert after[path].asked["kept"] == before[path].asked["kept"]
            assert after[path].writes <= before[path].writes + 30
        await tree.counted("shop", synced=2)


async def test_a_flapping_link_changes_nothing_but_when(tree, wire):
    await tree.place("shop")
    await tree.put("shop", steady="s", flap="0")
    before = await tree.exact(EDGES)
    for turn in range(1, 5):
        wire.cut()
        await tree.put("shop", flap=str(turn))
        await asyncio.sleep(0.15 * turn)
        wire.mend()
        await asyncio.sleep(0.25 * (5 - turn))
    after = await tree.exact(EDGES)
    for path in EDGES:
        assert after[path].objects["steady"] == before[path].objects["steady"]
        assert after[path].writes <= before[path].writes + 4
    await tree.counted("shop", synced=2)


def _bare(obj: dict) -> dict:
    keep = ("name", "namespace")
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": {key: obj["metadata"][key] for key in keep},
    }
