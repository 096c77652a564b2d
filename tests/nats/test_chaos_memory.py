"""Nodes without memory, with an old one, or with a double: each edge comes to hold the present."""

import json

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
HELLO_SECONDS = 0.5
SETTINGS = {
    "relay.core.link.session.HELLO_SECONDS": HELLO_SECONDS,
    # Whoever is let in as the first is silent is no second: a busy machine may hold one up so long.
    "relay.core.link.session.SILENT_AFTER_SECONDS": 10 * HELLO_SECONDS,
}

NOT_LET_IN = "runs elsewhere already, with the same bundle, so this run was not let in"
STOPS = "this older one stops; if that was a mistake, stop it there"


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
    twin = await doubled(tree, EDGES[0])
    stays = await one_of(tree, EDGES[0], twin, elsewhere(tree, older, "second"))
    await tree.put("shop", more="m")
    after = await tree.exact(EDGES)
    if stays is twin:
        assert after[EDGES[0]].objects["kept"] == before.objects["kept"]
        assert after[EDGES[0]].asked == {"more": 1}
    assert stays.process.poll() is None
    await tree.counted("shop", synced=2)


async def test_of_two_relays_with_one_identity_the_older_stops_and_those_below_go_on(tree):
    """What is below finds the newer where the older was, as behind one address."""
    await tree.place("shop")
    await tree.place("going")
    await tree.put("shop", kept="k", changed="1")
    await tree.put("going", g="g")
    before = await tree.exact(EDGES)
    await tree.counted("shop", synced=2)
    relay = EDGES[0].rpartition("/")[0]
    first = tree.members[relay]
    if await one_of(tree, relay, first, elsewhere(tree, first, "second-relay")) is not first:
        lead_to(tree.members[relay], tree)
        assert (await tree.exact(EDGES)) == before
        await tree.counted("shop", synced=2)

    twin = await doubled(tree, relay)
    # Nobody below reaches it yet: the centre says so, and what they hold stays.
    await tree.counted("shop", unreachable=2)
    said = (await tree.call("events"))["events"]
    assert any((it["reason"], it["object"]) == ("SecondRun", relay) for it in said), said
    await tree.put("shop", changed="2")
    await tree.withdraw("going")
    assert await tree.look(EDGES) == before
    lead_to(twin, tree)
    after = await tree.exact(EDGES)
    await tree.counted("shop", synced=2)
    for path in EDGES:
        assert after[path].objects["kept"] == before[path].objects["kept"]
        assert after[path].asked - before[path].asked == {"changed": 1, "-g": 1}
    assert await tree.look(EDGES) == after
    assert twin.process.poll() is None


async def doubled(tree, path: str) -> Member:
    """A copy of a node's whole folder runs as well: the older one has said so and ended."""
    older = tree.members[path]
    sessions = older.said.count("in session")
    await older.stop()
    twin = elsewhere(tree, older, f"{older.folder.name}-twin")
    copy_folder(older.folder, twin.folder)
    (twin.node_folder / "ports.json").unlink()
    older.start()
    await until(lambda: older.said.count("in session") > sessions, lambda: older.said)
    # From here on the tree's own, so that it ends with it, whatever becomes of the test.
    tree.members[path], tree.members[f"{path}-older"] = twin, older
    twin.start()
    assert await older.ended() == 1
    assert STOPS in older.said
    await until(lambda: "in session" in twin.said, lambda: twin.said)
    return twin


async def one_of(tree, path: str, first: Member, second: Member) -> Member:
    """Which of two runs stays as a second starts, by the bundle alone, in a folder of its own.

    The second is not let in; or, if the first's link was seen closed just before, or it was silent
    for as long as one that is cut off, it counts as the newer one.
    """
    tree.members[f"{path}-second"] = second
    second.start()
    runs = {first: STOPS, second: NOT_LET_IN}
    await until(
        lambda: any(run.process.poll() is not None for run in runs),
        lambda: second.said + first.said,
    )
    (stopped,) = (run for run in runs if run.process.poll() is not None)
    assert await stopped.ended() == 1, stopped.said
    assert runs[stopped] in stopped.said
    assert f"`leafcast node add {path} --replace`" in stopped.said
    stays = first if stopped is second else second
    await until(lambda: "in session" in stays.said, lambda: stays.said)
    assert stays.process.poll() is None
    tree.members[path], tree.members[f"{path}-second"] = stays, stopped
    return stays


def lead_to(relay: Member, tree) -> None:
    """Have those below find the relay where it listens now."""
    port = json.loads((relay.node_folder / "ports.json").read_text())["leaf"]
    for path in EDGES:
        tree.members[path].wire.port = port


def elsewhere(tree, node: Member, name: str) -> Member:
    """The same node, by its bundle and over the same wire, in another folder."""
    folder = tree.folder / name
    member = Member(str(node.path), folder, [*node.command[:-1], str(folder)], tree.settings)
    member.wire = node.wire
    return member


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
    await until(lambda: "does not know this bundle's key" in gone.said, lambda: gone.said)
    assert (await gone.look()).values == tree.meant()
    await gone.stop()
