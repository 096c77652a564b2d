"""Lives written out, that chance leads to too rarely: a few steps each, and what must follow.

`play("withheld:2")` plays one on the tree of a seed, under the same laws as every other.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.simulation import blind_lives, broken_paths, exchanges, identities, sweeps
from tests.simulation.faults import NO_FAULTS
from tests.simulation.run import Outcome, Run, broken_by
from tests.simulation.scenes import A, B, C, everywhere, put
from tests.simulation.signatures import cheap_signatures
from tests.simulation.sizes import SMALL

LIVES = (
    broken_paths.withheld,
    broken_paths.outdated,
    broken_paths.old_index,
    broken_paths.no_end,
    broken_paths.other_body,
    broken_paths.told_lies,
    broken_paths.refused,
    broken_paths.lost_content,
    broken_paths.lost_on_the_way,
    broken_paths.lost_reports,
    identities.twins,
    identities.deaf_twins,
    identities.lying_child,
    identities.moved,
    identities.away,
    identities.old_backup,
    identities.old_relay,
    identities.swept,
    exchanges.exchanged,
    exchanges.exchanged_by_halves,
    exchanges.relocated,
    sweeps.superseded,
    sweeps.come_again,
)
WORLDS: dict[str, Callable[[Run], None]] = {life.__name__: life for life in LIVES}
WORLDS |= dict.fromkeys(blind_lives.LIVES, Run.settle)


def play(name: str, *, story: bool = False) -> Outcome:
    """Play a world on the tree of a seed: `world:seed`."""
    world, _, seed = name.partition(":")
    with cheap_signatures():
        if world in blind_lives.LIVES:
            blind = blind_lives.new(seed, story=story)
            one: Run = blind
            law, what = broken_by(lambda: blind_lives.live(blind, world))
        else:
            one = Run(f"world {seed}", NO_FAULTS, SMALL, story=story)
            law, what = broken_by(lambda: _play(one, WORLDS[world]))
    told, trace = one.world.story or [], one.world.trace()
    return Outcome(int(seed), world, trace, one.world.now, law, what, story=told)


def is_world(name: str) -> bool:
    """Whether this names a world, not a seed of some size."""
    return name.partition(":")[0] in WORLDS


def _play(one: Run, life: Callable[[Run], None]) -> None:
    one.build()
    for name in list(one.centre.model.placements):
        put(one, name, None)
    everywhere(one, "p1", A, B)
    everywhere(one, "p2", C)
    one.settle()
    life(one)
    one.world.heal_all()
    one.settle()
    one.rest()
