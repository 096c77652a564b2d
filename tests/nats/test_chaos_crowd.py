"""Many edges come back at once: few read at a time, all get what they missed, each writes once."""

import pytest

from benchmarks.reconnect import all_return
from benchmarks.wide_tree import wide_tree
from tests.memory_tree import config_map, placement

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]

EDGES, READS_AT_ONCE = 60, 8


async def test_edges_that_reconnect_at_once_read_in_turn_are_all_served_and_write_once(tmp_path):
    async with wide_tree(tmp_path, 1, EDGES, READS_AT_ONCE) as tree:
        await tree.apply(config_map("one", "shop", text="first"), placement("shop", "shop"))
        everywhere = {"synced": EDGES}
        await tree.until("shop", lambda s: s.complete and s.states == everywhere)
        for outage in range(2):
            seen = await all_return(tree, outage)
            print(f"\n{EDGES} edges back and exact after {seen.seconds:.1f} s")
            assert seen.writes == EDGES
            assert 1 <= seen.reading <= READS_AT_ONCE
