"""An edge put back to an old copy of its disk counts for nothing that it is no longer."""

import asyncio
import copy

from schemas.identity import NodePath
from schemas.objects import ObjectKey
from tests.awaiting import eventually
from tests.memory_tree import memory_tree
from tests.unit.test_recovery import deliver, revisions

SITE, OTHER = NodePath.parse("/emea/s1"), NodePath.parse("/emea/s2")
GROUP = "edge.kubestellar.io"


async def test_an_edge_put_back_whose_sync_target_is_gone_is_no_destination_again(tmp_path):
    async with memory_tree(tmp_path, ["/emea", "/emea/s1", "/emea/s2"]) as tree:
        await deliver(tree, "a", count=2)
        kept = copy.deepcopy(tree.network.streams(SITE))
        for resource in ("locations", "synctargets"):
            await tree.inventory.delete(ObjectKey(GROUP, resource, "", "emea-s1"))
        await tree.until("shop", lambda said: said.complete and said.states == {"synced": 1})
        async with asyncio.timeout(60):
            while await revisions(tree, SITE):
                await tree.drivers[SITE].progress()
        await tree.stop(SITE)
        streams = tree.network.streams(SITE)
        streams.own, streams.done, streams.blobs = kept.own, kept.done, kept.blobs
        site = await tree.start(SITE, tree.group, attached=True)
        assert site.node._state.edge.profile is not None
        key = await tree.placement_key("shop")
        async with asyncio.timeout(60):
            while site.node._state.edge.profile is not None:
                said = tree.centre.node.summary(key)
                assert not said.complete or said.states == {"synced": 1}
                await site.progress()
        await tree.until("shop", lambda said: said.complete and said.states == {"synced": 1})
        # What it had made again meanwhile, as its copy of the disk said, is taken back.
        await eventually(lambda: _is_empty(tree), "it keeps what is not meant for it")


async def _is_empty(tree) -> bool:
    return await revisions(tree, SITE) == {}
