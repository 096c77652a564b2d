"""Processes of every kind and tier are killed, paused, or live in another time: all heals."""

import asyncio
import random

import pytest
import pytest_asyncio

from tests.nats.chaos_member import GOES_ON, PAUSED, spent, until
from tests.nats.chaos_tree import ChaosTree, chaos_tree

pytestmark = [
    pytest.mark.nats,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

RELAYS, EDGES = ("/r1", "/r1/s1"), ("/r1/s1/e1", "/r1/e2")
TIERS = ("/", *RELAYS, EDGES[0])
KINDS = ("server", "relay")
PAUSED_FIRST = {("/", "relay"), ("/r1", "server"), ("/r1/s1", "relay"), (EDGES[0], "server")}
"""Each tier once; the others are of `make long`."""
HELLO_SECONDS = 0.5
SETTINGS = {
    "relay.core.link.session.HELLO_SECONDS": HELLO_SECONDS,
    "relay.core.link.session.SILENT_AFTER_SECONDS": 3 * HELLO_SECONDS,
}
SEEDS = (1,)
HOUR_MS = 3_600_000


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kills")
    async with chaos_tree(folder, RELAYS, EDGES, SETTINGS) as grown:
        yield grown


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def clean(tree):
    await tree.clear(EDGES)


class Stream:
    """Changes one after the other, until it is stopped; `count` is how many there were."""

    def __init__(self, tree: ChaosTree, dice: random.Random) -> None:
        self.count = 0
        self._tree = tree
        self._dice = dice
        self._ends = False

    async def run(self) -> None:
        while not self._ends:
            self.count += 1
            name = f"c{self._dice.randrange(6)}"
            if name in self._tree.wanted["shop"] and self._dice.random() < 0.3:
                await self._tree.drop("shop", name)
            else:
                await self._tree.put("shop", **{name: str(self.count)})
            await asyncio.sleep(0.05)

    def stop(self) -> None:
        self._ends = True


@pytest.mark.parametrize("seed", SEEDS)
async def test_kills_during_a_stream_of_changes_lose_nothing_and_do_nothing_twice(tree, seed):
    dice = random.Random(seed)
    await tree.place("still")
    await tree.put("still", stays="s")
    await tree.place("shop")
    before = await tree.exact(EDGES)
    strikes = [(path, kind) for path in TIERS for kind in KINDS]
    dice.shuffle(strikes)
    stream = Stream(tree, dice)
    async with asyncio.TaskGroup() as group:
        group.create_task(stream.run())
        for path, kind in strikes:
            await asyncio.sleep(dice.uniform(0.05, 0.8))
            member = tree.members[path]
            if kind == "server":
                await until(member.server_pids)
                member.strike_server()
            else:
                member.kill()
                await member.ended()
                member.start()
        stream.stop()
    seconds = await until(lambda: at_rest(tree))
    print(f"\nseed {seed}: {stream.count} changes, exact {seconds:.2f} s after the last")
    after = await tree.exact(EDGES)
    for path in EDGES:
        assert after[path].objects["stays"] == before[path].objects["stays"]
        assert after[path].asked["stays"] == before[path].asked["stays"]
        assert after[path].writes - before[path].writes <= stream.count
    for placement in ("still", "shop"):
        await tree.counted(placement, synced=len(EDGES))
    assert await tree.look(EDGES) == after


async def at_rest(tree) -> bool:
    await tree.exact(EDGES)
    return True


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        pytest.param(path, kind, marks=() if (path, kind) in PAUSED_FIRST else pytest.mark.long)
        for path in TIERS
        for kind in KINDS
    ],
)
async def test_who_was_paused_for_longer_than_the_heartbeats_goes_on(tree, path, kind):
    await tree.place("shop")
    await tree.put("shop", kept="k", changed="1")
    before = await tree.exact(EDGES)
    await tree.counted("shop", synced=2)
    member = tree.members[path]
    strike = member.strike_server if kind == "server" else member.kill
    strike(PAUSED)
    try:
        if path == "/":
            await asyncio.sleep(4 * HELLO_SECONDS)
        else:
            await tree.put("shop", changed="2")
            silent = sum(edge.startswith(path) for edge in EDGES)
            await until(lambda: unreachable(tree, silent), lambda: tree.told)
    finally:
        strike(GOES_ON)
    await tree.put("shop", changed="3")
    after = await tree.exact(EDGES)
    await tree.counted("shop", synced=2)
    for one in EDGES:
        assert after[one].objects["kept"] == before[one].objects["kept"]
        assert after[one].asked["kept"] == before[one].asked["kept"]
        assert after[one].writes <= before[one].writes + 2
    assert await tree.look(EDGES) == after
    assert all(each.process.poll() is None for each in tree.members.values())


async def unreachable(tree, count: int) -> bool:
    form = (await tree.call("status", placement="shop"))["placements"][0]
    return form["states"].get("unreachable", 0) == count


async def newest(tree) -> int:
    """The highest generation that the centre issued."""
    return max((await tree.centre.generations()).values())


async def test_a_clock_that_jumps_turns_no_generation_back(tree):
    await tree.place("shop")
    await tree.put("shop", kept="k", changed="0")
    before = await tree.exact(EDGES)
    highest = await newest(tree)
    for turn, ahead in enumerate((HOUR_MS, -HOUR_MS, 0), 1):
        for member in tree.members.values():
            member.set_clock(ahead)
        await tree.put("shop", changed=str(turn))
        await tree.exact(EDGES)
        now = await newest(tree)
        assert now > highest
        highest = now
    # Also who starts at an earlier time than the one the ledger was written at.
    await tree.members["/"].restart()
    await tree.put("shop", changed="last")
    after = await tree.exact(EDGES)
    assert await newest(tree) > highest
    await tree.counted("shop", synced=2)
    for path in EDGES:
        assert after[path].objects["kept"] == before[path].objects["kept"]
    assert spent(before, after) == dict.fromkeys(EDGES, (4, 4))


@pytest.mark.parametrize("path", TIERS)
async def test_one_clock_that_is_not_as_all_others_changes_nothing(tree, path):
    """It jumps forwards, then backwards, where its node starts again, and is put right."""
    await tree.place("shop")
    await tree.put("shop", kept="k", changed="0")
    before, member, highest = await tree.exact(EDGES), tree.members[path], await newest(tree)
    for turn, ahead in enumerate((HOUR_MS, -HOUR_MS, 0), 1):
        member.set_clock(ahead)
        if ahead < 0 and path != "/":
            await member.restart()
        await tree.put("shop", changed=str(turn))
        after = await tree.exact(EDGES)
        assert await newest(tree) > highest
    await tree.counted("shop", synced=2)
    for one in EDGES:
        assert after[one].objects["kept"] == before[one].objects["kept"]
    assert spent(before, after) == dict.fromkeys(EDGES, (3, 3))
    assert await tree.look(EDGES) == after
