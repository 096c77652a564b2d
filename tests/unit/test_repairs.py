"""Repairs of one object: at once at first, then ever more rarely."""

from itertools import pairwise

from relay.syncer.repairs import Repairs
from schemas.objects.objects import ObjectKey

KEY = ObjectKey("", "configmaps", "shop", "a")


def repair_for(repairs, start, seconds):
    """Repair whenever it may be, for so long, and say when that was."""
    now, made = start, []
    while (due := repairs.due(KEY, now)) < start + seconds:
        made.append(due)
        repairs.made(KEY, due)
        now = due + 0.1
    return made


def test_a_few_repairs_are_made_at_once():
    assert len([at for at in repair_for(Repairs(), 100.0, 3600) if at < 101]) == 5


def test_a_war_of_writes_is_waged_ever_more_rarely():
    made = repair_for(Repairs(), 0.0, 7200)
    pauses = [round(b - a) for a, b in pairwise(made[4:])]
    assert pauses[:5] == [60, 120, 240, 480, 600]
    assert set(pauses[5:]) == {600}


def test_repairs_now_and_then_are_always_made_at_once():
    repairs = Repairs()
    for at in range(0, 36000, 30):
        assert repairs.due(KEY, at) == at
        repairs.made(KEY, at)


def test_an_object_that_was_calm_is_repaired_at_once_again():
    repairs = Repairs()
    last = repair_for(repairs, 0.0, 3600)[-1]
    assert repairs.due(KEY, last + 1) > last + 1
    assert repairs.due(KEY, last + 1201) == last + 1201
    assert not repairs._by_object
