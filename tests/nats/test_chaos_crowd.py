"""Many edges come back at once: few read at a time, all get what they missed, each writes once."""

import pytest

from benchmarks.reconnect import BACK_SECONDS, all_return
from benchmarks.wide_tree import wide_tree
from relay.core.admission import READS_AT_ONCE
from tests.memory_tree import config_map, placement

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(2 * BACK_SECONDS)]

RELAY, SERVER = "centre and regions", "nats-server /r0"
GROWS_MB_MAX = 400.0
"""Several times what 1,000 edges that come back take of the relays, and of their server."""


@pytest.mark.parametrize(("edges", "at_once", "outages"), [(60, 8, 2), (1000, READS_AT_ONCE, 1)])
async def test_edges_that_reconnect_at_once_read_in_turn_are_all_served_and_write_once(
    tmp_path, edges, at_once, outages
):
    async with wide_tree(tmp_path, 1, edges, at_once) as tree:
        await tree.apply(config_map("one", "shop", text="first"), placement("shop", "shop"))
        everywhere = {"synced": edges}
        await tree.until("shop", lambda s: s.complete and s.states == everywhere, BACK_SECONDS)
        for outage in range(outages):
            seen = await all_return(tree, outage)
            peaks = ", ".join(f"{name} {peak:.0f} MB" for name, peak in seen.peaks.items())
            print(f"\n{edges} edges back and exact after {seen.seconds:.1f} s,", end=" ")
            print(f"{seen.reading} reading at a time; at most: {peaks}")
            assert seen.writes == edges
            # None reads that came back before the change did: it has its session by then.
            assert seen.reading <= at_once
            assert seen.peaks[RELAY] - seen.before[RELAY] < GROWS_MB_MAX
            assert seen.peaks[SERVER] - seen.before[SERVER] < GROWS_MB_MAX
