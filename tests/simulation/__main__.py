"""`python -m tests.simulation --seeds N [--seed K]`: run seeds, and say which laws they break.

`tiny:80 rolling:25` run so many seeds of each size, also where some of the one before failed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace
from functools import partial

from tests.simulation import mutants, soak
from tests.simulation.faults import NO_FAULTS, Faults
from tests.simulation.replay import again, check, end_of
from tests.simulation.run import Outcome, run
from tests.simulation.sizes import SIZES

FAILED_TOLD = 3
"""Of how many failed seeds the end of the story is told."""
CHUNK_MAX = 400
"""How many seeds a process runs at most before it tells: a chunk is slow at its beginning."""
Chunk = tuple[list[Outcome], float]
"""What came of some seeds, and the seconds of CPU that it took."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make simulate")
    parser.add_argument("sizes", nargs="*", type=_size, metavar="SIZE:SEEDS", help="one by one")
    parser.add_argument("--seeds", type=int, default=500, help="how many seeds, from --first on")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument(
        "--seed", help="only this one, as `small:17` or `withheld:0`, with what happened in it"
    )
    parser.add_argument("--size", choices=[*SIZES], help="how large the trees are (tiny)")
    parser.add_argument("--calm", action="store_true", help="without faults")
    parser.add_argument("--no-mutants", action="store_true", help="without the planted faults")
    parser.add_argument("--soak", type=float, help="so many virtual days instead, 365 for a year")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many processes")
    given = parser.parse_args()
    chosen = NO_FAULTS if given.calm else None
    if given.seed is not None:
        name = f"{given.size}:{given.seed}" if given.size and ":" not in given.seed else given.seed
        try:
            check(name)
        except ValueError as error:
            parser.error(f"argument --seed: {error}")
        return _one(name, chosen)
    if given.soak:
        return _soak(given.soak)
    if given.seeds < 1:
        parser.error(f"argument --seeds: {given.seeds} is less than 1")
    failed = 0
    for size, seeds in given.sizes or [(given.size or "tiny", given.seeds)]:
        given.size, given.seeds = size, seeds
        failed += _swarm(given, chosen)
    survived = 0 if given.no_mutants else mutants.main()
    return 1 if failed or survived else 0


def _size(text: str) -> tuple[str, int]:
    """A size and its number of seeds, as `tiny:80`."""
    size, _, seeds = text.partition(":")
    if size not in SIZES or not seeds.isdecimal() or int(seeds) < 1:
        sizes = ", ".join(SIZES)
        raise argparse.ArgumentTypeError(f"{text!r} is no SIZE:SEEDS; sizes are {sizes}")
    return size, int(seeds)


def _one(name: str, chosen: Faults | None) -> int:
    """Tell the whole story of one seed."""
    outcome = again(name, chosen)
    print("\n".join(outcome.story))
    print(", ".join(f"{name}={value}" for name, value in asdict(outcome.faults).items()))
    print(outcome)
    return 1 if outcome.law else 0


def _soak(days: float) -> int:
    begun, taken = time.process_time(), []
    for sample in soak.soak(days, changes=max(60, int(days)), samples=12):
        taken.append(sample)
        print(sample, flush=True)
    took = time.process_time() - begun
    flat = soak.flat(taken)
    print(f"{days:.0f} virtual days in {took:.0f} s of CPU: {'flat' if flat else 'NOT FLAT'}")
    return 0 if flat else 1


def _swarm(given: argparse.Namespace, chosen: Faults | None) -> int:
    """Run the seeds, say what broke and how fast it went; how many seeds failed."""
    count, failed, cpu, virtual = 0, 0, 0.0, 0.0
    traces = hashlib.sha256()
    for outcomes, took in _chunks(given, chosen):
        cpu += took
        for outcome in outcomes:
            count, failed = count + 1, failed + bool(outcome.law)
            if outcome.law:
                told = end_of(outcome, chosen) if failed <= FAILED_TOLD else outcome
                print(told, flush=True)
            virtual += outcome.seconds
            traces.update(outcome.trace.encode())
    print(
        f"{count} {given.size} seeds, {virtual:.0f} virtual seconds in {cpu:.1f} s of CPU:"
        f" {count / cpu:.1f} seeds a second and core, {failed} failed,"
        f" trace {traces.hexdigest()[:16]}"
    )
    return failed


def _chunks(given: argparse.Namespace, chosen: Faults | None) -> Iterator[Chunk]:
    last = given.first + given.seeds
    chunk = min(CHUNK_MAX, max(1, -(-given.seeds // (4 * given.jobs))))
    chunks = [range(at, min(at + chunk, last)) for at in range(given.first, last, chunk)]
    some = partial(_some, given.size, chosen)
    if min(given.jobs, len(chunks)) < 2:
        yield from map(some, chunks)
        return
    with ProcessPoolExecutor(min(given.jobs, len(chunks))) as pool:
        yield from pool.map(some, chunks)


def _some(size: str, chosen: Faults | None, seeds: range) -> Chunk:
    begun = time.process_time()
    done = [replace(run(seed, chosen, size=SIZES[size]), story=[]) for seed in seeds]
    return done, time.process_time() - begun


if __name__ == "__main__":
    sys.exit(main())
