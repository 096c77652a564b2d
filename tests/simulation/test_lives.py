"""Lives that chance leads to too rarely keep every law, too."""

import pytest

from tests.simulation.lives import LIVES, play


@pytest.mark.parametrize("life", LIVES)
def test_every_law_holds_in_the_life(life):
    outcome = play(f"{life}:0")
    assert not outcome.law, str(outcome)
