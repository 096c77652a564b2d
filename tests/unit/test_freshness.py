"""A view is old by how the newest snapshot's time lags, whatever the clocks say."""

from relay.core.records.snapshot import STALE_AFTER_SECONDS, ViewAge
from relay.core.records.tree import SnapshotTree
from schemas.records.snapshots import SnapshotRecord
from schemas.values.wire import replace
from tests.snapshots import record_of


def signed(generation: int, time_ms: int, reign: int = 0) -> SnapshotRecord:
    return replace(record_of(SnapshotTree.empty(), generation, reign), time_ms=time_ms)


def renewed(view: ViewAge, generation: int, now: float, ahead: float) -> None:
    """The centre, whose clock is `ahead` of the node's, shows a snapshot made now."""
    view.observe(signed(generation, int((now + ahead) * 1000)), now)


def test_a_view_is_stale_once_no_newer_snapshot_is_shown_for_long():
    view = ViewAge(0.0)
    renewed(view, 1, 0.0, 500.0)
    renewed(view, 1, 600.0, 500.0 - 600.0)

    assert not view.stale(STALE_AFTER_SECONDS - 1)
    assert view.stale(STALE_AFTER_SECONDS)


def test_a_clock_of_the_centre_that_is_set_back_makes_no_view_stale():
    view = ViewAge(0.0)
    renewed(view, 1, 0.0, 5000.0)
    renewed(view, 2, 600.0, 0.0)

    assert not view.stale(600.0 + STALE_AFTER_SECONDS - 1)
    assert view.stale(600.0 + STALE_AFTER_SECONDS)


def test_an_older_snapshot_that_is_shown_late_changes_nothing():
    view = ViewAge(0.0)
    renewed(view, 2, 600.0, 0.0)
    view.observe(signed(1, 0), 1700.0)

    assert view.stale(600.0 + STALE_AFTER_SECONDS)


def test_a_snapshot_of_a_later_reign_is_news_whatever_its_generation():
    view = ViewAge(0.0)
    renewed(view, 9, 0.0, 0.0)
    view.observe(signed(1, 600_000, reign=1), 600.0)

    assert not view.stale(600.0 + STALE_AFTER_SECONDS - 1)
