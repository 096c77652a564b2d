"""Who joins with a program that is too old for what is issued is brought up before it gets that."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from controllers.core.rollout.release_steps import needed_wire
from leafcast.upgrades.held_back import why_held_back
from schemas.records.release_body import ReleaseWave
from schemas.reports.running import ReleaseState, running_here
from schemas.values.identity import NodePath
from schemas.values.wire import replace
from tests.memory_tree import MANAGER, inventory, memory_tree
from tests.unit.centre_world import placement
from tests.unit.releases_world import Places, draft, release

pytestmark = pytest.mark.leaps
SECONDS = 120
RELAY, HERE, LATE = map(NodePath.parse, ("/emea", "/emea/s1", "/emea/s2"))
NEWER = 3


def test_a_wire_is_needed_once_all_have_it_and_the_centre_writes_it():
    assert needed_wire(0, 3, 3, is_complete=False) == 0
    assert needed_wire(0, 3, 3, is_complete=True) == 3
    # What a release may do is not yet what the centre does.
    assert needed_wire(0, 3, 2, is_complete=True) == 0
    # Who says none speaks that one.
    assert needed_wire(0, 2, 2, is_complete=True) == 0
    # The next release begins where the former one ended.
    assert needed_wire(3, 3, 4, is_complete=False) == 3
    assert needed_wire(3, 2, 4, is_complete=True) == 3


@pytest.mark.parametrize("state", ReleaseState)
def test_who_gets_nothing_says_why_with_a_remedy_unless_it_is_on_its_way(state):
    assert not why_held_back(state, 0)
    said = why_held_back(state, NEWER)
    waits = {"managed-elsewhere", "pins-no-publisher", "idle", "waits-for-window"}
    assert ("wire 3" in said) == (state in waits)
    running = running_here("/a", "0.2.0", "0.3.0", 1, state, said)
    assert [it.why for it in running.faults] == (
        [said] if state in {*waits, "rolled-back", "refused"} else []
    )


@asynccontextmanager
async def newer_tree(folder):
    """A centre, a relay and an edge whose programs speak a newer wire, and keepers beside them."""

    def prepare(tree):
        tree.wires = dict.fromkeys((NodePath(), RELAY, HERE), NEWER)

    async with memory_tree(folder / "tree", map(str, (RELAY, HERE)), prepare=prepare) as tree:
        places = Places(folder / "places")
        await places.start(tree, tree.group, ["/", str(RELAY), str(HERE)])
        try:
            yield tree, places
        finally:
            for task in places.keepers.values():
                task.cancel()


def shop(colour):
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"colour": colour}}
    return {**settings, "metadata": {"name": "settings", "namespace": "shop"}}


async def apply(tree, colour):
    await tree.apply(shop(colour), placement(clause={"namespaces": ["shop"]}))


async def issue(tree):
    """All run the release, and whoever joins has to."""
    body, blobs = release("9.0.0", ReleaseWave(1))
    await tree.controllers.issuer.issue([draft(tree.keys.tree, replace(body, needs=NEWER), blobs)])


async def join(tree, places, wire, *, anew=False):
    """Have the late edge run, with a program that speaks this wire."""
    if anew:
        await tree.add(LATE)
        for obj in inventory([LATE]):
            await tree.inventory.apply(obj, MANAGER)
    tree.wires[LATE] = wire
    await tree.start(LATE, tree.group, attached=True)
    await places.start(tree, tree.group, [str(LATE)])


async def end(tree, places):
    places.keepers.pop(LATE).cancel()
    await tree.stop(LATE)


def is_at(count, edges):
    """Whether just so many edges have all, by a count that is exact."""
    return count.exact and count.summary.states == {"synced": edges}


async def test_who_joins_with_an_older_program_gets_the_release_first_and_the_rest_after(tmp_path):
    async with asyncio.timeout(SECONDS), newer_tree(tmp_path) as (tree, places):
        await issue(tree)
        await apply(tree, "green")
        key = await tree.placement_key("shop")
        await tree.until("shop", lambda count: is_at(count, 1))
        places.launcher(str(LATE))
        await join(tree, places, 2, anew=True)
        await places.until_wanted(str(LATE), "9.0.0")
        held = tree.drivers[LATE].node.records
        assert key not in held
        assert {it.kind for it in held.values()} >= {"keys", "profile", "delta"}
        # Its launcher has it run the newer program.
        await end(tree, places)
        await join(tree, places, NEWER)
        await tree.until("shop", lambda count: is_at(count, 2))


async def test_who_was_away_for_long_keeps_what_it_has_until_it_is_brought_up(tmp_path):
    async with asyncio.timeout(SECONDS), newer_tree(tmp_path) as (tree, places):
        places.launcher(str(LATE))
        await join(tree, places, 2, anew=True)
        await apply(tree, "green")
        await tree.until("shop", lambda count: is_at(count, 2))
        key = await tree.placement_key("shop")
        await end(tree, places)
        await issue(tree)
        former = tree.drivers[HERE].node.records[key].generation
        await apply(tree, "blue")
        await tree.drivers[HERE].until(lambda node: node.records[key].generation > former)
        await join(tree, places, 2)
        await places.until_wanted(str(LATE), "9.0.0")
        assert tree.drivers[LATE].node.records[key].generation == former
        await end(tree, places)
        await join(tree, places, NEWER)
        await tree.drivers[LATE].until(lambda node: node.records[key].generation > former)
        await tree.until("shop", lambda count: is_at(count, 2))


@pytest.mark.parametrize("knows_releases", [True, False])
async def test_who_is_not_brought_up_is_named_at_the_centre_with_the_remedy(
    tmp_path, knows_releases
):
    async with asyncio.timeout(SECONDS), newer_tree(tmp_path) as (tree, places):
        await issue(tree)
        places.launcher(str(LATE))
        (places.of(str(LATE)) / "pinned.json").unlink()
        await join(tree, places, 2, anew=True)
        if not knows_releases:
            places.keepers.pop(LATE).cancel()

        def said(node):
            # It is told that it lacks something before it has told what could bring it up.
            (fault,) = node.running().faults or (None,)
            return fault and (not knows_releases or "leafcast release pin" in fault.why)

        await tree.centre.until(said)
        (fault,) = tree.centre.node.running().faults
        assert fault.path == str(LATE)
        assert "wire 3" in fault.why
        assert ("leafcast release pin" in fault.why) == knows_releases
