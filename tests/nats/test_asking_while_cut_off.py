"""A site is set up while its region has no way to the centre: it waits, says so, and comes."""

import pytest

from tests.nats.chaos_member import until
from tests.nats.chaos_tree import chaos_tree

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(240)]

REGION, EARLY, SITE = "/r1", "/r1/early", "/r1/site"


async def test_who_asks_while_the_region_is_cut_off_is_let_in_when_its_link_is_back(tmp_path):
    async with chaos_tree(tmp_path) as tree:
        region = await tree.join(REGION, relay=True, wired=True)
        await tree.join(EARLY)
        await tree.place("shop")
        await tree.put("shop", kept="1")
        await tree.exact([EARLY])
        file = await tree.invite(SITE)
        region.wire.cut()
        folder = tree.folder / "site"
        site = tree.add(SITE, folder, ["leafcast", "join", str(file), "--data-dir", str(folder)])
        site.start()
        await until(lambda: "does not reach the centre" in site.said, lambda: site.said)
        # A start anew asks the same, with the key that it made.
        asked = (folder / "request.json").read_bytes()
        await site.restart()
        await until(lambda: site.said.count("does not reach the centre") > 1, lambda: site.said)
        assert (folder / "request.json").read_bytes() == asked
        assert (await tree.look([EARLY]))[EARLY].values == tree.meant()

        region.wire.mend()
        await tree.exact([EARLY, SITE])
        await tree.counted("shop", synced=2)
