"""How large a simulated tree is, how much happens to it, and how patiently it is judged.

A seed is named `size:number`; a number alone is a seed of `wide`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from tests.simulation import faults
from tests.simulation.faults import Faults

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Size:
    """Ranges are drawn from, both ends included; times are virtual seconds.

    `depths` are tiers of relays between the centre and the edges. Each of `rounds` is a number of
    changes, `gap_seconds` apart on average, and up to `tail_seconds` of faults after them. The tree
    rests at the end of every `rest_every`-th seed, which takes long: nothing may move. A
    `brief` life has faults that the seeds of the first sizes did not know. In a `rolling` one users
    change things by rollouts.
    """

    name: str
    depths: Range
    regions: Range
    edges: Range
    edges_max: int
    locations: Range
    placements: Range
    placements_max: int
    objects_max: int
    rounds: tuple[Range, ...]
    gap_seconds: float
    tail_seconds: float
    settle_step_seconds: float
    rest_every: int
    draw: Callable[[Random], Faults]
    attached: float = 0.15
    brief: bool = True
    # Whether placements come by rollouts.
    rolling: bool = False


TINY = Size(
    "tiny",
    depths=(0, 0),
    regions=(1, 1),
    edges=(1, 2),
    edges_max=3,
    locations=(0, 1),
    placements=(1, 1),
    placements_max=2,
    objects_max=3,
    rounds=((1, 2),),
    gap_seconds=0.5,
    tail_seconds=1.0,
    settle_step_seconds=1.0,
    rest_every=256,
    draw=faults.draw_brief,
)
SMALL = Size(
    "small",
    depths=(1, 1),
    regions=(1, 1),
    edges=(1, 2),
    edges_max=3,
    locations=(0, 1),
    placements=(1, 2),
    placements_max=3,
    objects_max=4,
    rounds=((2, 6),),
    gap_seconds=0.7,
    tail_seconds=3.0,
    settle_step_seconds=1.0,
    rest_every=64,
    draw=faults.draw_brief,
)
WIDE = Size(
    "wide",
    depths=(1, 2),
    regions=(1, 2),
    edges=(1, 2),
    edges_max=9,
    locations=(1, 3),
    placements=(1, 3),
    placements_max=4,
    objects_max=6,
    rounds=((4, 12), (0, 0), (0, 4)),
    gap_seconds=5.0,
    tail_seconds=60.0,
    settle_step_seconds=25.0,
    rest_every=4,
    draw=faults.draw_uneven,
    brief=False,
)
DEEP = replace(WIDE, name="deep", depths=(2, 3), rounds=((4, 12), (0, 4)))
BUSY = replace(SMALL, name="busy", edges=(2, 3), edges_max=4, rounds=((3, 12),))
ROLLING = replace(BUSY, name="rolling", draw=faults.draw_rolling, rolling=True)
SIZES = {size.name: size for size in (TINY, SMALL, WIDE, DEEP, BUSY, ROLLING)}


def seed_of(name: str) -> tuple[Size, int]:
    """The size and the number of a seed's name; raises ValueError."""
    size, _, number = name.rpartition(":")
    if size and size not in SIZES:
        raise ValueError(f"no size {size!r}: one of {', '.join(SIZES)}")
    return SIZES[size or "wide"], number_of(number)


def number_of(text: str) -> int:
    """The number of a seed; raises ValueError."""
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise ValueError(f"{text!r} is not the number of a seed, as 17 is in small:17")
    return int(text)
