"""An edge that says hello and never reads holds up no other placement's count."""

import time

import pytest

from tests.awaiting import soon
from tests.nats.chaos_member import until
from tests.nats.chaos_tree import PRODUCTION, chaos_tree

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]

REGION, DEAF, GOOD = "/r1", "/r1/deaf", "/r1/good"
REACH_SECONDS = 10.0
SETTINGS = {
    "relay.core.link.session.HELLO_SECONDS": 0.5,
    "relay.core.link.child.REACH_SECONDS": REACH_SECONDS,
}
OTHER = {"env": "other"}


def quickly():
    """As a count is that waits for nobody: sooner than an edge counts as behind."""
    return soon(4.0, REACH_SECONDS - 1)


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
        # Not long, and it counts as pending where it is meant.
        await tree.put("all", a="2")
        began = time.monotonic()
        await counted_soon(tree, "2", "3", "4")
        await tree.counted("all", synced=1, pending=1)
        print(f"\nit counts as pending {time.monotonic() - began:.1f} s later")
        await counted_soon(tree, "5", "6")
        await tree.put("all", a="3")
        with quickly():
            await tree.counted("all", synced=1, pending=1)
        await until(lambda: is_said(tree, "catching up"), lambda: tree.told)

        ears.unlink()
        await tree.counted("all", synced=2)
        await until(lambda: is_said(tree, "up"), lambda: tree.told)


async def counted_soon(tree, *values: str) -> None:
    """Change what the deaf one has no part in: that it is exact waits for nobody."""
    for value in values:
        with quickly() as taken:
            await tree.put("other", o=value)
            await tree.holds(GOOD, tree.meant())
            form = await tree.counted("other", synced=1)
        print(f"\ncounted {taken.seconds:.2f} s after the change")
        assert form["blocking"] == []


async def is_said(tree, word: str) -> bool:
    """Whether the tree says this of the deaf one."""
    return {it["path"]: it["state"] for it in (await tree.call("tree"))["nodes"]}[DEAF] == word
