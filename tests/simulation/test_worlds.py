"""Lives that chance leads to too rarely keep every law, too."""

import pytest

from tests.simulation.worlds import WORLDS, play

SEEDS = 3


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("world", WORLDS)
def test_every_law_holds_in_the_world(world, seed):
    outcome = play(f"{world}:{seed}")
    assert not outcome.law, str(outcome)
