"""A link is cut for another address of the parent where nothing answers, and ever less often."""

from itertools import pairwise

from leafcast.node.redialling import REDIAL_SECONDS, REDIAL_SECONDS_MAX, SPREAD, Redialling

HOUR = 3600


class Dice:
    def __init__(self, thrown=0.0):
        self.thrown = thrown

    def fraction(self):
        return self.thrown


def cuts(redialling, seconds, *, is_linked=False, is_silent=True, since=0):
    """When it is due, looked at each second."""
    return [
        now
        for now in range(since, since + seconds)
        if redialling.is_due(now, is_linked=is_linked, is_silent=is_silent)
    ]


def test_where_the_parent_refuses_or_there_is_no_link_nothing_is_cut():
    assert cuts(Redialling(Dice()), HOUR, is_silent=False) == []
    assert cuts(Redialling(Dice()), HOUR, is_linked=True) == []


def test_where_nothing_answers_another_address_is_dialled_and_then_ever_less_often():
    found = cuts(Redialling(Dice()), HOUR)
    assert found[0] == REDIAL_SECONDS
    pauses = [later - sooner for sooner, later in pairwise(found)]
    assert pauses[0] == 2 * REDIAL_SECONDS
    assert all(later in (2 * sooner, REDIAL_SECONDS_MAX) for sooner, later in pairwise(pauses))
    assert pauses[-1] == REDIAL_SECONDS_MAX


def test_children_that_lost_one_parent_do_not_cut_in_step():
    first = {cuts(Redialling(Dice(thrown / 10)), HOUR)[0] for thrown in range(10)}
    assert len(first) > 5
    assert max(first) <= REDIAL_SECONDS * (1 + SPREAD)


def test_a_link_that_came_back_begins_with_a_short_pause_again():
    redialling = Redialling(Dice())
    cuts(redialling, HOUR)
    assert cuts(redialling, 1, is_linked=True, since=HOUR) == []
    assert cuts(redialling, 20, since=HOUR + 1) == [HOUR + 1 + REDIAL_SECONDS]


def test_what_refuses_at_first_and_falls_silent_then_is_left():
    redialling = Redialling(Dice())
    assert cuts(redialling, 60, is_silent=False) == []
    assert len(cuts(redialling, 30, since=60)) == 1
