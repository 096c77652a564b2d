"""Who withholds is seen; a tombstone that nobody answers for goes, and what it said stays true."""

import asyncio

from leafcast.ask.remote import checked_answer
from leafcast.daemon.diagnosis import node_facts
from relay.core.answers import node_answer
from relay.core.freshness import LOOK_SECONDS, STALE_AFTER_SECONDS
from relay.core.tombstones import EVERY_SECONDS, RETENTION_MS, SWEPT_KEY
from schemas.identity import INDEX_KEY, NodePath
from tests.awaiting import eventually
from tests.memory_tree import memory_tree
from tests.unit.centre_world import config_key
from tests.unit.centre_world import placement_key as key_of
from tests.unit.test_recovery import TREE, A, deliver, until_site

CENTRE, REGION, SITE = (NodePath.parse(path) for path in ("/", "/emea", "/emea/s1"))


async def renewed(tree, *paths):
    """Have the index renewed, and seen by these nodes."""
    await tree.controllers.issuer.issue_index()
    generation = tree.centre.ledger()[INDEX_KEY]
    newest = tree.controllers.issuer.records[INDEX_KEY].generation
    assert generation is not None
    async with asyncio.timeout(60):
        for path in paths:
            await tree.drivers[path].until(lambda node: node._state.index.generation >= newest)


def reasons(summary):
    return {(item.reason.partition(":")[0], item.path) for item in summary.exceptions}


async def looked(tree, seconds=LOOK_SECONDS + 1):
    """Let time pass, so that every node looks once."""
    await tree.leap(seconds)
    for driver in tree.drivers.values():
        async with asyncio.timeout(60):
            await driver.until(
                lambda node: node._upkeep.freshness.deadline() > tree.clock.now().seconds
            )


async def test_an_old_index_is_noticed_at_the_edge_told_at_the_centre_and_forgotten(tmp_path):
    async with memory_tree(tmp_path, TREE) as tree:
        await deliver(tree, "a")
        await looked(tree)
        lying = tree.drivers[REGION].node._accepting
        lying.send_index, honest = (lambda *_args, **_more: None), lying.send_index
        await renewed(tree, REGION)
        await looked(tree, STALE_AFTER_SECONDS)
        seen = ("StaleView", str(SITE))
        await tree.until("shop", lambda summary: seen in reasons(summary))
        assert ("StaleView", str(REGION)) not in reasons(tree.centre.node.summary(await key(tree)))
        assert tree.drivers[SITE].counters.noted["StaleView"] == 1
        assert tree.drivers[SITE].node.own_state()["stale"]
        assert await tree.clusters[SITE].get(A) is not None
        lying.send_index = honest
        await renewed(tree, REGION, SITE)
        await looked(tree)
        await tree.until("shop", lambda summary: not reasons(summary))


async def test_a_view_is_as_old_as_the_nodes_own_clock_says_whatever_the_centres_does(tmp_path):
    """The doctor would blame every relay for an index that is a day old when that clock jumped."""
    async with memory_tree(tmp_path, TREE) as tree:
        await deliver(tree, "a")
        site = tree.drivers[SITE].node
        new = checked_answer(SITE, node_answer(site, str(SITE)))
        form = {"path": str(SITE), "role": "edge", "state": "up", "here": False, "edges": 1}
        form |= {"silent_since_ms": None, "lag": 0, "refused": 0, "contested": 0}
        tomorrow = tree.clock.now().wall_ms + 86_400_000
        age = node_facts(form, new, tomorrow).index_age_ms
        assert age is not None
        assert age < STALE_AFTER_SECONDS * 1000
        tree.drivers[REGION].node._accepting.send_index = lambda *_args, **_more: None
        await renewed(tree, REGION)
        await looked(tree, STALE_AFTER_SECONDS)
        old = checked_answer(SITE, node_answer(site, str(SITE)))
        age = node_facts(form, old, site._state.index.generation - 1).index_age_ms
        assert age is not None
        assert age >= STALE_AFTER_SECONDS * 1000


async def key(tree):
    return await tree.placement_key("shop")


async def test_a_parent_sees_the_child_that_shows_an_old_index(tmp_path):
    async with memory_tree(tmp_path, TREE) as tree:
        await deliver(tree, "a")
        tree.centre.node._accepting.send_index = lambda *_args, **_more: None
        await renewed(tree, CENTRE)
        await looked(tree)
        await looked(tree, STALE_AFTER_SECONDS)
        async with asyncio.timeout(60):
            await tree.centre.until(lambda node: node._state.children["emea"].behind)
        assert tree.centre.counters.noted["ChildStale"] == 1


