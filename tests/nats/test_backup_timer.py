"""Backups on a timer: made when they are due, told of when they fail, never two at once."""

import asyncio
import errno
import json
import os
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from leafcast.ask.api import ApiError
from leafcast.backups.backup_folder import VERIFIED, BackupFolder
from leafcast.backups.backup_settings import kept_settings
from leafcast.backups.centre_streams import CentreServer
from leafcast.backups.refusals import BackupUnusable
from leafcast.daemon import backup_timer
from leafcast.daemon.backup_timer import BackupTimer
from leafcast.daemon.verbs.backups import Backups
from relay.adapters.clock import SystemDice
from relay.ports import BusBroken
from schemas.content.operator_box import public_half
from tests.awaiting import eventually
from tests.nats.backed_up_centre import CLOCK, KEY, BackedUpCentre

pytestmark = pytest.mark.nats

PUBLIC = public_half(KEY.private)


class Timed(BackedUpCentre):
    """A centre with a timer, which is started anew at will."""

    def timer(self, reached=True):
        self.notes = []

        def streams():
            if not reached:
                raise BusBroken("the centre is starting")
            return self.server

        return BackupTimer(
            self.place, streams, CLOCK, SystemDice(), lambda *said: self.notes.append(said)
        )


@asynccontextmanager
async def running(timer):
    task = asyncio.create_task(timer.run())
    try:
        yield timer
    finally:
        task.cancel()
        await asyncio.wait([task])


@pytest.fixture
def to(tmp_path):
    return tmp_path / "to"


@dataclass
class Reached:
    """A centre that has a server."""

    server: CentreServer

    def streams(self) -> CentreServer:
        return self.server


def is_free(to: Path) -> bool:
    """Whether nobody writes to the folder."""
    try:
        with BackupFolder(to).alone():
            return True
    except BackupUnusable:
        return False


def count(to: Path) -> int:
    return len(BackupFolder(to).backups())


async def test_backups_are_made_as_they_are_due_also_after_a_restart(grove, tmp_path, to):
    async with grove:
        centre = await Timed(grove, tmp_path / "tree").start()
        await centre.make_ledger(b"a record")
        async with running(centre.timer()) as timer:
            written = await timer.change(1, 2, str(to), PUBLIC)
            assert written is not None
            assert count(to) == 1
            await eventually(lambda: timer.standing.file != written.file)
        before = timer.standing.file
        async with running(centre.timer()) as again:
            assert again.settings == timer.settings
            await eventually(lambda: again.standing.file != before)
            # What is said once stays.
            await again.change(None, 1, "", b"")
            assert (again.settings.seconds, again.settings.to) == (1, str(to))
            assert count(to) == 1
            await again.change(0, None, "", b"")
        kept = kept_settings(centre.place.folder)
        assert (kept.seconds, kept.to, kept.public) == (0, str(to), PUBLIC)
        assert again.trouble == ""


async def test_it_is_known_of_each_backup_whether_it_lies_on_the_centres_own_disk(
    grove, tmp_path, to, other_disk
):
    async with grove:
        centre = await Timed(grove, tmp_path / "tree").start()
        await centre.make_ledger(b"a record")
        timer = centre.timer()
        verbs = Backups(Reached(centre.server), centre.place, timer, CLOCK)

        async def said():
            facts = await timer.facts()
            return facts["same_disk"], facts["whole_same_disk"]

        await timer.change(900, 9, str(to), PUBLIC)
        await verbs.backup(str(other_disk / "b.tar"))
        assert await said() == (True, False)
        await timer.change(900, 9, str(other_disk / "to"), PUBLIC)
        assert await said() == (False, False)
        await verbs.backup(str(tmp_path / "b.tar"))
        assert await said() == (False, True)
        # It is known after a restart, too.
        assert centre.timer().standing == timer.standing


