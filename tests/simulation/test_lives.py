"""Lives that chance leads to too rarely keep every law, too."""

import pytest

from tests.simulation.lives import LIVES, play

SEEDS = 2


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("life", LIVES)
def test_every_law_holds_in_the_life(life, seed):
    outcome = play(f"{life}:{seed}")
    assert not outcome.law, str(outcome)
