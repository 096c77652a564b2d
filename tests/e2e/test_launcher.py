"""The launcher as a process: releases that work, that do not, and a kill at any moment."""

import io
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from leafcast.launcher.installation import put_there
from leafcast.launcher.launch_folder import SITE
from relay.atomic_file import DRAFT
from schemas.releases.release_folder import LAUNCHER, LaunchNote, LaunchState, WantedRelease
from tests.awaiting import eventually
from tests.launched import BASE, STRANGER, Arrived, node_wheel, server_wheel

ROOT = Path(__file__).resolve().parents[2]
FIRST = "0.2.0"
SETTLED = {LaunchState.HEALTHY, LaunchState.ROLLED_BACK, LaunchState.REFUSED}
pytestmark = pytest.mark.slow


class Launched:
    """A launcher on a folder in which 0.2.0 runs."""

    def __init__(self, data_dir: Path, seconds: float) -> None:
        self.place = Arrived(data_dir)
        first = self.place.release(FIRST)
        put_there(self.place.folder, first, BASE, self.place.machine)
        self.place.folder.keep(LaunchNote(FIRST, manifest=first.manifest))
        self.seconds = seconds
        self.start()

    @property
    def log(self) -> Path:
        return self.place.folder.folder.parent / "launcher.log"

    def start(self, package: Path | None = None, cwd: Path | None = None) -> None:
        """Start it; as what a package brought that lies there, where one is named."""
        words = ["--data-dir", str(self.place.folder.folder.parent), "--look-seconds", "0.05"]
        words += ["--start-seconds", str(self.seconds), "--soak-seconds", "0.5", "--", "join"]
        program = [sys.executable, *(["-P"] if cwd else []), "-m", "leafcast.launcher.program"]
        more = {"cwd": cwd}
        if package is not None:
            more = {"cwd": package, "env": {**os.environ, "PYTHONPATH": str(package)}}
        with self.log.open("a") as log:
            self.process = subprocess.Popen([*program, *words], stderr=log, **more)

    @property
    def note(self) -> LaunchNote:
        return self.place.folder.note()

    def child(self) -> tuple[int, str]:
        """The one that holds the lock, and the version whose Python it runs on."""
        pid = int((self.place.folder.folder / "child.lock").read_text() or 0)
        words = Path("/proc", str(pid), "cmdline").read_bytes().decode().split("\0")
        return pid, "".join(Path(words[0]).parts[-3:-2])

    def is_run(self, version: str) -> bool:
        """Whether that version is what really runs."""
        try:
            return self.child()[1] == version
        except (OSError, ValueError):
            return False

    async def runs(self, version: str, state: LaunchState) -> LaunchNote:
        """What is written once it stands so, and that version runs."""

        def holds() -> bool:
            note = self.note
            return (note.running, note.state) == (version, state) and self.is_run(version)

        await eventually(holds, lambda: f"{self.note}")
        return self.note

    @contextmanager
    def unwritable(self) -> Iterator[None]:
        """Nothing of what it notes can be written meanwhile, as on a full disk."""
        inside = self.place.folder.folder / f"{LAUNCHER}{DRAFT}"
        inside.mkdir()
        yield
        inside.rmdir()

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(60)


@pytest.fixture
def launched(tmp_path):
    held = []

    def make(seconds=60.0):
        held.append(Launched(tmp_path, seconds))
        return held[-1]

    yield make
    for one in held:
        one.end()


async def test_a_release_that_works_is_healthy_and_one_that_does_not_is_taken_back(launched):
    one = launched()
    await one.runs(FIRST, LaunchState.HEALTHY)
    one.place.choose(one.place.release("0.3.0"))
    assert (await one.runs("0.3.0", LaunchState.HEALTHY)).former == FIRST
    assert str((one.place.folder.folder / "current").readlink()) == "installed/0.3.0"

    one.place.choose(one.place.release("0.3.1", "ends"))
    note = await one.runs("0.3.0", LaunchState.ROLLED_BACK)
    assert note.why == "0.3.1 ended before it was in session: code 3"
    one.place.choose(one.place.release("0.3.2", "dies"))
    await eventually(lambda: "0.3.2" in one.note.why)
    note = await one.runs("0.3.0", LaunchState.ROLLED_BACK)
    assert note.why.startswith("0.3.2 ended ")
    assert note.why.endswith(": code 4")
    one.place.choose(one.place.release("0.3.3", keys=(STRANGER,)))
    note = await one.runs("0.3.0", LaunchState.REFUSED)
    assert note.why.startswith("release: 0 of the 1 signatures")
    wheels = [node_wheel("0.3.4"), server_wheel(code=7)]
    one.place.choose(one.place.release("0.3.4", wheels=wheels))
    await eventually(lambda: "nats-server" in one.note.why)
    note = await one.runs("0.3.0", LaunchState.REFUSED)
    assert note.why.startswith("nats_server: its nats-server is to be 2.15.1, and says: ")
    # Each line names the release that it is about.
    said = one.log.read_text()
    assert "leafcast-launcher: 0.3.0: installing, and 0.2.0 runs\n" in said
    assert "leafcast-launcher: 0.3.3: refused, and 0.3.0 runs: release: 0 of the 1" in said
    # What failed takes no room.
    assert one.place.folder.startable() == {BASE, "0.3.0"}
    pid, _ = one.child()
    one.end()
    assert not Path("/proc", str(pid)).exists()