async def test_a_setting_that_does_not_work_is_refused_and_changes_nothing(
    grove, tmp_path, to, monkeypatch
):
    async with grove:
        centre = await Timed(grove, tmp_path / "tree").start()
        await centre.make_ledger(b"a record")
        timer = centre.timer()
        with pytest.raises(BackupUnusable, match="no folder is named"):
            await timer.change(900, None, "", PUBLIC)
        with pytest.raises(BackupUnusable, match="there is no key of yours"):
            await timer.change(900, None, str(to), b"")
        (tmp_path / "a file").touch()
        with pytest.raises(BackupUnusable, match=r"a file.*see whether"):
            await timer.change(900, None, str(tmp_path / "a file" / "to"), PUBLIC)

        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(BackupFolder, "put_piece", full)
            with pytest.raises(BackupUnusable, match=f"{to}: No space left on device; make room"):
                await timer.change(900, None, str(to), PUBLIC)
        with pytest.raises(BusBroken):
            await centre.timer(reached=False).change(900, None, str(to), PUBLIC)
        assert not timer.settings.seconds
        assert not kept_settings(centre.place.folder).to
        assert (await timer.facts())["made_ms"] == 0


async def test_a_folder_that_goes_is_told_of_and_written_again_once_it_is_back(grove, tmp_path, to):
    async with grove:
        centre = await Timed(grove, tmp_path / "tree").start()
        await centre.make_ledger(b"a record")
        async with running(centre.timer()) as timer:
            await timer.change(1, 9, str(to), PUBLIC)
            to.rename(tmp_path / "elsewhere")
            await eventually(lambda: timer.trouble != "")
            assert f"{to}: no backups are there; is the disk mounted?" in timer.trouble
            # A folder that is not mounted is not filled, whatever is said of it.
            with pytest.raises(BackupUnusable, match="is the disk mounted"):
                await timer.change(None, 8, "", b"")
            assert not to.exists()
            assert [it[0] for it in centre.notes] == ["BackupFailed"]
            since = timer.standing.failing_ms
            (tmp_path / "elsewhere").rename(to)
            await eventually(lambda: not timer.trouble)
            assert timer.standing.made_ms > since
            assert len(centre.notes) == 1


async def test_a_disk_that_does_not_answer_is_told_of_and_waited_for(
    grove, tmp_path, to, monkeypatch
):
    monkeypatch.setattr(backup_timer, "LATE_SECONDS", 0.5)
    monkeypatch.setattr(backup_timer, "FOLDER_SECONDS", 0.2)
    answers = threading.Event()

    def hangs(folder):
        answers.wait(60)
        return plain(folder)

    async with grove:
        centre = await Timed(grove, tmp_path / "tree").start()
        await centre.make_ledger(b"a record")
        plain = BackupFolder.sizes
        async with running(centre.timer()) as timer:
            await timer.change(1, 9, str(to), PUBLIC)
            made_ms = timer.standing.made_ms
            monkeypatch.setattr(BackupFolder, "sizes", hangs)
            await eventually(lambda: "it does not answer" in timer.trouble)
            # Whoever asks is answered meanwhile.
            assert (await timer.facts())["made_ms"] >= made_ms
            answers.set()
            await eventually(lambda: not timer.trouble and timer.standing.made_ms > made_ms)


async def test_a_disk_that_hangs_takes_no_thread_that_others_need(grove, tmp_path, to, monkeypatch):
    monkeypatch.setattr(backup_timer, "FOLDER_SECONDS", 0.1)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    async with grove:
        centre = await Timed(grove, tmp_path / "tree").start()
        await centre.make_ledger(b"a record")
        timer = centre.timer()
        await timer.change(900, 9, str(to), PUBLIC)
        note = {"timeMs": 7, "file": "a.backup", "seconds": 1.5}
        BackupFolder(to).write(VERIFIED, json.dumps(note).encode())
        assert (await timer.facts())["verified_ms"] == 7
        (to / VERIFIED).unlink()
        os.mkfifo(to / VERIFIED)
        before = threading.active_count()
        for _ in range(10):
            assert (await timer.facts())["verified_ms"] == 7
        assert threading.active_count() <= before + 1
        async with asyncio.timeout(30):
            assert await asyncio.to_thread(int, "7") == 7
        # Whoever opens it to write lets those go on who read: of nothing, which is no note.
        os.close(os.open(to / VERIFIED, os.O_WRONLY))
        (to / VERIFIED).unlink()
        while (await timer.facts())["verified_ms"]:
            """It is asked anew."""


