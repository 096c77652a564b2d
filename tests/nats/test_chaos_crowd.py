"""Many edges come back at once: all get what they missed, each writes once."""

import pytest

from benchmarks.reconnect import BACK_SECONDS, all_return
from benchmarks.wide_tree import wide_tree
from tests.memory_tree import config_map, placement

pytestmark = [
    pytest.mark.nats,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(2 * BACK_SECONDS),
]

RELAY, SERVER = "centre and regions", "nats-server /r0"
GROWS_MB_MAX = 125.0
"""Several times what 250 edges that come back take of the relays, and of their server."""


@pytest.mark.parametrize(("edges", "outages"), [(60, 2), (250, 1)])
async def test_edges_that_reconnect_at_once_are_all_served_and_write_once(tmp_path, edges, outages):
    async with wide_tree(tmp_path, 1, edges) as tree:
        await tree.apply(config_map("one", "shop", text="first"), placement("shop", "shop"))
        everywhere = {"synced": edges}
        await tree.until("shop", lambda c: c.exact and c.summary.states == everywhere, BACK_SECONDS)
        for outage in range(outages):
            seen = await all_return(tree, outage)
            peaks = ", ".join(f"{name} {peak:.0f} MB" for name, peak in seen.peaks.items())
            print(f"\n{edges} edges back and exact after {seen.seconds:.1f} s; at most: {peaks}")
            assert seen.writes == edges
            assert seen.peaks[RELAY] - seen.before[RELAY] < GROWS_MB_MAX
            assert seen.peaks[SERVER] - seen.before[SERVER] < GROWS_MB_MAX
