"""A node that lost its memory speaks for no child before it knows what that child holds."""

import asyncio

from schemas.identity import NodePath
from tests.memory_tree import memory_tree
from tests.unit.test_recovery import deliver

REGION, SITE = NodePath.parse("/emea"), NodePath.parse("/emea/s1")


async def begin(tree):
    driver = await tree.start(REGION, tree.group, attached=False)
    async with asyncio.timeout(60):
        await driver.until(lambda node: node.ready and "s1" in node.children())
    return driver


async def test_children_that_were_not_heard_since_a_wipe_stay_unproven_over_a_restart(tmp_path):
    async with memory_tree(tmp_path, ["/emea", "/emea/s1"]) as tree:
        await deliver(tree, "a")
        key = await tree.placement_key("shop")
        tree.network.cut(SITE)
        await tree.stop(REGION)
        streams = tree.network.streams(REGION)
        fresh = type(streams)()
        streams.own, streams.mail, streams.stat = fresh.own, fresh.mail, fresh.stat
        wiped = await begin(tree)
        async with asyncio.timeout(60):
            await wiped.until(lambda node: node._state.inbox.remembers)
        await tree.stop(REGION)
        again = await begin(tree)
        assert not again.node._state.children["s1"].proven
        assert not again.node.summary(key).complete
        tree.network.heal(SITE)
        async with asyncio.timeout(60):
            await again.until(lambda node: node._state.children["s1"].proven)
            await again.until(lambda node: node.summary(key).complete)
