"""A disk of one of three fails, or is full: that member is named, and nothing accepted is lost."""

import os
from contextlib import suppress

import pytest

from tests.awaiting import eventually
from tests.nats.chaos_tree import doctor
from tests.nats.power import PowerDisk
from tests.nats.test_trio_takeover import changing_tree
from tests.nats.trio_tree import NAMES

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.long]


@pytest.fixture
def disks(tmp_path):
    """A disk for each member."""
    made = {}
    try:
        for name in NAMES:
            made[name] = PowerDisk(
                tmp_path / f"{name}.disk", tmp_path / "members" / f"centre-{name}"
            )
        yield made
    finally:
        for disk in made.values():
            disk.close()


def fail(disk: PowerDisk) -> None:
    """From now on whatever is read or written there fails with EIO."""
    disk.cut()


def fill(disk: PowerDisk) -> None:
    """Leave no byte of it."""
    filling = os.open(disk.folder / "filling", os.O_CREAT | os.O_WRONLY)
    for size in (1 << 20, 1 << 12, 1):
        with suppress(OSError):
            while os.write(filling, bytes(size)):
                pass
    os.close(filling)


@pytest.mark.parametrize("breaks", [fail, fill])
@pytest.mark.parametrize("role", ["active", "standby"])
async def test_a_disk_that_breaks_at_one_of_three_is_named_and_costs_nothing(
    tmp_path, disks, breaks, role
):
    async with changing_tree(tmp_path) as (tree, applies):
        active = await tree.until_active()
        broken = active if role == "active" else min(tree.centres.keys() - {active})
        breaks(disks[broken])
        await applies.more(20)
        if role == "active":
            await tree.until_active(beside=broken)
        tree.cut_off.add(broken)
        tree.members["/"] = tree.centres[min(tree.centres.keys() - {broken})]

        async def is_named():
            said = (await doctor(tree)).get("Members", "")
            return f"member {broken} of /" in said and "restart" not in said

        await eventually(is_named, "the doctor does not name it", every=1.0)
        await applies.more(5)
