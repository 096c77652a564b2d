"""A command that is forked is as one that was started: by what goes in, and what comes out."""

import json
import os
from subprocess import TimeoutExpired

import pytest

from tests.e2e.forked_commands import run_command
from tests.e2e.program import Program

NAMED = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}
OTHER = {"PYTHONHASHSEED": "1"}
"""With this Python is started anew."""
DRY = ("apply", "-f", "-", "--dry-run=client", "-o", "yaml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("status",), None),
        (("apply", "--nonesuch"), None),
        (DRY, json.dumps(NAMED)),
        (DRY, "kind: ["),
        (("completion", "bash"), None),
    ],
)
def test_a_forked_command_ends_and_speaks_as_one_that_was_started(words, said, tmp_path):
    environment = Program(tmp_path).environment
    forked = run_command(words, environment, said)
    started = run_command(words, {**environment, **OTHER}, said)
    assert (forked.returncode, forked.stdout, forked.stderr) == (
        (started.returncode, started.stdout, started.stderr)
    )
    assert forked.stdout + forked.stderr


def test_each_has_its_own_environment_and_folder(tmp_path, monkeypatch):
    (tmp_path / "here.json").write_text("{}")
    words = ["verify", "here.json"]
    for name in ("one", "two"):
        environment = Program(tmp_path / name).environment
        assert str(tmp_path / name) in run_command(["status"], environment).stderr
        monkeypatch.chdir(os.sep)
        absent = run_command(words, environment)
        monkeypatch.chdir(tmp_path)
        there = run_command(words, environment)
        assert "No such file" in absent.stderr
        assert "No such file" not in there.stderr


def test_one_that_takes_too_long_is_killed(tmp_path):
    environment = Program(tmp_path).environment
    run_command(["status"], environment)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TimeoutExpired):
        run_command(["verify", str(tmp_path / "pipe")], environment, seconds=1)
