"""Lives written out, that chance leads to too rarely: a few steps each, and what must follow.

`play("month_away:2")` plays one on the tree of a seed, under the same laws as every other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.simulation import (
    lives_centre,
    lives_customizing,
    lives_decided,
    lives_hostile,
    lives_keys,
    lives_maintenance,
    lives_moves,
    lives_order,
    lives_removals,
    lives_rollouts,
    lives_rows,
    lives_schedules,
    lives_sealing,
)
from tests.simulation.faults import NO_FAULTS
from tests.simulation.ports import HONEST, Ports
from tests.simulation.run import Outcome, Run, broken_by
from tests.simulation.scenes import P1, P2, A, B, C, everywhere, put
from tests.simulation.signatures import cheap_signatures
from tests.simulation.sizes import SMALL

ROOMS = (
    lives_centre,
    lives_moves,
    lives_order,
    lives_hostile,
    lives_keys,
    lives_maintenance,
    lives_schedules,
    lives_customizing,
    lives_rows,
    lives_rollouts,
    lives_decided,
    lives_removals,
    lives_sealing,
)
LIVES: dict[str, Callable[[Run], None]] = {
    life.__name__: life for room in ROOMS for life in room.LIVES
}
TREE = replace(SMALL, edges=(2, 3), edges_max=4)
"""One region, and at least two edges below it."""


def play(name: str, *, story: bool = False, ports: Ports = HONEST) -> Outcome:
    """Play a life on the tree of a seed: `life:seed`."""
    life, _, seed = name.partition(":")
    with cheap_signatures():
        one = Run(f"life {seed}", NO_FAULTS, TREE, story=story, ports=ports)
        law, what = broken_by(lambda: _play(one, LIVES[life]))
        one.close()
    told, trace = one.world.story or [], one.world.trace()
    return Outcome(int(seed), life, trace, one.world.now, law, what, story=told)


def is_life(name: str) -> bool:
    """Whether this names a life, not a seed of some size."""
    return name.partition(":")[0] in LIVES


def _play(one: Run, life: Callable[[Run], None]) -> None:
    one.build()
    for name in list(one.centre.model.placements):
        put(one, name, None)
    everywhere(one, P1, A, B)
    everywhere(one, P2, C)
    one.settle()
    life(one)
    one.world.heal_all()
    one.settle()
    one.rest()
