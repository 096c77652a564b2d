"""Nodes without memory, with an old one, or with a double: each edge comes to hold the present."""

import json
import shutil
import time

import pytest
import pytest_asyncio

from leafcast.join.folder import GRANT_FILE
from tests.nats.chaos_member import Member, copy_folder, spent, until
from tests.nats.chaos_tree import chaos_tree

pytestmark = [
    pytest.mark.nats,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.asyncio(loop_scope="module"),
]

REGIONS, EDGES = ("/r1", "/r2"), ("/r1/e1", "/r1/e2")
HELLO_SECONDS = 0.5
SETTINGS = {
    "relay.core.link.session.HELLO_SECONDS": HELLO_SECONDS,
    # Whoever is let in as the first is silent is no second: a busy machine may hold one up so long.
    "relay.core.link.session.SILENT_AFTER_SECONDS": 10 * HELLO_SECONDS,
    "relay.core.link.session.STOPPED_RETRY_SECONDS": 1.0,
}

DOES_NOTHING = "runs elsewhere with the same key, so this run does nothing"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tree(tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory")
    async with chaos_tree(folder, REGIONS, EDGES, SETTINGS, wired=True) as grown:
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
    # The space's identity, and two objects.
    assert after[EDGES[0]].writes == 3
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
    # What was applied and not yet told would be asked for again, at no cost.
    for name in ("shop", "going"):
        await tree.counted(name, synced=2)
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


@pytest.mark.parametrize("copied", [True, False], ids=["copied", "by its grant"])
async def test_of_two_runs_of_one_edge_the_second_does_nothing_until_the_first_is_gone(
    tree, copied
):
    """A copy of the whole folder has the first one's credentials, and all that it knew."""
    path = EDGES[0]
    await tree.place("shop")
    await tree.put("shop", kept="k", changed="1")
    await tree.exact(EDGES)
    first = tree.members[path]
    second = await another(tree, path, copied=copied)
    before = await tree.exact(EDGES)
    second.start()
    await until(lambda: DOES_NOTHING in second.said, lambda: second.said)
    await tree.put("shop", changed="2")
    after = await tree.exact(EDGES)
    await tree.counted("shop", synced=2)
    assert spent(before, after) == dict.fromkeys(EDGES, (1, 1))
    assert await tree.look(EDGES) == after
    assert second.process.poll() is None
    assert second.tally.read_text() == "", "it asks its cluster for nothing"
    assert "in session" not in second.said

    first.kill()
    await first.ended()
    tree.members[path] = second
    await until(lambda: "in session" in second.said, lambda: second.said)
    await tree.put("shop", changed="3")
    await tree.exact(EDGES)
    await tree.counted("shop", synced=2)
    needed = {"changed"} if copied else {"changed", "kept"}
    assert (await second.look()).asked.keys() == needed


async def test_of_two_runs_of_one_relay_the_second_does_nothing_until_the_first_is_gone(tree):
    """What is below finds the second where the first was, as behind one address."""
    path = EDGES[0].rpartition("/")[0]
    await tree.place("shop")
    await tree.place("going")
    await tree.put("shop", kept="k", changed="1")
    await tree.put("going", g="g")
    await tree.exact(EDGES)
    first, second = tree.members[path], await another(tree, path, copied=True)
    before = await tree.exact(EDGES)
    second.start()
    await until(lambda: DOES_NOTHING in second.said, lambda: second.said)
    await tree.put("shop", changed="2")
    after = await tree.exact(EDGES)
    await tree.counted("shop", synced=2)
    assert spent(before, after) == dict.fromkeys(EDGES, (1, 1))
    said = (await tree.call("events"))["events"]
    assert any((it["reason"], it["object"]) == ("SecondHome", path) for it in said), said

    first.kill()
    await first.ended()
    tree.members[path] = second
    await until(lambda: "in session" in second.said, lambda: second.said)
    lead_to(second, tree)
    await tree.put("shop", changed="3")
    await tree.withdraw("going")
    last = await tree.exact(EDGES)
    await tree.counted("shop", synced=2)
    for edge in EDGES:
        assert last[edge].objects["kept"] == before[edge].objects["kept"]
        assert last[edge].asked - after[edge].asked == {"changed": 1, "-g": 1}
    assert await tree.look(EDGES) == last


async def another(tree, path: str, *, copied: bool) -> Member:
    """The same node in another folder, not started: a copy of the first one's, or a new one."""
    first = tree.members[path]
    folder = tree.folder / f"{first.folder.name}-second-{time.monotonic_ns()}"
    second = Member(path, folder, [*first.command[:-1], str(folder)], tree.settings)
    second.wire = first.wire
    # From here on the tree's own, so that it ends with it, whatever becomes of the test.
    tree.members[f"{path}-{folder.name}"] = second
    if not copied:
        folder.mkdir()
        shutil.copy(first.folder / GRANT_FILE, folder / GRANT_FILE)
    else:
        sessions = first.said.count("in session")
        await first.stop()
        copy_folder(first.folder, folder)
        (second.node_folder / "ports.json").unlink()
        first.start()
        await until(lambda: first.said.count("in session") > sessions, lambda: first.said)
    return second


def lead_to(relay: Member, tree) -> None:
    """Have those below find the relay where it listens now."""
    port = json.loads((relay.node_folder / "ports.json").read_text())["leaf"]
    for path in EDGES:
        tree.members[path].wire.port = port


async def test_removing_a_node_that_never_answers_ends_and_says_what_it_leaves(tree):
    await tree.place("shop")
    await tree.put("shop", one="1")
    gone = await tree.join("/r2/gone")
    await tree.holds("/r2/gone", tree.meant())
    await until(lambda: "in session" in gone.said, lambda: gone.said)
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
    await until(lambda: "does not know its key" in gone.said, lambda: gone.said)
    assert (await gone.look()).values == tree.meant()
    await gone.stop()
