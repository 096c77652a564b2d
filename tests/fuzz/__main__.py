"""`python -m tests.fuzz [TARGET...] --seconds N`: fuzz each target, and say what it found."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.fuzz import campaign
from tests.fuzz.campaign import Bounds, Outcome
from tests.fuzz.table import FOLLOWED, GROUPS, PASSED_OVER, PLANTED, targets
from tests.fuzz.target import Target

MISSING = (
    "error: atheris is not installed. It has wheels for CPython 3.11 to 3.14 on Linux x86-64:\n"
    "  run `make setup` there, or `pip install atheris`. The laws in tests/property need nothing."
)
ROW = "{:<12} {:>10} {:>9} {:>9} {:>9} {:>7}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("targets", nargs="*", help="targets or groups; all if none is named")
    parser.add_argument("--seconds", type=int, default=20, help="how long each of them")
    parser.add_argument("--runs", type=int, default=0, help="at most so many executions of each")
    parser.add_argument("--seed", type=int, default=1, help="where the fuzzer's dice begin")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at a time")
    parser.add_argument("--replay", type=Path, help="run this input on the target, and no other")
    given = parser.parse_args()
    if given.replay:
        known = targets((*GROUPS, PLANTED))
        if len(given.targets) != 1 or given.targets[0] not in known:
            parser.error(f"--replay needs one target of {', '.join(known)}")
        if not given.replay.is_file():
            parser.error(f"there is no input {given.replay}")
        return campaign.replay(known[given.targets[0]], given.replay)
    asked = set(given.targets)
    by_group = asked <= {*GROUPS, PLANTED}
    known = _instrumented([it for it in (*GROUPS, PLANTED) if it in asked] if by_group else GROUPS)
    if known is None:
        print(MISSING, file=sys.stderr)
        return 2
    if unknown := asked - {*known, *GROUPS, PLANTED}:
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    chosen = {name: it for name, it in known.items() if by_group or name in asked}
    return _run(chosen, Bounds(given.seconds, given.runs, given.seed), max(given.jobs, 1))


def _instrumented(groups: Sequence[str]) -> Mapping[str, Target] | None:
    """The targets, with all that they call made to tell where it has been."""
    try:
        import atheris
    except ImportError:
        return None
    print("instrumenting ...", flush=True)
    aside, sys.stderr = sys.stderr, Path(os.devnull).open("w")  # noqa: SIM115 - put back below
    try:
        with atheris.instrument_imports(include=list(FOLLOWED), exclude=list(PASSED_OVER)):
            return targets(groups or GROUPS)
    finally:
        sys.stderr.close()
        sys.stderr = aside


def _run(chosen: Mapping[str, Target], bounds: Bounds, jobs: int) -> int:
    folder = campaign.new_folder()
    print(ROW.format("target", "executions", "a second", "peak MB", "covered", "new"), flush=True)
    findings = 0
    for it in _outcomes(chosen, bounds, jobs, folder):
        print(ROW.format(it.name, it.executions, it.a_second, it.peak_mb, it.covered, it.grown))
        if it.finding:
            findings += 1
            print(it.finding)
        sys.stdout.flush()
    if not findings:
        shutil.rmtree(folder)
    print(f"findings: {findings} in {len(chosen)} targets")
    return 1 if findings else 0


def _outcomes(
    chosen: Mapping[str, Target], bounds: Bounds, jobs: int, folder: Path
) -> Iterator[Outcome]:
    """As each ends."""
    waiting, running = list(chosen.items()), dict[int, str]()
    while waiting or running:
        while waiting and len(running) < jobs:
            name, target = waiting.pop(0)
            running[campaign.start(name, target, bounds, folder)] = name
        ended, status = os.wait()
        yield campaign.outcome(running.pop(ended), os.waitstatus_to_exitcode(status), folder)


if __name__ == "__main__":
    sys.exit(main())
