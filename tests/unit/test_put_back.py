"""An edge put back to an old copy of its disk counts for nothing that it is no longer."""

import asyncio
import copy

import pytest

from schemas.objects.objects import ObjectKey
from schemas.values.identity import NodePath
from tests.awaiting import eventually
from tests.memory_tree import config_map, memory_tree, placement
from tests.unit.test_approvals import synced

pytestmark = pytest.mark.leaps

SITE = NodePath.parse("/emea/s1")
GROUP = "edge.kubestellar.io"


async def held(tree):
    return (await tree.clusters[SITE].list("", "configmaps")).objects


async def _is_empty(tree):
    return not await held(tree)


async def test_an_edge_put_back_whose_sync_target_is_gone_is_no_destination_again(tmp_path):
    async with memory_tree(tmp_path, ["/emea", "/emea/s1", "/emea/s2"]) as tree:
        await tree.apply(config_map("a", "shop", at="1"), placement("shop", "shop"))
        await tree.until("shop", synced(2))
        kept = copy.deepcopy(tree.network.streams(SITE))
        for resource in ("locations", "synctargets"):
            await tree.inventory.delete(ObjectKey(GROUP, resource, "", "emea-s1"))
        await tree.until("shop", synced(1))
        async with asyncio.timeout(60):
            while await held(tree):
                await tree.drivers[SITE].progress()
        await tree.stop(SITE)
        streams = tree.network.streams(SITE)
        streams.own, streams.done, streams.blobs = kept.own, kept.done, kept.blobs
        key = await tree.placement_key("shop")
        site = await tree.start(SITE, tree.group, attached=True)
        assert key in site.node.records, "its copy of the disk says that it is meant"
        async with asyncio.timeout(60):
            while key in site.node.records:
                count = tree.centre.node.count(key)
                assert not count.exact or count.summary.states == {"synced": 1}
                await site.progress()
        await tree.until("shop", synced(1))
        # What it had made again meanwhile, as its copy of the disk said, is taken back.
        await eventually(lambda: _is_empty(tree), "it keeps what is not meant for it")
