"""Shells complete our commands by asking the program."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "leafcast", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_commands_and_options_are_completed():
    asked = {"_LEAFCAST_COMPLETE": "bash_complete", "COMP_CWORD": "1"}
    assert "plain,status" in run(**asked, COMP_WORDS="leafcast sta")
    asked["COMP_CWORD"] = "2"
    assert "plain,--destinations" in run(**asked, COMP_WORDS="leafcast status --d")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_calls_the_program(shell):
    assert f"_LEAFCAST_COMPLETE={shell}_complete" in run("completion", shell)
