"""How often a placement's status is written, however many destinations report."""

from itertools import pairwise

import pytest

from controllers.core.status.facts import PlacementFacts
from controllers.core.status.pacing import GAP_SECONDS_MAX, QUIET_SECONDS, Pacing
from controllers.core.status.status import placement_status
from schemas.reports.reports import Count, Summary

START_MS = 1_800_000_000_000


def roll_out(destinations, seconds, pacing, begin=100.0):
    """The writes of one change that each destination reports in turn, and the last status."""
    step = seconds / destinations
    known = Summary({"synced": destinations}, {"healthy": destinations}, {"a": destinations})
    whole = Count(known, exact=True)
    status = placement_status(PlacementFacts(1, 1, selected=1), whole, None, START_MS)
    writes, now, count = [], begin, 0
    while now <= begin + seconds + 2:
        count = min(destinations, int((now - begin) / step))
        states = {"synced": count, "pending": destinations - count}
        counted = Summary(states, {"healthy": count}, {"b": count})
        summary = Count(counted, count == destinations)
        facts = PlacementFacts(1, 1, selected=1)
        wanted = placement_status(facts, summary, status, START_MS + int(now * 1000))
        if wanted != status and pacing.due("shop", status, wanted, summary, now) <= now:
            pacing.written("shop", now)
            writes.append(now - begin)
            status = wanted
        now += min(step, 0.05)
    return writes, status


@pytest.mark.parametrize("seconds", [0.5, 4.5])
def test_a_change_is_written_as_often_at_ten_destinations_as_at_a_thousand(seconds):
    few, _ = roll_out(10, seconds, Pacing())
    many, status = roll_out(1000, seconds, Pacing())
    assert len(few) == len(many) == 2
    assert many[0] == pytest.approx(0, abs=0.1)
    assert many[-1] == pytest.approx(seconds, abs=0.1)
    assert (status["synced"], status["complete"]) == (1000, True)


def test_a_slow_change_is_written_ever_more_seldom():
    writes, _ = roll_out(1000, 120, Pacing())
    gaps = [later - sooner for sooner, later in pairwise(writes)]
    assert len(writes) < 14
    assert max(gaps) <= GAP_SECONDS_MAX + 0.1


def test_changes_one_after_the_other_are_each_told_at_once():
    pacing = Pacing()
    for begin in (100.0, 100.7, 101.4):
        writes, _ = roll_out(100, 0.5, pacing, begin)
        assert len(writes) == 2
        assert writes[0] < 0.1


def test_counts_are_exact_soon_after_the_last_report_also_if_something_fails():
    pacing = Pacing()
    facts = PlacementFacts(1, 1, selected=1)
    former = Count(Summary({"synced": 8, "failing": 2}, {"healthy": 8}), exact=True)
    before = placement_status(facts, former, None, START_MS)
    assert pacing.due("shop", None, before, former, 10.0) <= 10.0
    pacing.written("shop", 10.0)
    better = Count(Summary({"synced": 9, "failing": 1}, {"healthy": 9}), exact=True)
    wanted = placement_status(facts, better, before, START_MS)
    assert pacing.due("shop", before, wanted, better, 10.1) == pytest.approx(10.1 + QUIET_SECONDS)
    assert pacing.due("shop", before, wanted, better, 10.7) <= 10.7


def test_what_is_no_count_waits_for_nothing():
    pacing = Pacing()
    summary = Count(Summary({"synced": 1}, {"healthy": 1}), exact=True)
    before = placement_status(PlacementFacts(1, 1, selected=1), summary, None, START_MS)
    pacing.due("shop", None, before, summary, 10.0)
    pacing.written("shop", 10.0)
    for facts in (
        PlacementFacts(2, 1, selected=1),
        PlacementFacts(1, 1, selected=2),
        PlacementFacts(1, 1, selected=1, removal_held="2 of 3 would go"),
    ):
        wanted = placement_status(facts, summary, before, START_MS)
        assert pacing.due("shop", before, wanted, summary, 10.01) <= 10.01
