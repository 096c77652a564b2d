"""One target in a process of its own, guided by coverage, within bounds of memory and time."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import resource
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.mutation import mutate
from tests.fuzz.target import Target

MEMORY_BYTES = 256 * 1024 * 1024
"""What an input may make a decoder take beyond what the process has when it begins."""
UNIT_SECONDS = 20
"""One input that takes longer is a finding, too."""
SHOWN_BYTES = 300
FOUND = "found"


@dataclass(frozen=True)
class Bounds:
    """How long to run: by time, by executions if these are not 0, and from which seed."""

    seconds: int
    runs: int = 0
    seed: int = 1


@dataclass(frozen=True)
class Outcome:
    """What came of one target; `finding` says what was wrong, and is empty if nothing was."""

    name: str
    executions: int
    a_second: int
    peak_mb: int
    covered: int
    grown: int
    finding: str


def start(name: str, target: Target, bounds: Bounds, folder: Path) -> int:
    """Fuzz in a child process that begins as this one is now; its process id."""
    corpus = folder / name / "corpus"
    corpus.mkdir(parents=True)
    for seed in target.seeds():
        (corpus / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    try:
        _fuzz(target, bounds, folder / name, corpus)
    except BaseException:  # noqa: BLE001 - whatever it was ends the child, and is told
        traceback.print_exc()
        os._exit(70)
    os._exit(0)


def _fuzz(target: Target, bounds: Bounds, folder: Path, corpus: Path) -> None:
    import atheris

    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    _bound_memory()

    tempfile.tempdir = str(folder)  # What a target writes goes with the campaign.

    def run(data: bytes) -> None:
        try:
            target.run(data)
        except BaseException:
            (folder / f"{FOUND}-input").write_bytes(data)
            raise

    def change(data: bytes, size: int, seed: int) -> bytes:
        return mutate(target.form, target.chosen, data, size, seed, atheris.Mutate)

    options = {
        "max_total_time": bounds.seconds,
        "runs": bounds.runs or -1,
        "seed": bounds.seed,
        "max_len": target.bytes_max,
        "timeout": UNIT_SECONDS,
        "rss_limit_mb": 0,
        "print_final_stats": 1,
        "artifact_prefix": f"{folder}/{FOUND}-",
        "verbosity": 1,
    }
    flags = [f"-{option}={value}" for option, value in options.items()]
    atheris.Setup([sys.argv[0], *flags, str(corpus)], run, custom_mutator=change)
    atheris.Fuzz()


def _bound_memory() -> None:
    """Beyond it comes MemoryError, at once, where looking from time to time would miss a peak."""
    pages = int(Path("/proc/self/statm").read_text().split()[5])
    most = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def outcome(name: str, code: int, folder: Path) -> Outcome:
    """What a child process that ended with this code left."""
    log = (folder / name / "log").read_text(errors="replace")
    inputs = sorted((folder / name).glob(f"{FOUND}-*"))
    finding = ""
    if code or inputs:
        finding = _told(name, inputs, log)

    def figure(pattern: str) -> int:
        found = re.findall(pattern, log)
        return int(found[-1]) if found else 0

    return Outcome(
        name,
        figure(r"number_of_executed_units: (\d+)"),
        figure(r"average_exec_per_sec: +(\d+)"),
        figure(r"peak_rss_mb: +(\d+)"),
        figure(r"cov: (\d+)"),
        figure(r"new_units_added: +(\d+)"),
        finding,
    )


def _told(name: str, inputs: list[Path], log: str) -> str:
    what = log[log.find("Uncaught") if "Uncaught" in log else max(len(log) - 2000, 0) :]
    lines = [line for line in what.splitlines() if not line.startswith(("#", "stat::", "WARN"))]
    told = ["", f"{name}: a finding", *lines[-40:]]
    for found in inputs[:1]:
        data = found.read_bytes()
        told.append(f"{len(data)} bytes, base64: {base64.b64encode(data[:SHOWN_BYTES]).decode()}")
        told.append(f"replay: python -m tests.fuzz {name} --replay {found}")
    return "\n".join(told)


def replay(target: Target, file: Path) -> int:
    """Run one input, without a fuzzer: its traceback, or 0."""
    target.run(file.read_bytes())
    return 0


def new_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="leafcast-fuzz-"))
