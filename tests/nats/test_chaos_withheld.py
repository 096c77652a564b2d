"""A relay that withholds the index, or shows an old one, is seen by those below it."""

import pytest

from tests.nats.chaos_member import until
from tests.nats.chaos_tree import ChaosTree

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]

HONEST, LYING = "/r1", "/r2"
SETTINGS = {
    "relay.core.children.HEARTBEAT_SECONDS": 1.0,
    "relay.core.children.SILENT_AFTER_SECONDS": 3.0,
    "relay.core.children.INDEX_TO_EDGE_SECONDS": 1.0,
    "relay.core.freshness.STALE_AFTER_SECONDS": 6.0,
    "relay.core.freshness.LOOK_SECONDS": 0.5,
    "controllers.index_keeper.INDEX_MAX_AGE_SECONDS": 1.0,
}
WITHHOLDS = {"relay.core.children.INDEX_TO_EDGE_SECONDS": 1e9}


async def test_an_edge_whose_relay_withholds_the_index_says_so_to_the_centre(tmp_path):
    tree = ChaosTree(tmp_path, SETTINGS)
    try:
        await tree.start()
        await tree.place("shop")
        await tree.put("shop", kept="k")
        await tree.join(HONEST, relay=True)
        liar = await tree.join(LYING, relay=True, settings=WITHHOLDS)
        edges = [f"{HONEST}/e1", f"{LYING}/e2"]
        for path in edges:
            await tree.join(path)
        before = await tree.exact(edges)
        seconds = await until(lambda: seen(tree, {edges[1]}))
        print(f"\nnoticed {seconds:.1f} s later")
        # What it withholds takes nothing away; and it is over when the index is shown again.
        assert await tree.look(edges) == before
        await liar.stop()
        liar.settings.update(SETTINGS)
        liar.start()
        await until(lambda: seen(tree, set()))
        assert await tree.look(edges) == before
    finally:
        await tree.close()


async def seen(tree, paths: set[str]) -> bool:
    form = (await tree.call("status", placement="shop"))["placements"][0]
    stale = {said["path"] for said in form["exceptions"] if "StaleView" in said["reason"]}
    return stale == paths
