"""Tests that are ended in their midst leave nothing running."""

import subprocess
import sys
from pathlib import Path

from tests import left_behind
from tests.awaiting import until
from tests.processes import alive

ROOT = Path(__file__).resolve().parents[2]
SLEEPER = "import time; time.sleep(600)"
TESTS = f"""
import subprocess, sys
from tests import left_behind
left_behind.watch()
started = subprocess.Popen([sys.executable, "-c", {SLEEPER!r}], start_new_session=True)
print(started.pid, flush=True)
sys.stdin.read()
"""


def test_what_was_started_ends_with_a_process_that_is_killed():
    with subprocess.Popen(
        [sys.executable, "-c", TESTS],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as tests:
        started = int(tests.stdout.readline())
        assert alive(started)
        tests.kill()
    until(lambda: not alive(started), "it runs on")


def test_what_others_started_is_left(monkeypatch):
    with subprocess.Popen([sys.executable, "-c", SLEEPER]) as other:
        monkeypatch.setenv(left_behind.MARK, "")
        watching = left_behind.watch()
        left_behind.end(watching)
        assert watching.returncode == 0
        assert alive(other.pid)
        other.kill()
