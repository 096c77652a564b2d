"""A bundle of a former release that nobody came by opens nothing, at the centre or at a relay."""

import os
import time

import pytest

from controllers.core.ledger.ledger import Draft
from controllers.issuing.nodes import bundled_nodes, end_bundles, node_record
from relay.adapters.server.nkey_pairs import new_user_nkey
from schemas.records.records import API_NODE, NodeRecord, Source
from schemas.values.identity import NodePath
from tests.nats.driven_tree import driven_tree
from tests.nats.raw_leaf import RawLeaf

pytestmark = [pytest.mark.nats, pytest.mark.timeout(120)]

REGION, DAY_MS = "/r1", 86_400_000


async def bundle(tree, path, until_ms):
    """Have the centre say of a node what a former one said; the seed that the bundle holds."""
    seed, nkey = new_user_nkey(os.urandom(32))
    at, issuer = NodePath.parse(path), tree.issuer
    source = Source(API_NODE, issuer.tree, "", path)
    await issuer.issue([Draft("node", NodeRecord(source, 0, "", "", at, nkey, until_ms))])
    await tree.nodes[str(at.parent)].driver.until(lambda core: at.name in core.children())
    return seed


async def opens(tree, parent, seed) -> bool:
    """Whether the server of a parent lets in who has the seed."""
    leaf, port = RawLeaf(), tree.nodes[parent].server.leaf_url.rpartition(":")[2]
    try:
        await leaf.open(int(port), seed, {})
        await leaf.taken_in()
    except ConnectionError:
        return False
    finally:
        leaf.close()
    return True


async def test_neither_an_expired_nor_an_unused_bundle_opens_anything(tmp_path):
    """Also below a centre of the former release, whose records are there still."""
    async with driven_tree(tmp_path) as tree:
        await tree.add(REGION)
        now_ms = int(time.time() * 1000)
        seeds = {}
        for parent in ("/", REGION):
            above = parent.rstrip("/")
            for name, until_ms in (("late", now_ms - DAY_MS), ("unused", now_ms + DAY_MS)):
                path = f"{above}/{name}"
                seeds[path] = parent, await bundle(tree, path, until_ms)
            # A key without an end is what a token leaves.
            seeds[f"{above}/free"] = parent, await bundle(tree, f"{above}/free", 0)

        async def opened() -> set[str]:
            return {path for path, (at, seed) in seeds.items() if await opens(tree, at, seed)}

        free = {"/free", f"{REGION}/free"}
        assert await opened() == free

        # Nor once the centre has voided their keys.
        accepted = {
            NodePath.parse(at).child(name): node.driver.node.figures_of(name).nkey
            for at, node in tree.nodes.items()
            for name in node.driver.node.children()
        }
        void = await end_bundles(tree.issuer, accepted, now_ms)
        assert {str(path) for path in void} == seeds.keys() - free
        assert bundled_nodes(tree.issuer) == []
        assert {node_record(tree.issuer, path).nkey for path in void} == {""}
        assert await opened() == free
