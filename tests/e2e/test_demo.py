"""`leafcast demo` as its user runs it: what it says, how it ends, and that nothing stays behind."""

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.awaiting import until
from tests.processes import alive

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
BOUTIQUE = ROOT.parent / "shared" / "data" / "online-boutique"
WAIT_SECONDS = 60
SMALL = ("--regions", "1", "--sites", "2")
KEYS = {"destinations", "synced", "healthy", "mail_written_by_centre", "seconds"}
STEPS = {"tree_up", "apply_to_all_synced", "apply_to_all_healthy"}

SETTINGS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: lamp}
data: {colour: green}
"""
LAMP = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: lamp}
spec:
  selector: {matchLabels: {app: lamp}}
  template:
    metadata: {labels: {app: lamp}}
    spec: {containers: [{name: lamp, image: registry.example/lamp:TAG}]}
"""
GOOD, BROKEN = LAMP.replace("TAG", "1"), LAMP.replace("TAG", "broken")


class Demo:
    """Runs of the program; what they leave behind would be in `temporary`."""

    def __init__(self, folder: Path):
        self.temporary = folder / "tmp"
        self.temporary.mkdir()
        self._environment = {
            **os.environ,
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "80",
            "LINES": "40",
            "TERM": "xterm",
        }

    def run(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self._command(*arguments),
            env=self._environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )

    @contextmanager
    def running(self, *arguments: str, **streams: int) -> Iterator[subprocess.Popen[str]]:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
        # What runs the tests may ignore signals, and what it starts would inherit that.
        with subprocess.Popen(
            self._command(*arguments),
            env=self._environment,
            text=True,
            preexec_fn=_heed_signals,  # noqa: PLW1509 - one thread
            **pipes,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "leafcast", "demo", *arguments]


def _heed_signals() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def demo(tmp_path):
    return Demo(tmp_path)


def servers_of(process: subprocess.Popen[str]) -> set[int]:
    """The nats-servers that the program has started."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,comm="], capture_output=True, text=True, check=True
    )
    rows = (line.split(None, 2) for line in listed.stdout.splitlines())
    return {
        int(pid)
        for pid, parent, command in rows
        if int(parent) == process.pid and "nats-server" in command
    }


def servers_started_by(process: subprocess.Popen[str], count: int) -> set[int]:
    """The nats-servers of the program, once it has started so many."""

    def found() -> set[int] | None:
        assert process.poll() is None, process.communicate()
        servers = servers_of(process)
        return servers if len(servers) >= count else None

    return until(found, lambda: f"of {count} servers only {servers_of(process)} start")


def nothing_is_left(demo: Demo, servers: set[int]) -> None:
    assert servers
    until(lambda: not any(map(alive, servers)), lambda: f"{list(filter(alive, servers))} are left")
    until(
        lambda: not any(demo.temporary.iterdir()), lambda: f"{list(demo.temporary.rglob('*'))} stay"
    )


def result_of(ran: subprocess.CompletedProcess[str]) -> dict:
    """The one document on standard output."""
    found = json.loads(ran.stdout)
    assert set(found) == KEYS
    assert set(found["seconds"]) == STEPS
    return found


def assert_all_well(ran: subprocess.CompletedProcess[str], destinations: int) -> None:
    assert ran.returncode == 0, ran.stderr
    found = result_of(ran)
    counts = (found["destinations"], found["synced"], found["healthy"])
    assert counts == (destinations, destinations, destinations)
    assert found["mail_written_by_centre"] > 0
    assert all(seconds > 0 for seconds in found["seconds"].values())


def test_the_shop_reaches_every_site_and_works(demo):
    assert_all_well(demo.run("--once", "-o", "json"), 6)
    assert list(demo.temporary.iterdir()) == []


def test_a_deeper_tree_is_the_same_relay_again(demo):
    assert_all_well(demo.run("--once", *SMALL, "--depth", "4"), 2)


def test_manifests_without_a_placement_go_everywhere(demo, tmp_path):
    folder = tmp_path / "lamp"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "settings.yml").write_text(SETTINGS)
    (folder / "lamp.yaml").write_text(GOOD)
    (folder / "notes.txt").write_text("not: [a manifest")
    assert_all_well(demo.run(*SMALL, "--file", str(folder)), 2)


def test_manifests_are_taken_from_standard_input(demo):
    assert_all_well(demo.run(*SMALL, "--file", "-", stdin=f"{SETTINGS}---\n{GOOD}"), 2)


@pytest.mark.timeout(300)
def test_a_workload_that_never_works_is_told_with_its_reason(demo):
    # It is given up ten seconds after it came: a slow machine takes longer to get so far.
    for seconds in ("20", "60", "150"):
        given = ("--timeout", seconds, "--file", "-")
        ran = demo.run(*SMALL, *given, stdin=f"{SETTINGS}---\n{BROKEN}")
        if "deployments.apps" in ran.stderr:
            break
    assert ran.returncode == 1
    found = result_of(ran)
    assert (found["destinations"], found["synced"], found["healthy"]) == (2, 2, 0)
    assert found["seconds"]["apply_to_all_healthy"] is None
    assert "default/deployments.apps/lamp" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_bad_yaml_is_told_by_file_and_line_before_anything_starts(demo, tmp_path):
    bad = tmp_path / "bad.yaml"
    bad.write_text("apiVersion: v1\nkind: [\n")
    before = demo.temporary.stat().st_mtime_ns
    ran = demo.run("--file", str(bad))
    assert ran.returncode == 1
    assert ran.stderr.startswith(f"error: {bad}:3:")
    assert ran.stdout == ""
    assert demo.temporary.stat().st_mtime_ns == before, "a tree had begun to be made"


def test_a_real_application_works_at_every_site(demo):
    if not BOUTIQUE.is_dir():
        pytest.skip(f"THE REAL APPLICATION IS NOT HERE: {BOUTIQUE} is missing")
    assert_all_well(demo.run("--once", "-o", "json", "--file", str(BOUTIQUE)), 6)


def test_kill_leaves_nothing_behind(demo):
    with demo.running() as process:
        servers = servers_started_by(process, 9)
        process.kill()
        process.communicate()
    nothing_is_left(demo, servers)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_starting_ends_it_quietly_and_leaves_nothing_behind(demo, number):
    with demo.running() as process:
        servers = servers_started_by(process, 1)
        process.send_signal(number)
        said = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 128 + number
    assert said == ("", "")
    nothing_is_left(demo, servers)


def test_at_a_terminal_it_stays_until_ctrl_c_and_says_what_to_try_next(demo):
    controller, terminal = os.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    with demo.running(*SMALL, stdout=terminal) as process:
        os.close(terminal)
        with os.fdopen(controller, "rb", buffering=0) as screen:
            shown = _shown_until(screen, "press Ctrl-C to stop")
            servers = servers_of(process)
            assert len(servers) == 4
            process.send_signal(signal.SIGINT)
            shown += _shown_until(screen, "nothing is left running")
        assert process.wait(WAIT_SECONDS) == 0
    for wanted in (
        "site-2",
        "regions",
        "apply -> all healthy",
        "healthy",
        "Try next",
        "demo --depth 4",
    ):
        assert wanted in shown
    nothing_is_left(demo, servers)


def _shown_until(screen, wanted: str) -> str:
    shown = b""
    while wanted.encode() not in shown:
        try:
            shown += screen.read(65536)
        except OSError as ended:
            raise AssertionError(f"it ended, and had shown {shown!r}") from ended
    return shown.decode(errors="replace")