async def test_a_placement_missing_from_the_mailbox_is_kept_and_told_as_withheld(tmp_path):
    async with memory_tree(tmp_path, TREE) as tree:
        await deliver(tree, "a")
        region = tree.drivers[REGION].node
        region._downlink.heartbeat = lambda *_: None
        tree.drivers[SITE].node._state.inbox.terms.pop(await key(tree))
        await looked(tree)
        await looked(tree)
        await tree.until("shop", lambda summary: ("Withheld", str(SITE)) in reasons(summary))
        assert await tree.clusters[SITE].get(A) is not None
        del region._downlink.heartbeat
        placement = await key(tree)
        await looked(tree)
        async with asyncio.timeout(60):
            await tree.drivers[SITE].until(lambda node: placement in node._state.inbox.terms)
            await tree.drivers[SITE].until(lambda node: node._state.inbox.calm)
        await looked(tree)
        await tree.until("shop", lambda summary: not reasons(summary))


async def swept(tree, path):
    """Let the retention pass, until a node has swept."""
    before = tree.drivers[path].node._upkeep.tombstones.deadline()
    await tree.leap(RETENTION_MS / 1000 + EVERY_SECONDS)
    async with asyncio.timeout(60):
        driver = tree.drivers[path]
        await driver.until(lambda node: node._upkeep.tombstones.deadline() > before)


async def test_an_edge_away_for_longer_than_the_retention_knows_by_the_index_what_is_gone(tmp_path):
    async with memory_tree(tmp_path, TREE) as tree:
        await deliver(tree, "a")
        await deliver(tree, "x", of="other")
        tree.network.cut(SITE)
        await tree.workloads.delete(key_of("shop"))
        await tree.workloads.delete(config_key("a"))
        await tree.controllers.caught_up()
        gone = await key(tree)
        async with asyncio.timeout(60):
            region = tree.drivers[REGION]
            await region.until(lambda node: node._state.mailboxes.boxes["s1"].slots[gone].sequence)
            await region.until(lambda node: node.records[gone].record.deleted)
        await swept(tree, REGION)
        boxes = tree.drivers[REGION].node._state.mailboxes.boxes
        assert gone not in boxes["s1"].slots
        through = tree.drivers[REGION].node._state.swept_through
        assert through > 0
        # The decision is made before what it asks for is written.
        await eventually(lambda: SWEPT_KEY in tree.network.streams(REGION).own)
        assert set(await _names(tree)) == {"a", "x"}
        await renewed(tree, REGION)
        tree.network.heal(SITE)
        await until_site(tree, {"x"})
        await tree.stop(REGION)
        again = await tree.start(REGION, tree.group, attached=False)
        assert again.node._state.swept_through == through


async def _names(tree):
    return [
        o["metadata"]["name"] for o in (await tree.clusters[SITE].list("", "configmaps")).objects
    ]


async def test_the_ledger_does_not_keep_tombstones_of_placements_for_ever(tmp_path):
    async with memory_tree(tmp_path, TREE) as tree:
        await deliver(tree, "a")
        await tree.workloads.delete(key_of("shop"))
        await until_site(tree, set())
        gone = await key(tree)
        async with asyncio.timeout(60):
            centre = tree.centre
            await centre.until(lambda node: gone not in node._state.mailboxes.boxes["emea"].slots)
        assert gone in tree.network.streams(CENTRE).own
        await swept(tree, CENTRE)
        async with asyncio.timeout(60):
            await tree.centre.until(lambda node: gone not in node.records)
        assert gone not in tree.network.streams(CENTRE).own
        # Who decides at the centre holds it no longer, either: as after a start without it.
        controllers = tree.controllers
        assert gone in controllers.issuer.records
        controllers._index.renew()
        await eventually(lambda: gone not in controllers.issuer.records)
        assert "shop" not in controllers.translator._placements._issued
        before = controllers.issuer.ledger.highest
        await deliver(tree, "a")
        assert controllers.issuer.records[gone].generation > before


async def test_labels_that_the_parent_lost_are_asked_for_again(tmp_path):
    async with memory_tree(tmp_path, TREE) as tree:
        await deliver(tree, "a")
        centre = tree.centre.node
        known = centre._state.where.branch("emea").digests
        assert known
        centre._state.where.set_digests("emea", {})
        centre._state.children["emea"].labels_hash = b"another"
        for _ in range(3):
            await looked(tree)
        async with asyncio.timeout(60):
            await tree.centre.until(lambda node: node._state.where.branch("emea").digests == known)
