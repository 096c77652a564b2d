"""A view is old by how the newest snapshot's time lags, whatever the clocks say."""

from relay.core.records.freshness import STALE_AFTER_SECONDS, ViewAge


def renewed(view: ViewAge, generation: int, now: float, ahead: float) -> None:
    """The centre, whose clock is `ahead` of the node's, shows a snapshot made now."""
    view.observe(generation, int((now + ahead) * 1000), now)


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
    view.observe(1, 0, 1700.0)

    assert view.stale(600.0 + STALE_AFTER_SECONDS)
