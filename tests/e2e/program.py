"""The program as its user runs it, on a data directory of its own."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE
from typing import IO

from leafcast.data_dir import DataDir

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("--regions", "1", "--sites", "2")
EDGES = ("/region-1/site-1", "/region-1/site-2")
"""Of a small tree."""


class Program:
    """The program on one data directory."""

    def __init__(self, folder: Path):
        self.place = DataDir(folder)
        self.environment = {
            **{k: v for k, v in os.environ.items() if k != "LEAFCAST_DATA_DIR"},
            "LEAFCAST_DATA_DIR": str(folder),
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "80",
        }

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "leafcast", *arguments],
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            check=False,
        )

    def start(
        self, *arguments: str, stdout: int | IO[str] = PIPE, stderr: int | IO[str] = PIPE
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "leafcast", *arguments],
            env=self.environment,
            stdout=stdout,
            stderr=stderr,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
        )

    def json(self, *arguments: str):
        done = self.run(*arguments, "-o", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def did(tree, *arguments, code=0):
    """Run a command that is to end with this code."""
    done = tree.run(*arguments)
    assert done.returncode == code, (done.stdout, done.stderr)
    return done
