"""Many edges come back at once: all get the change that they missed, each writes it once."""

import pytest

from benchmarks.reconnect import all_return
from benchmarks.wide_tree import wide_tree
from tests.memory_tree import config_map, placement

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]

EDGES = 60


async def test_edges_that_reconnect_at_once_are_all_served_and_write_once(tmp_path):
    async with wide_tree(tmp_path, 1, EDGES) as tree:
        await tree.apply(config_map("one", "shop", text="first"), placement("shop", "shop"))
        everywhere = {"synced": EDGES}
        await tree.until("shop", lambda s: s.complete and s.states == everywhere)
        for outage in range(2):
            seen = await all_return(tree, outage)
            print(f"\n{EDGES} edges back and exact after {seen.seconds:.1f} s")
            assert seen.writes == EDGES
