"""What one change costs the centre does not grow with the number of destinations."""

from __future__ import annotations

import pytest

from schemas.objects import ObjectKey
from tests.memory_tree import config_map, memory_tree, placement


def _paths(regions: int, sites: int) -> list[str]:
    named = [f"/r{region}" for region in range(regions)]
    return named + [f"{region}/s{site}" for region in named for site in range(sites)]


@pytest.mark.parametrize(("regions", "sites"), [(2, 3), (4, 15), (4, 150)])
@pytest.mark.timeout(300)
async def test_one_changed_object_costs_the_centre_one_message_per_child(tmp_path, regions, sites):
    everywhere = regions * sites
    async with memory_tree(tmp_path, _paths(regions, sites)) as tree:
        await tree.apply(placement("shop", "shop"))
        await tree.apply(*[config_map(f"c{n}", "shop", text=f"{n}" * 50) for n in range(30)])
        await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": everywhere})

        counters, streams = tree.centre.counters, tree.network.streams(tree.centre.config.path)
        mail, index, blobs = counters.mail_written, counters.snapshots_written, set(streams.blobs)
        former = await tree.until("shop", lambda c: c.exact)
        began = tree.clock.now().seconds
        await tree.apply(config_map("c7", "shop", text="changed"))
        await tree.until(
            "shop",
            lambda c: c.exact and c.summary.arms not in ({}, former.arms) and len(c.summary.arms) == 1,
        )

        assert counters.mail_written - mail <= regions
        # Each blob once: the object, its manifest chunk and root; of the index a root and a chunk.
        assert len(set(streams.blobs) - blobs) <= 5
        seconds = tree.clock.now().seconds - began
        assert counters.snapshots_written - index <= regions * (seconds + 1)
        key = ObjectKey("", "configmaps", "shop", "c7")
        for space in tree.spaces.values():
            assert (await space.get(key))["data"] == {"text": "changed"}
