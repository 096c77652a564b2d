"""What an edge keeps although nobody wants it any more is told."""

import logging

import pytest

from schemas.objects.objects import ObjectKey
from schemas.values.identity import NodePath
from tests.awaiting import eventually
from tests.memory_tree import config_map, memory_tree, placement

pytestmark = pytest.mark.leaps

EDGE = NodePath.parse("/s1")


async def test_a_namespace_that_others_use_is_said_to_be_kept(tmp_path, caplog):
    caplog.set_level(logging.INFO, "leafcast.relay")
    async with memory_tree(tmp_path, ["/s1"]) as tree:
        clauses = [{"resources": ["namespaces"], "objectNames": ["shop"]}, {"namespaces": ["shop"]}]
        await tree.apply(placement("shop", "shop", downsync=clauses), config_map("a", "shop"))
        await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 1})
        await tree.spaces[EDGE].apply(config_map("theirs", "shop"), "kubectl")
        await tree.workloads.delete(ObjectKey("edge.kubestellar.io", "edgeplacements", "", "shop"))
        said = "/s1: Kept: namespaces/shop: left in place: kept: not empty: configmaps/shop/theirs"
        await eventually(lambda: said in [record.getMessage() for record in caplog.records])
