"""Who is heard next: fair, bounded, and nobody waits while nothing else is to be done."""

from hypothesis import given
from hypothesis import strategies as st

from relay.shell.fair_shares import (
    ALLOWED_SHARE,
    HEAVY_SHARE,
    REMEMBERED_SECONDS,
    SLICE_SECONDS,
    FairShares,
)

COSTS = st.floats(1e-6, 0.02)


def heavy_ones(names, each=0.001):
    shares = FairShares()
    for name in names:
        shares.took(name, 64, 64 * each, 0.0)
    return shares


def test_who_costs_little_is_never_heavy():
    shares = FairShares()
    for second in range(100):
        shares.took("quiet", 1, 0.9 * ALLOWED_SHARE, float(second))
        assert not shares.heavy(float(second))


def test_who_cost_much_is_heavy_for_some_seconds_and_then_no_more():
    shares = heavy_ones(["loud"])
    assert shares.heavy(0.0) == ["loud"]
    assert not shares.heavy(REMEMBERED_SECONDS / ALLOWED_SHARE)


@given(st.lists(COSTS, min_size=1, max_size=60), st.floats(1e-5, 0.01))
def test_while_others_work_all_heavy_ones_together_have_their_share_and_no_more(costs, others):
    shares, names = heavy_ones("abc"), []
    heavy, all_else = 0.0, 0.0
    for cost in costs:
        while not shares.admits_heavy:
            shares.others_took(others)
            all_else += others
        [name, *_] = shares.heavy(0.0)
        names.append(name)
        shares.took(name, 1, cost, 0.0)
        shares.took_heavy(cost)
        heavy += cost
    # Beside what it began with, and what the last turn took too much.
    room = all_else * HEAVY_SHARE / (1 - HEAVY_SHARE)
    assert heavy <= room + SLICE_SECONDS + costs[-1] + 1e-9
    # By turns: nobody is heard twice before each of the others was.
    assert names == [names[at % 3] for at in range(len(names))]
    assert len(set(names[:3])) == min(3, len(names))


@given(COSTS)
def test_who_costs_most_is_not_held_up_when_nobody_else_has_anything_to_do(cost):
    shares = heavy_ones("a")
    for _ in range(100):
        shares.idle()
        assert shares.admits_heavy
        shares.took("a", 1, cost, 0.0)
        shares.took_heavy(cost)


@given(st.floats(1e-7, 0.1))
def test_a_turn_takes_a_slice_and_at_least_one_word(each):
    shares = FairShares()
    for _ in range(50):
        shares.took("a", 10, 10 * each, 0.0)
    words = shares.slice_of("a")
    assert words >= 1
    assert words == 1 or words * each <= 1.01 * SLICE_SECONDS