@pytest.mark.parametrize("damage", ["ends", "crashes", "gone", "python"])
async def test_what_was_healthy_and_is_damaged_is_put_there_anew_and_something_runs(
    launched, damage
):
    one = launched()
    await one.runs(FIRST, LaunchState.HEALTHY)
    chosen = one.place.choose(one.place.release("0.3.0"))
    await one.runs("0.3.0", LaunchState.HEALTHY)
    one.end()
    installed = one.place.folder.installed / "0.3.0"
    module = installed / SITE / "leafcast" / "__init__.py"
    match damage:
        case "ends":
            module.write_text("raise SystemExit(3)")
        case "crashes":
            module.write_text("import os\nos.kill(os.getpid(), 11)")
        case "gone":
            shutil.rmtree(module.parent)
        case "python":
            # Neither a program nor a folder.
            (installed / "bin" / "python").unlink()
            (installed / "bin" / "python").write_bytes(b"\x7fELF")
            (installed / "bin" / "python").chmod(0o700)
    pieces = one.place.folder.folder / "pieces"
    pieces.rename(pieces.with_name("away"))
    one.start()
    note = await one.runs(FIRST, LaunchState.REFUSED)
    assert note.why.startswith("0.3.0 ended 3 times in a row before it was ready: ")
    assert "pieces/" in note.why
    assert note.former == "0.3.0"
    # The node fetched them, and the launcher looks again.
    one.end()
    pieces.with_name("away").rename(pieces)
    one.place.choose(replace(chosen, attempt=1))
    one.start()
    assert (await one.runs("0.3.0", LaunchState.HEALTHY)).former == FIRST


async def test_a_newer_package_runs_from_the_next_start_on_until_another_release_is_chosen(
    launched, tmp_path
):
    one, package = launched(), tmp_path / "package"
    await one.runs(FIRST, LaunchState.HEALTHY)
    _, data = node_wheel("0.9.0")
    with zipfile.ZipFile(io.BytesIO(data)) as files:
        files.extractall(package)
    # The launcher is that of here, the node and the version are those of the package.
    ours = (
        f"import sys\nsys.path.insert(1, {str(ROOT)!r})\n__path__.append(sys.path[1] + '/leafcast')"
    )
    (package / "leafcast" / "__init__.py").write_text(ours)
    one.place.choose(WantedRelease(FIRST, one.note.manifest))
    for _ in range(2):
        one.end()
        one.start(package)
        # On the interpreter that runs the launcher, too.
        await eventually(lambda: one.is_run(Path(sys.executable).parts[-3]), lambda: f"{one.note}")
        assert (one.note.running, one.note.state) == ("0.9.0", LaunchState.HEALTHY)
        assert one.note.why.startswith("0.9.0 came by a package, and is newer than 0.2.0")
    one.place.choose(one.place.release("0.3.0"))
    await one.runs("0.3.0", LaunchState.HEALTHY)
    one.end()
    one.start(package)
    await one.runs("0.3.0", LaunchState.HEALTHY)


async def test_nothing_that_lies_in_the_working_directory_is_imported(launched, tmp_path):
    one, there = launched(), tmp_path / "there"
    there.mkdir()
    for name in ("json", "installer", "leafcast"):
        (there / f"{name}.py").write_text("raise SystemExit('it was imported')")
    one.end()
    one.start(cwd=there)
    one.place.choose(one.place.release("0.3.0"))
    await one.runs("0.3.0", LaunchState.HEALTHY)


async def test_a_release_that_never_joins_is_taken_back_with_what_it_said(launched):
    one = launched(seconds=2.0)
    await one.runs(FIRST, LaunchState.HEALTHY)
    one.place.choose(one.place.release("0.3.0", "apart"))
    note = await one.runs(FIRST, LaunchState.ROLLED_BACK)
    # A busy machine may not have let it answer at all.
    said = r"(\[-\]session: no parent|it does not answer at its health port)"
    assert re.fullmatch(r"0\.3\.0 was not in session with its parent in 2 s: " + said, note.why)


async def test_where_nothing_can_be_written_a_node_runs_and_no_release_is_tried(launched):
    one = launched()
    await one.runs(FIRST, LaunchState.HEALTHY)
    one.end()
    with one.unwritable():
        one.start()
        await one.runs(FIRST, LaunchState.HEALTHY)
        one.place.choose(one.place.release("0.3.0", "apart"))
        await eventually(lambda: "0.3.0" in one.place.folder.startable())
        os.kill(one.child()[0], signal.SIGKILL)
        await one.runs(FIRST, LaunchState.HEALTHY)
        assert one.process.poll() is None
    await one.runs("0.3.0", LaunchState.STARTING)
    # Nor is one that is tried kept.
    with one.unwritable():
        os.kill(one.child()[0], signal.SIGKILL)
        await eventually(lambda: one.is_run(FIRST))
        assert one.note.running == "0.3.0"
    note = await one.runs(FIRST, LaunchState.ROLLED_BACK)
    assert note.why == "0.3.0 ended before it was in session: signal 9"


async def test_wherever_launcher_and_node_are_killed_one_of_the_two_runs(launched):
    dice, one = random.Random(33), launched()
    await one.runs(FIRST, LaunchState.HEALTHY)
    one.place.choose(one.place.release("0.3.0"))
    for _ in range(4):
        if one.note.running == "0.3.0" and one.note.state in SETTLED:
            break
        # Not to wait for anything: a moment at which power may go, anywhere in the half second.
        time.sleep(dice.uniform(0.05, 0.5))
        one.process.kill()
        one.process.wait()
        for pid in pids_in(one.place.folder.folder):
            # What the launcher leaves behind ends by itself meanwhile.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        one.start()
    await eventually(lambda: one.note.state in SETTLED)
    note = one.note
    assert note.running == "0.3.0" or "was started 3 times" in note.why
    await one.runs(note.running, note.state)


def pids_in(folder: Path) -> list[int]:
    """Who works on a folder: what its command line names it by."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if f"{folder}/".encode() in words or f"{folder}\0".encode() in words:
                found.append(int(entry.name))
    return found
