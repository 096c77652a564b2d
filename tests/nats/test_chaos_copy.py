"""A copy of the centre's disk runs beside the centre: one of them goes on, the other ends."""

import pytest

from schemas.values.identity import SNAPSHOT_KEY
from tests.nats.chaos_member import Member, copy_folder, until
from tests.nats.chaos_tree import chaos_tree

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]

REGION, EDGE = "/r1", "/r1/e1"
CLOCKS_DIFFER_MS, STARTED_MS = 500, 5000
"""After a term began, and after a server got its ports."""
SETTINGS = {
    "controllers.core.ledger.rivals.CLOCKS_DIFFER_MS": CLOCKS_DIFFER_MS,
    "controllers.core.ledger.snapshots.RENEWAL_SECONDS": 1.0,
    "relay.core.link.child.RENEWAL_MS": 900,
}


async def test_of_two_copies_the_one_that_began_first_goes_on_and_the_other_ends(tmp_path):
    async with chaos_tree(tmp_path, [REGION], [EDGE], SETTINGS, wired=True) as tree:
        await tree.place("shop")
        await tree.put("shop", a="1")
        before = await tree.exact([EDGE])
        first, region = tree.centre, tree.members[REGION]
        true_port = region.wire.port
        await first.stop()
        folder = first.folder.with_name("copy")
        copy_folder(first.folder, folder)
        # As on another machine: its ports are its own.
        (folder / first.node_folder.relative_to(first.folder) / "ports.json").unlink()
        first.start()
        await tree.serving()

        command = [word.replace(str(first.folder), str(folder)) for word in first.command]
        copy = Member("/", folder, command, tree.settings)
        # From here on the tree's own, so that it ends with it, whatever becomes of the test.
        tree.members["copy"] = copy
        copy.start()
        # Its commands' way in is a copy, too, until it serves: only its own folder tells.
        await until((copy.node_folder / "ports.json").exists, lambda: copy.said)
        # Nobody hears of it as long as all its children keep to the first one.
        await tree.put("shop", a="2")
        await tree.exact([EDGE])
        began_ms = (copy.node_folder / "ports.json").stat().st_mtime * 1000 + STARTED_MS

        async def is_newer() -> bool:
            return (await region.generations()).get(SNAPSHOT_KEY, 0) > began_ms

        await until(is_newer, lambda: f"{region.path} was shown no snapshot after {began_ms}")
        ports = (copy.node_folder / "ports.json").read_text()
        region.wire.port = int(ports.partition('"leaf": ')[2].strip(" }"))
        region.wire.cut()
        region.wire.mend()
        await until(lambda: "another centre of this tree signed at" in log(copy), lambda: log(copy))
        assert await copy.ended() != 0
        assert "ends; remove the copy, or stop the other one" in log(copy)

        region.wire.port = true_port
        region.wire.cut()
        region.wire.mend()
        await tree.put("shop", a="3")
        after = await tree.exact([EDGE])
        assert after[EDGE].objects.keys() == before[EDGE].objects.keys()
        await tree.counted("shop", synced=1)
        assert first.process.poll() is None


def log(member) -> str:
    file = member.folder / "daemon.log"
    return member.said + (file.read_text() if file.exists() else "")
