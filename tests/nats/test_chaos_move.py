"""A node that is moved to another parent takes along what it has, and counts once at any moment."""

import asyncio
import signal
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from schemas.objects.objects import ObjectKey
from tests.nats.chaos_member import until
from tests.nats.chaos_tree import AWAY, chaos_tree

pytestmark = [
    pytest.mark.nats,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

REGIONS, EDGES = ("/r1", "/r2"), ("/r1/e1", "/r1/e2", "/r2/e3")
HELLO_SECONDS = 0.5
SETTINGS = {
    "relay.core.link.session.HELLO_SECONDS": HELLO_SECONDS,
    "relay.core.link.session.SILENT_AFTER_SECONDS": 3 * HELLO_SECONDS,
}
TARGET = ObjectKey("edge.kubestellar.io", "synctargets", "", "r1-e1")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tree(tmp_path_factory):
    async with chaos_tree(tmp_path_factory.mktemp("move"), REGIONS, EDGES, SETTINGS) as grown:
        yield grown


async def target(tree):
    async with tree.session() as session:
        return await session.inventory.get(TARGET)


@asynccontextmanager
async def counted_once(tree, placement: str, destinations: int):
    """Whenever its summary is complete, each destination counts once in it."""
    seen, over = [], asyncio.Event()

    async def look() -> None:
        while not over.is_set():
            try:
                form = (await tree._call("status", {"placement": placement}))["placements"][0]
            except AWAY:
                continue
            if form["complete"]:
                states = {name: n for name, n in form["states"].items() if n and name != "leaving"}
                seen.append(states)
            await asyncio.sleep(0.01)

    async with asyncio.TaskGroup() as group:
        group.create_task(look())
        try:
            yield seen
        finally:
            over.set()
    wrong = [states for states in seen if sum(states.values()) != destinations]
    assert not wrong, wrong[:5]
    assert seen


async def test_an_edge_moves_during_changes_and_is_killed_on_its_way(tree):
    await tree.place("shop")
    await tree.place("first", {"region": "r1"})
    await tree.place("second", {"region": "r2"})
    await tree.put("shop", changing="0", **{f"kept-{n}": "k" for n in range(30)})
    await tree.put("first", one="1")
    await tree.put("second", two="2")
    await tree.exact(EDGES[:2], "shop", "first")
    await tree.exact(EDGES[2:], "shop", "second")
    await tree.counted("shop", synced=3)
    old = tree.members[EDGES[0]]
    before, uid = await old.look(), (await target(tree))["metadata"]["uid"]

    over = asyncio.Event()

    async def change() -> None:
        count = 0
        while not over.is_set():
            count += 1
            await tree.put("shop", changing=str(count))

    async with counted_once(tree, "shop", 3), asyncio.TaskGroup() as group:
        group.create_task(change())
        moved = await tree.move(EDGES[0], "/r2/e1")
        # What runs with the old key is refused, says so, and keeps what it has.
        await until(lambda: "removed, moved or revoked" in old.said, lambda: old.said)
        assert (await old.look()).values.keys() == before.values.keys()
        await old.stop()
        for batch in (2, 8):
            moved.settings["dies_rekeying"] = batch
            moved.start()
            assert await moved.ended() == -signal.SIGKILL
        old.start()
        assert await old.ended() == 1
        assert f"moved from {EDGES[0]} to /r2/e1" in old.said
        del moved.settings["dies_rekeying"]
        moved.start()
        await until(lambda: moved.said.count("in session") > 1, lambda: moved.said)
        over.set()

    edges = (EDGES[1], EDGES[2], "/r2/e1")
    await tree.exact(edges[:1], "shop", "first")
    after = (await tree.exact(edges[1:], "shop", "second"))["/r2/e1"]
    kept = [name for name in before.objects if name.startswith("kept")]
    assert [after.objects[name] for name in kept] == [before.objects[name] for name in kept]
    assert [after.asked[name] for name in kept] == [before.asked[name] for name in kept]
    await tree.counted("shop", synced=3)
    await tree.counted("first", synced=1)
    await tree.counted("second", synced=2)
    metadata = (await target(tree))["metadata"]
    assert (metadata["uid"], metadata["annotations"]["leafcast.io/path"]) == (uid, "/r2/e1")
    assert await tree.look(("/r2/e1",)) == {"/r2/e1": after}
