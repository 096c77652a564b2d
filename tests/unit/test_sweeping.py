"""What nothing leads to any more leaves the blob stores, and nothing else does."""

import asyncio

import pytest

from relay.core.effects import DropBlobs, LoadBlob
from relay.core.events import BlobArrived, Instant, Remembered
from relay.core.node import Node
from relay.core.state import NodeConfig
from relay.core.content.sweeping import SWEEP_EVERY_SECONDS, SWEEP_FIRST_SECONDS, Sweeper
from schemas.chunks import build_index, read_root
from schemas.identity import NodePath, TreeId, random_id
from schemas.objects import ObjectKey
from tests.awaiting import eventually, until_object
from tests.memory_tree import config_map, memory_tree, placement
from tests.unit.test_inbox import SHOP, opened
from tests.unit.test_parked import index_of

CENTRE, REGION, SITE = (NodePath.parse(path) for path in ("/", "/emea", "/emea/s1"))
NODES = (CENTRE, REGION, SITE)
LARGE = "".join(chr(33 + at * 7919 % 90) for at in range(1_000_000))


def synced(summary):
    return summary.complete and summary.states == {"synced": 1}


async def swept(tree, seconds):
    """Let time pass until each node has swept once more."""
    before = {path: tree.drivers[path].node._upkeep.sweeper.ended for path in NODES}
    await tree.leap(seconds)
    for path in NODES:
        driver = tree.drivers[path]
        async with asyncio.timeout(60):
            while driver.node._upkeep.sweeper.ended == before[path]:
                try:
                    async with asyncio.timeout(1):
                        await driver.progress()
                except TimeoutError:
                    # It was not calm just then, and looks again in a minute.
                    await tree.leap(61)


def stored(tree):
    return {path: set(tree.network.streams(path).blobs) for path in NODES}


async def deliver(tree, value):
    await tree.apply(config_map("a", "shop", text=value), placement("shop", "shop"))
    driver, key = tree.drivers[SITE], ObjectKey("", "configmaps", "shop", "a")
    async with asyncio.timeout(60):
        while True:
            found = await tree.clusters[SITE].get(key)
            if found is not None and found["data"]["text"] == value:
                break
            await driver.progress()
    await tree.until("shop", synced)


@pytest.mark.parametrize("old", ["old", LARGE], ids=["small", "in parts"])
async def test_a_superseded_version_leaves_every_store_an_hour_later(tmp_path, old):
    async with memory_tree(tmp_path, ["/emea", "/emea/s1"]) as tree:
        await deliver(tree, old)
        first = stored(tree)
        await deliver(tree, "new")
        second = stored(tree)
        await swept(tree, SWEEP_FIRST_SECONDS)
        assert all(stored(tree)[path] >= second[path] for path in NODES)
        await swept(tree, SWEEP_EVERY_SECONDS)
        await eventually(lambda: all(first[path] - stored(tree)[path] for path in NODES))
        # What is left is what the records in force lead to: a node that is new gets it all.
        tree.network.streams(SITE).own.clear()
        tree.network.streams(SITE).blobs.clear()
        await tree.stop(SITE)
        await tree.start(SITE, tree.group, attached=True)
        await tree.until("shop", synced)
        assert tree.drivers[SITE].counters.noted["MissingBlob"] == 0


async def test_what_is_in_force_stays_however_often_it_is_swept(tmp_path):
    async with memory_tree(tmp_path, ["/emea", "/emea/s1"]) as tree:
        await deliver(tree, LARGE)
        await swept(tree, SWEEP_FIRST_SECONDS)
        await swept(tree, SWEEP_EVERY_SECONDS)
        once = {path: tree.drivers[path].counters.blobs_dropped for path in NODES}
        for _ in range(2):
            await swept(tree, SWEEP_EVERY_SECONDS)
        held = tree.drivers[SITE].node.wanted
        for path in NODES:
            assert {w.reference.address for w in held.values()} <= stored(tree)[path]
        assert once[SITE] <= 4
        # A repair finds what it needs at the edge, also with its parent out of reach.
        tree.network.cut(SITE)
        key = ObjectKey("", "configmaps", "shop", "a")
        await tree.clusters[SITE].delete(key)
        await until_object(tree.clusters[SITE], key, lambda found: found is not None)


async def test_what_comes_into_force_again_during_a_sweep_stays(tmp_path):
    async with memory_tree(tmp_path, ["/emea", "/emea/s1"]) as tree:
        await deliver(tree, "one")
        await deliver(tree, "two")
        await swept(tree, SWEEP_FIRST_SECONDS)
        suspects = tree.drivers[REGION].node._upkeep.sweeper.suspects
        assert suspects
        await asyncio.gather(swept(tree, SWEEP_EVERY_SECONDS), deliver(tree, "one"))
        await deliver(tree, "one")
        for path in NODES:
            held = tree.drivers[SITE].node.wanted
            assert {w.reference.address for w in held.values()} <= stored(tree)[path]


async def test_a_structure_that_cannot_be_read_ends_the_sweep_and_nothing_goes(tmp_path):
    async with memory_tree(tmp_path, ["/emea", "/emea/s1"]) as tree:
        await deliver(tree, "old")
        await deliver(tree, "new")
        await swept(tree, SWEEP_FIRST_SECONDS)
        key = await tree.placement_key("shop")
        root = tree.centre.node.records[key].record.references[0].address
        tree.network.streams(CENTRE).blobs[root] = b"\0damaged"
        await swept(tree, SWEEP_EVERY_SECONDS)
        assert tree.centre.counters.blobs_dropped == 0
        assert tree.centre.counters.noted["SweepEnded"] == 1


def test_the_last_index_that_was_all_here_stays_until_a_newer_one_is():
    lists = {generation: build_index([(SHOP.key, generation)]) for generation in (8, 9)}
    values = {a: v for listed in lists.values() for b in listed for a, v in b.values.items()}
    (lacked,) = lists[9][1].values
    config = NodeConfig(NodePath.parse("/emea"), TreeId(random_id(bytes(16))), {}, "run")
    remembered = Remembered(blobs=frozenset(values.keys() - {lacked}))
    state = Node(config, remembered, [], Instant(0.0, 1))._state
    state.inbox.remembers = state.inbox.settled = True
    held = {at: index_of(at, listed[0].reference) for at, listed in lists.items()}
    sweeper = Sweeper(state)
    for at, (root, chunk) in lists.items():
        state.hold(held[at])
        state.index.adopt(held[at].record, read_root(opened(root)), held[at].data)
        if at == 8:
            state.index.add_chunk(chunk.reference.address, opened(chunk))
    former = {address for blob in lists[8] for address in blob.values}
    assert not dropped(state, sweeper, values)
    assert state.content.held >= former
    state.index.add_chunk(lists[9][1].reference.address, opened(lists[9][1]))
    assert dropped(state, sweeper, values) == former


def dropped(state, sweeper, values):
    """What two sweeps in a row, with nothing between them, let go."""
    gone = set()
    for _ in range(2):
        state.now = Instant(state.now.seconds + SWEEP_EVERY_SECONDS, 1)
        ended = sweeper.ended
        sweeper.tick()
        while sweeper.ended == ended:
            # What is read leads to more that is to be read, until all was.
            asked, state.out[:] = list(state.out), []
            for load in asked:
                assert isinstance(load, LoadBlob)
                value = values[load.reference.address]
                sweeper.arrived(BlobArrived(load.reference, value, local=True))
        gone |= {a for drop in state.out if isinstance(drop, DropBlobs) for a in drop.addresses}
        state.out.clear()
    return gone
