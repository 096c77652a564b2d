"""The commands shown in the documents do what the documents show.

A block marked `console` holds commands (lines that begin with `$ `) and what they print. All blocks
of a page run in order, in one shell, in a home of their own. Every line that is shown must be
printed, in that order; a line `...` stands for any others. A command ends with code 0, or with 1 if
an error of ours or a difference is shown. A command that only looks is typed again until it shows
what the page shows: news from elsewhere may be on its way. A block marked `yaml` whose first line
is a comment with a file's name makes that file. A picture whose title is `leafcast ui VIEW` is
taken of that view at its place on the page; `make pictures` writes it. At the end of a page nothing
runs any more, and no file is left but those that the reader wrote.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.awaiting import until
from tests.pictures import picture_of_page

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
# Pages of one row are read one after the other, in one shell.
PAGES = (
    ("README.md",),
    ("docs/quickstart.md",),
    ("docs/customization.md",),
    ("docs/collectors.md",),
    (
        "docs/operations.md",
        "docs/operations/why.md",
        "docs/operations/watching.md",
        "docs/operations/data-directory.md",
        "docs/operations/keys.md",
        "docs/operations/backups.md",
        "docs/operations/upgrading.md",
        "docs/operations/failures.md",
    ),
    ("docs/plan.md",),
    ("docs/rollouts.md",),
)
RARE_PAGES = (
    ("docs/how-to/many-stores.md",),
    ("docs/data.md",),
    ("docs/operations/rollback.md",),
    ("docs/operations/sites.md",),
    ("docs/operations/maintenance.md",),
    ("docs/operations/disasters.md",),
)
"""Walked by `make long`: other tests do what they say, too."""
# Pages about names that lead nowhere else: here they lead to a network of the test's own.
PAGES_OF_NAMES = ("docs/internet.md",)
BLOCK = re.compile(
    r'^```(console|yaml)\n(.*?)^```$|^!\[[^]]+\]\((\S+) "leafcast ui (\S+)"\)$',
    re.MULTILINE | re.DOTALL,
)
FILE = re.compile(r"# ([a-z0-9-]+/)?[a-z0-9-]+\.yaml\n")
# What a command says that ends with 1.
DIFFERS = ("error: ", "Error from server", "diff -u", "at the centre: ")
END = "end of command"
LOOKS = re.compile(
    r"\bleafcast (status|rollout status|tree|get|describe|events|doctor|why)\b"
    r"[^|&;]*$"
    r"|\bleafcast (node list|node requests|orphans)\b"
    r"[^|&;]*$"
    r"|^docker compose down\b"
)
WAIT_SECONDS, PAUSE_SECONDS = 60, 0.2
# What differs from run to run, and is no part of what is shown: times, process ids, sizes.
CHANGING = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(Z|,\d+)?"), "<time>"),
    (re.compile(r"\b\d+(\.\d+)? s\b"), "<seconds>"),
    (re.compile(r"\b(\d+[smhd])+\b"), "<age>"),
    (re.compile(r"^\[(\d+)\] \d+$"), r"[\1] <process>"),
    (re.compile(r"\b\d+ bytes\b"), "<bytes>"),
    # Of backups: their times, keys and trees, and what they hold.
    (re.compile(r"\b\d{8}T\d{6}Z\b"), "<time>"),
    (re.compile(r"\bkey [0-9a-f]{12}\b"), "key <key>"),
    (re.compile(r"\btree [a-z2-7]{26}\b"), "tree <tree>"),
    (re.compile(r"\b\d+ messages\b"), "<messages>"),
    (re.compile(r"\b\d+ records in force, \d+ objects\b"), "<records>"),
    # What is still to be read by a relay elsewhere is known from its last hello.
    (re.compile(r"\bup +\d+(?= )"), "up <lag>"),
    (re.compile(r"\s+"), " "),
)


@dataclass
class Command:
    """A command of a page, and the lines that it is said to print."""

    line: str
    shown: list[str] = field(default_factory=list)

    @property
    def code(self) -> int:
        return int(any(line.startswith(DIFFERS) for line in self.shown))


class Picture(NamedTuple):
    """A picture of a page, and which view of `leafcast ui` it shows."""

    file: str
    view: str


def steps(page: str) -> Iterator[Command | Picture | tuple[Path, str]]:
    """What a page has one do: files to write, commands to type; and the pictures that it shows."""
    for block in BLOCK.finditer(page):
        kind, text, file, view = block.groups()
        if view is not None:
            yield Picture(file, view)
            continue
        if kind == "yaml":
            if named := FILE.match(text):
                yield Path(named[0][2:].strip()), text
            continue
        commands: list[Command] = []
        for line in text.splitlines():
            if line.startswith("$ "):
                commands.append(Command(line[2:]))
            elif commands:
                commands[-1].shown.append(line)
        yield from commands


class Shell:
    """A shell in a folder that looks like the project's, with a home of its own."""

    def __init__(self, folder: Path, *within: str, **more: str) -> None:
        """`within` is a command that runs the shell, `more` is added to its environment."""
        self.folder, self.home = folder / "leafcast", folder / "home"
        # Where pages have other disks.
        self.mounts = folder / "mounts"
        self.folder.mkdir()
        self.home.mkdir()
        self.mounts.mkdir()
        self.written = {"leafcast", "deploy", ".venv"}
        for name in ("leafcast", "deploy"):
            (self.folder / name).symlink_to(ROOT / name)
        (self.folder / ".venv").symlink_to(sys.prefix)
        foreign = ("LEAFCAST_DATA_DIR", "XDG_STATE_HOME", "PYTHONPATH", "KUBECONFIG")
        environment = {name: it for name, it in os.environ.items() if name not in foreign}
        self._is_busy = False
        self.environment = {**environment, "HOME": str(self.home), "COLUMNS": "80", **more}
        self._bash = subprocess.Popen(
            [*within, "/bin/bash", "--norc"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, line: str) -> tuple[int, list[str]]:
        """The exit code of a command, and the lines it printed."""
        line = line.replace("/mnt/", f"{self.mounts}/")
        # What a command reads is not ours: else it would take the commands that follow.
        self._bash.stdin.write(f"{{ {line}\n}} < /dev/null\nprintf '\\n{END} %s\\n' $?\n")
        self._bash.stdin.flush()
        self._is_busy = True
        printed: list[str] = []
        for text in iter(self._bash.stdout.readline, ""):
            if text.startswith(END):
                self._is_busy = False
                return int(text.removeprefix(END)), printed[:-1] if printed[-1] == "" else printed
            shown = text.replace(str(self.home), "/home/you").replace(str(self.mounts), "/mnt")
            printed.append(shown.rstrip("\n"))
        raise AssertionError(f"the shell ended at {line!r}: {printed}")

    def left_behind(self) -> list[str]:
        """What the pages started and never ended, and the files that their commands left."""
        mark, left = f"HOME={self.home}".encode(), []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                environment = (entry / "environ").read_bytes().split(b"\0")
                if mark in environment and int(entry.name) != self._bash.pid:
                    left.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:  # It ended, or is another user's.
                continue
        files = {str(file.relative_to(self.folder)) for file in self.folder.rglob("*")}
        return sorted([*left, *(files - self.written)])

    def write(self, file: Path, text: str) -> None:
        """Make a file that the page shows."""
        (self.folder / file).parent.mkdir(exist_ok=True)
        (self.folder / file).write_text(text)
        self.written |= {str(file), str(file.parent)}

    def end(self) -> None:
        """Stop what the page left running: its tree, and its jobs."""
        if self._is_busy:
            # What it waits for may never come, and it reads no more.
            os.killpg(self._bash.pid, signal.SIGKILL)
            self._bash.wait()
            down = [sys.executable, "-m", "leafcast", "down"]
            subprocess.run(down, env={**os.environ, "HOME": str(self.home)}, check=False)
            return
        self.run(".venv/bin/leafcast down")
        self.run("kill $(jobs -p) 2>/dev/null; wait")
        self._bash.send_signal(signal.SIGTERM)
        self._bash.communicate(timeout=WAIT_SECONDS)


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    started = Shell(tmp_path)
    try:
        yield started
    finally:
        started.end()


def same(line: str) -> str:
    for pattern, said in CHANGING:
        line = pattern.sub(said, line.strip())
    return line


def missing(shown: list[str], printed: list[str]) -> str | None:
    """The first line that is shown and not printed after those before it."""
    rest = iter([same(line) for line in printed])
    return next(
        (line for line in shown if line not in ("...", "") and same(line) not in rest), None
    )


def _wrong(command: Command, code: int, printed: list[str]) -> str:
    """What is otherwise than the page shows; "" if nothing."""
    said = "\n".join(printed)
    if code != command.code:
        return f"exit code {code}, not {command.code}:\n{said}"
    line = missing(command.shown, printed)
    return "" if line is None else f"not printed in its place: {line!r}\n{said}"


@pytest.mark.parametrize(
    "pages",
    [*PAGES, *(pytest.param(pages, marks=pytest.mark.long) for pages in RARE_PAGES)],
    ids=lambda pages: pages[0],
)
def test_commands_in_documents_print_what_is_shown(pages: tuple[str, ...], shell: Shell):
    walk_all(pages, shell)


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES_OF_NAMES)
def test_commands_about_names_print_what_is_shown(page: str, tmp_path: Path):
    if shutil.which("unshare") is None or os.geteuid() != 0:
        pytest.skip("NOT RUN: only root gives names to 127.0.0.1, with unshare of util-linux")
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost centre.example emea.example\n")
    within = f'ip link set lo up && mount --bind {hosts} /etc/hosts && exec "$@"'
    shell = Shell(tmp_path, "unshare", "--net", "--mount", "sh", "-c", within, "sh")
    try:
        walk_all((page,), shell)
    finally:
        shell.end()


def walk_all(pages: tuple[str, ...], shell: Shell) -> None:
    """Walk pages one after the other; nothing may be left behind then."""
    for page in pages:
        walk(page, shell)
    until(lambda: not shell.left_behind(), shell.left_behind)


def walk(page: str, shell: Shell, part: slice = slice(None)) -> None:
    """Do what a page, or a part of its steps, has one do, and hold it to what it shows."""
    done = 0
    for step in [*steps((ROOT / page).read_text())][part]:
        if isinstance(step, Command):
            end = time.monotonic() + WAIT_SECONDS
            while wrong := _wrong(step, *shell.run(step.line)):
                again = LOOKS.search(step.line) and time.monotonic() < end
                assert again, f"{page}: $ {step.line}\n{wrong}"
                time.sleep(PAUSE_SECONDS)
            done += 1
        elif isinstance(step, Picture):
            file = (ROOT / page).parent / step.file
            picture_of_page(step.view, file, {**shell.environment, "PYTHONPATH": str(ROOT)})
        else:
            shell.write(*step)
    assert done, f"{page} shows no command"
