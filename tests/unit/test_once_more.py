"""What failed with servers runs once more, alone; what only computes fails for good."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.once_more import MOST, run_again

ROOT = Path(__file__).resolve().parents[2]
FAILS_ONCE = """
from pathlib import Path
def test_it():
    ran = Path(__file__).with_suffix(".ran")
    before = ran.exists()
    ran.touch()
    assert before
"""
FAILS = "def test_it():\n    assert False\n"
PASSES = "def test_it():\n    pass\n"


@pytest.mark.parametrize(
    ("failed", "again"),
    [
        ([], []),
        (["tests/nats/test_b.py::b", "tests/kube/test_a.py::a"], None),
        (["tests/unit/test_a.py::a"], []),
        (["tests/nats/test_b.py::b", "tests/simulation/test_a.py::a"], []),
        ([f"tests/e2e/test_{number}.py::a" for number in range(MOST)], None),
        ([f"tests/e2e/test_{number}.py::a" for number in range(MOST + 1)], []),
    ],
)
def test_a_few_with_servers_run_again(failed, again):
    assert run_again(failed) == (sorted(failed) if again is None else again)


@pytest.mark.parametrize(
    ("folder", "text", "status", "said"),
    [
        ("nats", PASSES, 0, "1 passed"),
        (
            "nats",
            FAILS_ONCE,
            0,
            "They failed beside others only:\n  tests/nats/test_one.py::test_it",
        ),
        ("nats", FAILS, 1, "At least one failed alone, too:\n  tests/nats/test_one.py::test_it"),
        ("unit", FAILS_ONCE, 1, "1 failed"),
        ("nats", "(", 2, "1 error"),
    ],
)
def test_the_exit_status_is_that_of_the_last_run(tmp_path, folder, text, status, said):
    file = tmp_path / "tests" / folder / "test_one.py"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "tests.once_more", "-q"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYTEST_ADDOPTS": "",
            # To load all plugins takes longer than all else.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stdout
    assert ("once more" in done.stdout) == (folder == "nats" and text in (FAILS, FAILS_ONCE))
