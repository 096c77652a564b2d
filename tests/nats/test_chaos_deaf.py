"""An edge that says hello and never reads holds up no other placement's count."""

import time

import pytest

from tests.nats.chaos_member import until
from tests.nats.chaos_tree import AWAY, PRODUCTION, chaos_tree

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]

REGION, DEAF, GOOD = "/r1", "/r1/deaf", "/r1/good"
REACH_SECONDS = 10.0
SETTINGS = {
    "relay.core.link.session.HELLO_SECONDS": 0.5,
    "relay.core.link.children.REACH_SECONDS": REACH_SECONDS,
}
OTHER = {"env": "other"}
QUICK_SECONDS_MAX = 4.0
"""For a count that waits for nobody: less than it takes until an edge counts as behind."""


async def test_a_count_waits_for_no_edge_that_reads_nothing_and_is_not_meant(tmp_path):
    ears = tmp_path / "deaf"
    async with chaos_tree(tmp_path, [REGION], settings=SETTINGS) as tree:
        await tree.join(DEAF, labels=PRODUCTION, settings={"deaf": str(ears)})
        await tree.join(GOOD, labels=OTHER)
        await tree.place("all", {})
        await tree.place("other", OTHER)
        await tree.put("all", a="1")
        await tree.put("other", o="1")
        await tree.exact([GOOD])
        await tree.counted("all", synced=2)

        ears.touch()
        # Of a placement that it is to have, the count says for whom it waits, and not for long.
        await tree.put("all", a="2")
        await until(lambda: waits(tree), lambda: tree.told)
        began = time.monotonic()
        await counted_soon(tree, "2", "3", "4")
        await tree.counted("all", synced=1, pending=1)
        print(f"\nit counts as pending {time.monotonic() - began:.1f} s later")
        await counted_soon(tree, "5", "6")
        await tree.put("all", a="3")
        began = time.monotonic()
        await tree.counted("all", synced=1, pending=1)
        assert time.monotonic() - began < QUICK_SECONDS_MAX
        listed = (await tree.call("tree"))["nodes"]
        assert {it["path"]: it["state"] for it in listed}[DEAF] == "catching up"

        ears.unlink()
        await tree.counted("all", synced=2)
        listed = (await tree.call("tree"))["nodes"]
        assert {it["path"]: it["state"] for it in listed}[DEAF] == "up"


async def counted_soon(tree, *values: str) -> None:
    """Change what the deaf one has no part in: that it is exact waits for nobody."""
    for value in values:
        began = time.monotonic()
        await tree.put("other", o=value)
        await tree.holds(GOOD, tree.meant())
        form = await tree.counted("other", synced=1)
        seconds = time.monotonic() - began
        print(f"\ncounted {seconds:.2f} s after the change")
        assert seconds < QUICK_SECONDS_MAX
        assert form["blocking"] == []


async def waits(tree) -> bool:
    """Whether the count is at least, and says for whom it waits."""
    try:
        form = (await tree._call("status", {"placement": "all"}))["placements"][0]
    except AWAY:
        return False
    return not form["complete"] and form["blocking"] == [REGION]
