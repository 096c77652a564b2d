"""The power of the disk with the backups is cut amid one: what was told to be there is."""

import pytest

from leafcast.backups.backup_folder import BackupFolder
from leafcast.backups.refusals import BackupUnusable
from leafcast.backups.restoring import place_backup
from leafcast.data_dir import DataDir
from relay import atomic_file
from tests.nats.backed_up_centre import KEY, BackedUpCentre
from tests.nats.power import PowerDisk

pytestmark = [pytest.mark.nats, pytest.mark.slow]


class CutFolder(BackupFolder):
    """A folder whose disk has no power any more after so many writes."""

    def __init__(self, folder, disk, writes):
        super().__init__(folder)
        self._disk, self._writes = disk, writes

    def write(self, name, data):
        super().write(name, data)
        self._writes -= 1
        if not self._writes:
            self._disk.cut()


@pytest.fixture
def disk(tmp_path):
    disk = PowerDisk(tmp_path / "image", tmp_path / "mnt")
    yield disk
    disk.close()


async def cut_amid_backups(grove, tmp_path, disk):
    """Cut the power after the first write of a backup, then of the second, and so on."""
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(*(bytes([at]) * 20_000 for at in range(20)))
        there = [await centre.back_up(BackupFolder(disk.folder / "to"))]
        for writes in range(1, 5):
            await centre.put(writes, b"changed")
            try:
                there.append(await centre.back_up(CutFolder(disk.folder / "to", disk, writes)))
            except OSError:
                # A piece, the index, the catalog; then it looks for what is to go.
                assert writes < 4
            disk.power_on()
            folder = BackupFolder(disk.folder / "to")
            kept = [it.file for it in folder.backups() if it.line]
            assert set(there) <= set(kept)
            for at, file in enumerate(kept):
                place_backup(file, DataDir(tmp_path / f"new-{writes}-{at}"), KEY)
            # And the next one works, and clears what was begun.
            there.append(await centre.back_up(folder))
            assert not list(folder.folder.rglob("*.new"))


async def test_a_power_cut_amid_a_backup_costs_none_that_was_told_to_be_there(
    grove, tmp_path, disk
):
    await cut_amid_backups(grove, tmp_path, disk)


async def test_backups_that_wait_for_no_disk_are_found_out(grove, tmp_path, disk, monkeypatch):
    monkeypatch.setattr(atomic_file, "_sync", lambda _: None)
    with pytest.raises((AssertionError, BackupUnusable)):
        await cut_amid_backups(grove, tmp_path, disk)
