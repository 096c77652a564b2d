"""The planted faults, the law that each breaks, and a seed that shows it.

A simulation that does not find them proves nothing. Where the core has changed, and a seed shows its
fault no more, others are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.simulation import planted
from tests.simulation.planted import Patch
from tests.simulation.run import Outcome, run
from tests.simulation.sizes import SMALL, TINY, seed_of

SEEDS_TO_KILL = 400
"""How many seeds of each of the two smallest sizes are tried for a fault."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A planted fault, and the seed that is tried first."""

    plant: Callable[[], Patch]
    law: str
    seed: str = ""

    @property
    def name(self) -> str:
        return self.plant.__name__

    @property
    def meaning(self) -> str:
        return (self.plant.__doc__ or "").strip()


@contextmanager
def in_force(mutant: Mutant) -> Iterator[None]:
    """Plant the fault, and take it out again."""
    owner, name, instead = mutant.plant()
    honest = owner.__dict__[name]
    setattr(owner, name, instead)
    try:
        yield
    finally:
        setattr(owner, name, honest)


def kill(mutant: Mutant, seeds: int = SEEDS_TO_KILL) -> Outcome | None:
    """The first seed that breaks the mutant's law; None if none of so many does."""
    hinted = [mutant.seed] if mutant.seed else []
    others = [f"{size.name}:{n}" for n in range(seeds) for size in (TINY, SMALL)]
    with in_force(mutant):
        for name in (*hinted, *others):
            size, number = seed_of(name)
            outcome = run(number, size=size)
            if outcome.law == mutant.law:
                return outcome
    return None