@pytest.mark.parametrize("every", [1, 0])
async def test_another_folder_or_none_may_be_named_while_one_hangs(
    grove, tmp_path, to, monkeypatch, every
):
    monkeypatch.setattr(backup_timer, "LATE_SECONDS", 0.5)
    monkeypatch.setattr(backup_timer, "FOLDER_SECONDS", 0.1)
    monkeypatch.setattr(backup_timer, "ANSWER_SECONDS", 0.5)
    answers, plain = threading.Event(), BackupFolder.sizes

    def hangs(folder):
        if folder.folder == to:
            answers.wait(60)
        return plain(folder)

    async with grove:
        centre = await Timed(grove, tmp_path / "tree").start()
        await centre.make_ledger(b"a record")
        other = tmp_path / "other"
        async with running(centre.timer()) as timer:
            await timer.change(1, 9, str(to), PUBLIC)
            monkeypatch.setattr(BackupFolder, "sizes", hangs)
            await eventually(lambda: "it does not answer" in timer.trouble)
            with pytest.raises(BackupUnusable, match="it does not answer"):
                await timer.change(5, None, "", b"")
            async with asyncio.timeout(30):
                await timer.change(every, None, str(other) if every else "", b"")
            assert not timer.trouble
            assert kept_settings(centre.place.folder).seconds == every
            if every:
                first = timer.standing.file
                await eventually(lambda: timer.standing.file != first)
        assert not answers.is_set()
        answers.set()


async def test_a_run_ends_while_its_folder_hangs(grove, tmp_path, to, monkeypatch):
    answers, begun, plain = threading.Event(), threading.Event(), BackupFolder.sizes

    def hangs(folder):
        begun.set()
        answers.wait(60)
        return plain(folder)

    async with grove:
        centre = await Timed(grove, tmp_path / "tree").start()
        async with asyncio.timeout(40), running(centre.timer()) as timer:
            await timer.change(1, 9, str(to), PUBLIC)
            monkeypatch.setattr(BackupFolder, "sizes", hangs)
            await eventually(begun.is_set)
        assert not answers.is_set()
        answers.set()
        # It lets go of the folder, too.
        await eventually(lambda: is_free(to))


async def test_a_file_on_a_disk_that_hangs_holds_nothing_else_up(grove, tmp_path, monkeypatch):
    answers, begun, plain = threading.Event(), threading.Event(), tempfile.mkstemp

    def hangs(*given, **named):
        begun.set()
        answers.wait(60)
        return plain(*given, **named)

    async with grove:
        centre = await Timed(grove, tmp_path / "tree").start()
        await centre.make_ledger(b"a record")
        verbs = Backups(Reached(centre.server), centre.place, centre.timer(), CLOCK)
        monkeypatch.setattr(tempfile, "mkstemp", hangs)
        writing = asyncio.create_task(verbs.backup(str(tmp_path / "b.tar")))
        await eventually(begun.is_set)
        assert (await verbs.facts())["whole_ms"] == 0
        answers.set()
        assert await writing == {}
        assert (tmp_path / "b.tar").exists()
        assert (await verbs.facts())["whole_ms"] > 0
        missing = tmp_path / "none" / "b.tar"
        with pytest.raises(ApiError, match="No such file"):
            await verbs.backup(str(missing))


async def test_two_that_write_at_once_do_it_one_after_the_other_or_are_told(grove, tmp_path, to):
    async with grove:
        centre = await Timed(grove, tmp_path / "tree").start()
        await centre.make_ledger(b"a record")
        timer = centre.timer()
        await timer.change(900, 9, str(to), PUBLIC)
        await asyncio.gather(*(timer.change(900, None, "", b"") for _ in range(3)))
        assert count(to) == 4
        with (
            BackupFolder(to).alone(),
            pytest.raises(BackupUnusable, match="another backup is being written"),
        ):
            await timer.change(900, None, "", b"")
