"""Manual pages and completions in deploy/share say what the program says."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.manual_pages import COMPLETIONS, SHARE, files

PAGES = sorted((SHARE / "man" / "man1").glob("*.1"))


def test_manual_pages_and_completions_are_what_the_program_says_now():
    there = {
        path.relative_to(SHARE).as_posix(): path.read_text()
        for path in SHARE.rglob("*")
        if path.is_file()
    }
    assert there == files(), "run `make docs`"


@pytest.mark.skipif(not shutil.which("groff"), reason="needs groff (Debian: groff-base)")
def test_manual_pages_are_drawn_to_the_letter_and_without_a_warning():
    draw = ("groff", "-man", "-Tascii", "-P-cbou", "-ww")
    done = subprocess.run([*draw, *PAGES], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert "leafcast completion [OPTIONS] {bash|zsh|fish}" in lines
    assert 'bash:  eval "$(leafcast completion bash)"    in ~/.bashrc' in lines
    assert (
        "helm template shop ./chart | leafcast denature -n shop | kubectl apply -n shop -f -"
        in lines
    )


def test_bash_completes_by_the_file_of_the_package(tmp_path):
    program = tmp_path / "leafcast"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m leafcast "$@"\n')
    program.chmod(0o700)
    asked = (
        f". {SHARE / COMPLETIONS['bash']}; COMP_WORDS=(leafcast sta) COMP_CWORD=1; "
        '_leafcast_completion leafcast; echo "${COMPREPLY[@]}"'
    )
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    root = Path(__file__).resolve().parents[2]
    run = subprocess.run(
        ["bash", "--norc", "-c", asked],
        env={**environment, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["status"]
