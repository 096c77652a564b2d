"""Another user of this machine neither reads nor stops a daemon, and lends us no folder of his."""

import io
import os
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from leafcast.ask.session import open_session
from leafcast.backups.restoring import place_backup
from leafcast.backups.whole_file import MANIFEST
from leafcast.daemon.process import prepare_folder, private_log, stop_daemon
from leafcast.data_dir import DataDir, DataDirUnusable
from relay.adapters.clock import SystemClock
from tests.processes import alive

STRANGER = 65_534
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where both users get to, unlike the folders of pytest."""
    place = Path(tempfile.mkdtemp())
    place.chmod(0o777)
    yield place
    shutil.rmtree(place)


def as_stranger(work: Callable[[], object]) -> str:
    """What the work comes to when another user does it: its result, or its error, as text."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(STRANGER)
            os.setuid(STRANGER)
            said = str(work())
        except BaseException as error:  # noqa: BLE001 - the test sees which
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said_to_us:
        said = said_to_us.read()
    os.waitpid(child, 0)
    return said


def test_what_a_program_writes_is_seen_by_its_owner_alone(folder):
    place = DataDir(folder / "tree")
    prepare_folder(place)
    place.log.touch(mode=0o644)
    with private_log(place.log) as log:
        log.write(b"an object's name")
    assert stat.S_IMODE(place.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(place.log.stat().st_mode) == 0o600
    assert as_stranger(place.log.read_text).startswith("PermissionError")
    assert as_stranger(lambda: list(place.folder.iterdir())).startswith("PermissionError")


def test_a_folder_that_others_could_read_is_closed_to_them(folder):
    place = DataDir(folder / "tree")
    place.folder.mkdir(mode=0o755)
    prepare_folder(place)
    assert stat.S_IMODE(place.folder.stat().st_mode) == 0o700


def test_a_folder_of_ours_in_which_others_may_have_written_is_refused(folder):
    place = DataDir(folder / "tree")
    place.folder.mkdir()
    place.folder.chmod(0o777)
    as_stranger(lambda: (place.folder / "spaces.json").write_text("{}"))
    with pytest.raises(DataDirUnusable, match=r"other users may write in it; see that all in it"):
        prepare_folder(place)
    (place.folder / "spaces.json").unlink()
    prepare_folder(place)
    assert stat.S_IMODE(place.folder.stat().st_mode) == 0o700


def test_another_user_can_neither_ask_nor_stop_a_daemon(folder):
    place = DataDir(folder / "tree")
    prepare_folder(place)
    place.write_admin({"url": "nats://127.0.0.1:1", "seed": "SU"})
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as daemon:
        place.write_daemon({"pid": daemon.pid, "ready": True})
        for work in (place.admin, place.daemon, place.in_use, lambda: stopping(place)):
            assert "belongs to another user" in as_stranger(work)
        assert as_stranger(lambda: os.kill(daemon.pid, signal.SIGTERM)).startswith("Permission")
        assert alive(daemon.pid)
        daemon.communicate(b"\n")


def stopping(place: DataDir) -> object:
    try:
        stop_daemon(place, SystemClock()).send(None)
    except StopIteration as end:
        return end.value


def test_the_folder_of_another_user_is_refused_before_anything_is_done_in_it(folder):
    place = DataDir(folder / "lent")
    place.folder.mkdir()
    os.chown(place.folder, STRANGER, STRANGER)
    with pytest.raises(DataDirUnusable, match=f"uid {STRANGER}"):
        prepare_folder(place)
    # With a process id in it he could have us end any program of ours.
    with pytest.raises(DataDirUnusable, match=f"uid {STRANGER}"):
        stopping(place)
    assert not list(place.folder.iterdir())


async def test_nothing_is_said_to_a_tree_of_another_user_nor_put_back_there(folder):
    place = DataDir(folder / "lent")
    place.folder.mkdir()
    place.write_admin({"url": "nats://127.0.0.1:1", "seed": "SU"})
    with place.locked():
        os.chown(place.folder, STRANGER, STRANGER)
        with pytest.raises(DataDirUnusable, match=f"uid {STRANGER}"):
            async with open_session(place.folder):
                pass
    backup = folder / "centre.tar"
    with tarfile.open(backup, "w") as tar:
        for name, said in (
            (MANIFEST, b'{"format": 1, "tree": "t", "timeMs": 0, "streams": {}}'),
            ("keys/keys.json", b"{}"),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(said)
            tar.addfile(member, io.BytesIO(said))
    with pytest.raises(DataDirUnusable, match=f"uid {STRANGER}"):
        place_backup(backup, place)
    assert not place.keys.exists()


def test_a_folder_of_the_system_that_others_write_in_is_refused(folder):
    shared = folder / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    said = as_stranger(lambda: prepare_folder(DataDir(shared)))
    assert "other users may write in it" in said
