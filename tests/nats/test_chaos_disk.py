"""A relay whose disk is full: its edges keep what they have, and all goes on once there is room."""

import os
import random
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.nats.chaos_member import until
from tests.nats.chaos_tree import ChaosTree

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]

REGION, EDGE = "/r1", "/r1/e1"
DISK_BYTES = 16_000_000
# A server that cannot write answers nothing: that is what is waited for.
SETTINGS = {"relay.adapters.jetstream_publish.ANSWER_SECONDS": 2.0}


@pytest.fixture
def disk(tmp_path):
    """A small disk of its own; skipped where none may be mounted."""
    folder = tmp_path / "r1"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    able = shutil.which("mount") is not None
    if not able or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no file system may be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=False)


def fill(folder: Path) -> Path:
    ballast = folder / "ballast"
    opened = os.open(ballast, os.O_CREAT | os.O_WRONLY)
    try:
        while True:
            os.write(opened, b"x" * 4096)
    except OSError:
        return ballast
    finally:
        os.close(opened)


async def test_a_relay_whose_disk_is_full_says_so_and_goes_on_once_there_is_room(tmp_path, disk):
    dice = random.Random(3)
    tree = ChaosTree(tmp_path, SETTINGS)
    try:
        await tree.start()
        await tree.place("shop")
        await tree.put("shop", kept="k", changed="1")
        region = await tree.join(REGION, relay=True)
        await tree.join(EDGE)
        before = await tree.holds(EDGE, tree.meant())
        held = tree.meant()
        ballast = fill(disk)
        for _ in range(3):
            await tree.put("shop", changed=dice.randbytes(20_000).hex())
        await until(lambda: "is full: make room" in region.said, lambda: region.said)
        assert region.process.poll() is None
        assert await tree.holds(EDGE, held) == before
        ballast.unlink()
        freed = time.monotonic()
        after = await tree.holds(EDGE, tree.meant())
        print(f"\nexact {time.monotonic() - freed:.1f} s after there was room")
        assert after.objects["kept"] == before.objects["kept"]
        assert after.writes <= before.writes + 3
        await tree.counted("shop", synced=1)
    finally:
        await tree.close()
