"""What one change costs the centre does not grow with the number of destinations."""

from __future__ import annotations

import pytest

from schemas.objects.objects import ObjectKey
from tests.memory_tree import config_map, memory_tree, placement

SNAPSHOT_BLOBS_MAX = 4
"""One leaf, and what is above it; there is one snapshot a second."""


def _paths(regions: int, sites: int) -> list[str]:
    named = [f"/r{region}" for region in range(regions)]
    return named + [f"{region}/s{site}" for region in named for site in range(sites)]


@pytest.mark.parametrize(("regions", "sites"), [(2, 3), (4, 15), (4, 60)])
@pytest.mark.timeout(300)
async def test_one_changed_object_costs_the_centre_one_message_per_child(tmp_path, regions, sites):
    everywhere = regions * sites
    async with memory_tree(tmp_path, _paths(regions, sites)) as tree:
        await tree.apply(placement("shop", "shop"))
        await tree.apply(*[config_map(f"c{n}", "shop", text=f"{n}" * 50) for n in range(30)])
        await tree.controllers.caught_up()
        key = await tree.placement_key("shop")
        former = tree.controllers.issuer.records[key].generation
        await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": everywhere})

        counters, streams = tree.centre.counters, tree.network.streams(tree.centre.config.path)
        mail, snapshots, blobs = (
            counters.mail_written,
            counters.snapshots_written,
            set(streams.blobs),
        )
        began = tree.clock.now().seconds
        await tree.apply(config_map("c7", "shop", text="changed"))
        await tree.controllers.caught_up()
        await tree.centre.until(lambda node: node.records[key].generation > former)
        await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": everywhere})

        assert counters.mail_written - mail <= regions
        seconds = tree.clock.now().seconds - began
        # Each blob once: the object, its manifest chunk and root; of a snapshot what changed.
        assert len(set(streams.blobs) - blobs) <= 3 + SNAPSHOT_BLOBS_MAX * (seconds + 1)
        assert counters.snapshots_written - snapshots <= regions * (seconds + 1)
        changed = ObjectKey("", "configmaps", "shop", "c7")
        for space in tree.spaces.values():
            assert (await space.get(changed))["data"] == {"text": "changed"}
