"""`python -m tests.simulation --seeds N [--seed K]`: run seeds, and say which laws they break."""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from dataclasses import asdict, replace

from tests.simulation import mutants, soak, worlds
from tests.simulation.faults import NO_FAULTS
from tests.simulation.run import run
from tests.simulation.sizes import SIZES, seed_of


def main() -> int:
    parser = argparse.ArgumentParser(prog="make simulate")
    parser.add_argument("--seeds", type=int, default=500, help="how many seeds, from --first on")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", help="only this one, as `small:17`, with what happened in it")
    parser.add_argument("--size", choices=[*SIZES], default="tiny", help="how large the trees are")
    parser.add_argument("--calm", action="store_true", help="without faults")
    parser.add_argument("--no-mutants", action="store_true", help="without the planted faults")
    parser.add_argument("--soak", type=float, help="so many virtual days instead, 365 for a year")
    given = parser.parse_args()
    chosen = NO_FAULTS if given.calm else None
    if given.seed is not None and worlds.is_world(given.seed):
        played = worlds.play(given.seed)
        print(played)
        return 1 if played.law else 0
    if given.seed is not None:
        size, number = seed_of(given.seed)
        outcome = run(number, chosen, size=size, story=True)
        print("\n".join(outcome.story))
        print(", ".join(f"{name}={value}" for name, value in asdict(outcome.faults).items()))
        print(outcome)
        return 1 if outcome.law else 0
    if given.soak:
        taken = soak.soak(given.soak, changes=max(60, int(given.soak)), samples=12)
        print(soak.told(taken))
        print("flat" if soak.flat(taken) else "NOT FLAT")
        return 0 if soak.flat(taken) else 1
    begun = time.process_time()
    size, last = SIZES[given.size], given.first + given.seeds
    outcomes = []
    for seed in range(given.first, last):
        outcome = run(seed, chosen, size=size)
        if outcome.law:
            print(outcome, flush=True)
        outcomes.append(replace(outcome, story=[]))
    took = time.process_time() - begun
    failed = [outcome for outcome in outcomes if outcome.law]
    traces = hashlib.sha256("".join(outcome.trace for outcome in outcomes).encode()).hexdigest()
    virtual = sum(outcome.seconds for outcome in outcomes)
    rate = given.seeds / took
    print(
        f"{given.seeds} seeds, {virtual:.0f} virtual seconds in {took:.1f} s of CPU:"
        f" {rate:.1f} seeds a second, {len(failed)} failed, trace {traces[:16]}"
    )
    survived = 0 if given.no_mutants else mutants.main()
    return 1 if failed or survived else 0


if __name__ == "__main__":
    sys.exit(main())
