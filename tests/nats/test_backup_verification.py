"""A backup that is tried: what is no good is noted, and its keys do not stay."""

import asyncio
import signal
import subprocess
import sys

import pytest

from leafcast.backups import restoring
from leafcast.backups.backup_folder import BackupFolder
from leafcast.backups.refusals import BackupDamaged, BackupUnusable
from leafcast.backups.restoring import place_backup, restore_pending
from leafcast.centre import backup_verification
from leafcast.centre.backup_verification import START_SECONDS, StartPatience, verify_backup
from leafcast.daemon.backup_timer import BackupTimer
from leafcast.data_dir import DataDir
from relay.adapters.clock import SystemDice
from schemas.content.operator_box import public_half
from tests.awaiting import eventually
from tests.nats.backed_up_centre import CLOCK, KEY, OTHER_KEY, BackedUpCentre

pytestmark = pytest.mark.nats

KILLED = """
import asyncio, os, sys
from pathlib import Path
from leafcast.backups.operator_keys import OperatorKey
from leafcast.centre.backup_verification import verify_backup

file, scratch = map(Path, sys.argv[1:])

def progress(said):
    if said.startswith("starting"):
        assert (scratch / "keys" / "keys.json").exists()
        os.kill(os.getpid(), 9)

asyncio.run(verify_backup(file, OperatorKey(b"k" * 32), scratch, progress))
"""


def flip(piece):
    """As a disk does that says nothing of it: the length stays."""
    data = bytearray(piece.read_bytes())
    data[len(data) // 2] ^= 1
    piece.write_bytes(data)


async def test_a_piece_that_rotted_is_noted_until_one_that_was_written_anew_is_good(
    grove, tmp_path
):
    folder = BackupFolder(tmp_path / "backups")
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(*(bytes([at]) * 1_000 for at in range(20)))
        timer = BackupTimer(
            centre.place, lambda: centre.server, CLOCK, SystemDice(), lambda *_: None
        )
        await timer.change(900, 9, str(folder.folder), public_half(KEY.private))
        (piece,) = (folder.folder / "pieces").rglob("*/*")
        flip(piece)
        # The centre cannot see it.
        await timer.change(900, 9, str(folder.folder), b"")

        async def tried(number, key=KEY):
            scratch = tmp_path / f"scratch-{number}"
            with pytest.raises(BackupUnusable) as refused:
                await verify_backup(folder.folder, key, scratch, lambda _: None)
            assert not scratch.exists()
            return refused.value

        # That says nothing of the backup.
        await tried(0, OTHER_KEY)
        assert not (await timer.facts())["damaged_ms"]
        error = await tried(1)
        assert isinstance(error, BackupDamaged)
        assert "remove this piece: the next backup writes what it holds anew" in str(error)
        facts = await timer.facts()
        assert facts["damaged_ms"]
        assert f"{piece}: this piece is damaged" in facts["damaged_reason"]
        piece.unlink()
        assert (await timer.change(900, 9, str(folder.folder), b"")).bytes > 1_000
        place_backup(folder.backups()[0].file, DataDir(tmp_path / "new"), KEY)


async def test_a_scratch_folder_without_room_is_named_and_says_nothing_of_the_backup(
    grove, tmp_path, monkeypatch
):
    folder, scratch = BackupFolder(tmp_path / "backups"), tmp_path / "room" / "scratch"
    scratch.mkdir(parents=True)
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(*(bytes([at]) * 1_000 for at in range(20)))
        await centre.back_up(folder)
    monkeypatch.setattr(backup_verification, "ROOM_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(backup_verification, "is_full", scratch.__eq__)
    with pytest.raises(BackupUnusable, match=f"{scratch.parent}: its disk is full; .*--scratch"):
        await verify_backup(folder.folder, KEY, scratch, lambda _: None)
    assert folder.verified() == {}


async def test_a_verification_that_is_killed_leaves_no_keys_behind(grove, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(b"a record")
        file = await centre.back_up(BackupFolder(tmp_path / "backups"))
    command = [sys.executable, "-c", KILLED, str(file), str(scratch)]
    done = await asyncio.to_thread(subprocess.run, command, check=False)
    assert done.returncode == -signal.SIGKILL
    await eventually(lambda: not scratch.exists())


async def test_a_start_is_waited_for_from_when_it_was_heard_of_last(monkeypatch):
    patience = StartPatience()
    async with patience.limit as limit:
        until = limit.when()
        monkeypatch.setattr(backup_verification, "START_SECONDS", 2 * START_SECONDS)
        patience.went_on("it goes on")
        assert limit.when() >= until + START_SECONDS


async def test_how_far_a_restore_is_is_told(grove, tmp_path, monkeypatch):
    monkeypatch.setattr(restoring, "PROGRESS_MESSAGES", 8)
    folder, told = BackupFolder(tmp_path / "backups"), []
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        await centre.make_ledger(*(bytes([at]) for at in range(20)))
        place_backup(await centre.back_up(folder), centre.place, KEY, force=True)
        await restore_pending(centre.place, centre.server, CLOCK, told.append)
    said = "relay/OWN: {} messages of the backup are {}".format
    assert told == [said(at, verb) for verb in ("written", "read again") for at in (8, 16)]
