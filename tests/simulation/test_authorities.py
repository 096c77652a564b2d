"""A change of the certificate authority cuts nobody off, and each planted fault is found."""

import pytest

from tests.simulation.authorities import live
from tests.simulation.planted_authorities import PLANTED
from tests.simulation.world import LawBroken

SEEDS, SEEDS_TO_KILL = 300, 40


def test_nobody_is_cut_off_and_each_change_ends_however_often_the_centre_does():
    changes = 0
    for seed in range(SEEDS):
        changes += live(seed).made - 1
    assert changes == 3 * SEEDS


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault):
    for seed in range(SEEDS_TO_KILL):
        try:
            live(seed, PLANTED[fault])
        except LawBroken:
            return
    raise AssertionError(f"{fault}: it survives {SEEDS_TO_KILL} seeds")
