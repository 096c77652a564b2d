"""Edges without memory, with an old one, or with a double: each comes to hold the present."""

import pytest
import pytest_asyncio

from tests.nats.chaos_member import Member, copy_folder, until
from tests.nats.chaos_tree import chaos_tree

pytestmark = [
    pytest.mark.nats,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

REGIONS, EDGES = ("/r1", "/r2"), ("/r1/e1", "/r1/e2")
HEARTBEAT_SECONDS = 0.5
SETTINGS = {
    "relay.core.children.HEARTBEAT_SECONDS": HEARTBEAT_SECONDS,
    "relay.core.children.SILENT_AFTER_SECONDS": 3 * HEARTBEAT_SECONDS,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tree(tmp_path_factory):
    async with chaos_tree(tmp_path_factory.mktemp("memory"), REGIONS, EDGES, SETTINGS) as grown:
        yield grown


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def clean(tree):
    await tree.clear(EDGES)


async def test_an_edge_whose_disk_was_wiped_holds_the_present_again(tree):
    await tree.place("shop")
    await tree.place("going")
    await tree.put("shop", a="1", b="2")
    await tree.put("going", g="g")
    before = await tree.exact(EDGES)
    wiped = tree.members[EDGES[0]]
    wiped.kill()
    await wiped.ended()
    await tree.withdraw("going")
    await tree.put("shop", a="2")
    wiped.wipe()
    wiped.start()
    after = await tree.exact(EDGES)
    assert after[EDGES[0]].writes == 2
    assert after[EDGES[0]].asked - before[EDGES[0]].asked == {"a": 1, "b": 1}
    assert after[EDGES[1]].asked - before[EDGES[1]].asked == {"a": 1, "-g": 1}
    await tree.counted("shop", synced=2)
    assert await tree.look(EDGES) == after


async def test_an_edge_restored_from_an_old_backup_brings_nothing_back(tree):
    await tree.place("shop")
    await tree.place("going")
    await tree.put("shop", kept="k", changed="1", dropped="d")
    await tree.put("going", g="g")
    await tree.exact(EDGES)
    edge = tree.members[EDGES[0]]
    backup = tree.folder / "backup"
    await edge.stop()
    copy_folder(edge.folder, backup)
    edge.start()
    before = (await tree.exact(EDGES))[EDGES[0]]
    # What the backup knows is superseded, dropped, withdrawn; and it never heard of what is new.
    await tree.put("shop", changed="2", new="n")
    await tree.drop("shop", "dropped")
    await tree.withdraw("going")
    newest = (await tree.exact(EDGES))[EDGES[0]]
    await tree.counted("shop", synced=2)
    await edge.stop()
    copy_folder(backup, edge.folder)
    edge.start()
    after = await tree.exact(EDGES)
    assert after[EDGES[0]].objects["kept"] == before.objects["kept"]
    assert after[EDGES[0]].writes == before.writes + 4
    needed = {"changed": 1, "new": 1, "-dropped": 1, "-g": 1}
    assert after[EDGES[0]].asked - newest.asked == needed
    await tree.counted("shop", synced=2)
    assert await tree.look(EDGES) == after


async def test_of_two_processes_with_one_identity_the_older_stops_with_a_clear_message(tree):
    """The whole folder was copied: credentials and all that it knows are the first one's."""
    await tree.place("shop")
    await tree.put("shop", kept="k")
    before = (await tree.exact(EDGES))[EDGES[0]]
    older = tree.members[EDGES[0]]
    sessions = older.said.count("in session")
    await older.stop()
    twin = tree.add(
        EDGES[0], tree.folder / "twin", [*older.command[:-1], str(tree.folder / "twin")]
    )
    copy_folder(older.folder, twin.folder)
    (twin.node_folder / "ports.json").unlink()
    older.start()
    await until(lambda: older.said.count("in session") > sessions)
    twin.start()
    await until(lambda: older.process.poll() is not None, lambda: older.said + twin.said)
    assert older.process.returncode == 1
    assert "this older one stops; if that was a mistake, stop it there" in older.said
    await until(lambda: "in session" in twin.said)
    # With the bundle alone, in a folder of its own, it is the one that came second: not let in, or,
    # if the other's link was seen closed before that, the newer one.
    folder = tree.folder / "second"
    second = Member(EDGES[0], folder, [*older.command[:-1], str(folder)], tree.settings)
    second.start()
    runs = (second, twin)
    await until(
        lambda: any(run.process.poll() is not None for run in runs), lambda: second.said + twin.said
    )
    stays = tree.members[EDGES[0]] = twin if second.process.poll() is not None else second
    (stopped,) = (run for run in runs if run is not stays)
    assert stopped.process.returncode == 1
    not_let_in = "runs elsewhere already, with the same bundle, so this run was not let"
    assert (not_let_in if stopped is second else "so this older one stops") in stopped.said
    await tree.put("shop", more="m")
    after = await tree.exact(EDGES)
    if stays is twin:
        assert after[EDGES[0]].objects["kept"] == before.objects["kept"]
        assert after[EDGES[0]].asked == {"more": 1}
    assert stays.process.poll() is None
    await tree.counted("shop", synced=2)


async def test_removing_a_node_that_never_answers_ends_and_says_what_it_leaves(tree):
    await tree.place("shop")
    await tree.put("shop", one="1")
    gone = await tree.join("/r2/gone")
    await tree.holds("/r2/gone", tree.meant())
    await until(lambda: "in session" in gone.said)
    await tree.counted("shop", synced=3)
    gone.kill()
    await gone.ended()
    refused = await tree.refused("node-remove", path="/r2/gone")
    assert "--force" in refused
    answer = await tree.call("node-remove", path="/r2/gone", force=True)
    assert answer["removed"] == ["/r2/gone"]
    assert any("does not answer" in line for line in answer["left"])
    await tree.counted("shop", synced=2)
    # It comes back, and finds no place: what it has stays as it is.
    gone.start()
    await until(lambda: "does not know this bundle's key" in gone.said)
    assert (await gone.look()).values == tree.meant()
    await gone.stop()
