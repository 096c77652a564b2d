"""Who was away for longer than a month learns what is gone from the newest snapshot."""

import shutil

import pytest
import pytest_asyncio

from tests.nats.chaos_member import spent, until
from tests.nats.chaos_tree import chaos_tree

pytestmark = [
    pytest.mark.nats,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

REGION, EDGES = "/r1", ("/r1/e1", "/r1/e2")
DAY_MS = 24 * 3_600_000


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("away")
    async with chaos_tree(folder, [REGION], EDGES, wired=True) as grown:
        yield grown


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def clean(tree):
    await tree.clear(EDGES)


def pass_days(tree, days: int) -> None:
    """From now on all clocks are so many days ahead."""
    for member in tree.members.values():
        member.clock.write_text(str(days * DAY_MS))
        if member.process.poll() is None:
            member.set_clock(days * DAY_MS)


async def remembering(tree) -> None:
    """Objects come before the first snapshot is reached: with it, a node has memory and is in."""
    for path in EDGES:
        member = tree.members[path]
        said = f"{path} is in session with its parent"
        await until(lambda member=member, said=said: said in member.said, lambda said=said: said)


async def test_an_edge_away_for_40_days_that_missed_deletions_holds_the_present(tree):
    await tree.place("shop")
    await tree.place("going")
    await tree.place("again")
    await tree.put("shop", kept="k", changed="1")
    await tree.put("going", whole="w", other="o")
    await tree.put("again", anew="1")
    before = await tree.exact(EDGES)
    await tree.counted("going", synced=2)
    await remembering(tree)
    away = tree.members[EDGES[0]]
    await away.stop()
    await tree.withdraw("going")
    await tree.withdraw("again")
    await tree.put("shop", changed="2")
    await tree.exact(EDGES[1:])
    pass_days(tree, 40)
    # A namesake that selects the same object: for who was away it was there all the time.
    tree.wanted["again"] = {"anew": "1"}
    await tree.place("again")
    await tree.exact(EDGES[1:])
    away.start()
    after = await tree.exact(EDGES)
    assert after[EDGES[0]].objects["kept"] == before[EDGES[0]].objects["kept"]
    assert after[EDGES[0]].objects["anew"] == before[EDGES[0]].objects["anew"]
    # What changed, and what is gone with `going`.
    assert spent(before, after)[EDGES[0]] == (3, 3)
    await tree.counted("shop", synced=2)
    assert await tree.look(EDGES) == after


async def test_an_edge_without_memory_takes_nothing_under_a_snapshot_that_expired(tree):
    """Its region is cut off for days: who has memory goes on, who has none cannot tell."""
    await tree.place("shop")
    await tree.put("shop", kept="k", dropped="d")
    before = await tree.exact(EDGES)
    await remembering(tree)
    wire, (kept, wiped) = tree.members[REGION].wire, (tree.members[path] for path in EDGES)
    wire.cut()
    try:
        pass_days(tree, 100)
        await kept.restart()
        await wiped.stop()
        # What it stores, and not who it is.
        shutil.rmtree(wiped.node_folder / "jetstream")
        wiped.start()
        await until(lambda: "nothing new is taken" in wiped.said, lambda: wiped.said)
        assert await tree.look(EDGES[:1]) == {EDGES[0]: before[EDGES[0]]}
    finally:
        wire.mend()
    # What takes something has a new snapshot signed.
    await tree.drop("shop", "dropped")
    after = await tree.exact(EDGES)
    assert after[EDGES[0]].objects["kept"] == before[EDGES[0]].objects["kept"]
    await tree.counted("shop", synced=2)
    await tree.drop("shop", "kept")
    await tree.exact(EDGES)
