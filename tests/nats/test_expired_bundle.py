"""A bundle that nobody joined with in time opens nothing, whoever has it, and wherever that is."""

from pathlib import Path

import pytest

from tests.nats.chaos_member import Member, until
from tests.nats.chaos_tree import ChaosTree, chaos_tree

pytestmark = [pytest.mark.nats, pytest.mark.timeout(240)]

REGION, HONEST, LATE, SOON = "/r1", "/r1/honest", "/r1/late", "/r1/soon"
HOUR_SECONDS, LATER_MS = 3_600, 2 * 3_600_000


async def test_a_relay_that_is_cut_off_refuses_the_seed_of_a_bundle_that_expired(tmp_path):
    async with chaos_tree(tmp_path) as tree:
        region = await tree.join(REGION, relay=True, wired=True)
        honest = await added(tree, HONEST, HOUR_SECONDS)
        late = await added(tree, LATE, HOUR_SECONDS)
        soon = await added(tree, SOON, 10 * HOUR_SECONDS)
        await tree.place("shop")
        await tree.put("shop", kept="1")
        honest.start()
        await tree.exact([HONEST])

        region.wire.cut()
        region.set_clock(LATER_MS)
        # The thief's own clock is as it was, so its program believes that the bundle is good.
        late.start()
        await until(lambda: "removed, moved or revoked" in late.said, lambda: late.said)
        await late.stop()

        # So it stays when the region starts again, still cut off; who came in time goes on.
        await region.restart()
        soon.start()
        late.start()
        await tree.exact([SOON])
        await until(lambda: late.said.count("removed, moved or revoked") > 1, lambda: late.said)
        region.wire.mend()
        await tree.put("shop", kept="2")
        await tree.exact([HONEST, SOON])
        # By a clock that is ahead it answers no question.
        region.set_clock(0)
        wanted = {REGION: "up", HONEST: "up", SOON: "up", LATE: "never joined"}

        async def listed() -> bool:
            found = (await tree.call("node-list"))["nodes"]
            return {it["path"]: it["state"] for it in found} == wanted

        await until(listed, lambda: tree.told["node-list"])


async def added(tree: ChaosTree, path: str, valid_seconds: int) -> Member:
    """A node with a bundle that is valid for so long, not yet started."""
    made = await tree.call(
        "node-add", path=path, labels={"env": "prod"}, valid_seconds=valid_seconds
    )
    file = Path(tree.folder, f"{path.rpartition('/')[2]}.json")
    file.write_text(made["bundle"])
    folder = file.with_suffix("")
    return tree.add(path, folder, ["leafcast", "join", str(file), "--data-dir", str(folder)])
