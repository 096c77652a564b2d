"""When a gate's windows are open: cron lines, zones, and what happens when clocks change."""

from datetime import UTC, datetime

import pytest

from schemas.records.windows import (
    Window,
    is_open,
    next_opening,
    window_fault,
    zone_fault,
    zone_of,
)

NIGHTS = Window("0 2 * * 2-5", 3 * 3600, "Europe/Berlin")


def ms(text):
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("at", "opens"),
    [
        ("2026-07-07T23:59:59", False),
        ("2026-07-08T00:00:00", True),
        ("2026-07-08T02:59:59", True),
        ("2026-07-08T03:00:00", False),
        ("2026-07-05T01:00:00", False),
    ],
)
def test_a_window_is_open_from_its_time_on_as_long_as_it_lasts(at, opens):
    """Berlin is two hours ahead in summer; 5 July 2026 is a Sunday."""
    assert is_open([NIGHTS], {}, ms(at)) is opens


def test_without_a_zone_it_goes_by_the_destinations_own():
    window = Window("0 2 * * *", 3600)
    at = ms("2026-07-08T17:30:00")
    assert is_open([window], {"zone": "Asia.Tokyo"}, at)
    assert not is_open([window], {"zone": "Europe.Berlin"}, at)
    assert str(zone_of({"zone": "America.New_York"})) == "America/New_York"


@pytest.mark.parametrize("labels", [{}, {"zone": "Mars"}, {"zone": "Europe"}, {"zone": "..x"}])
def test_a_destination_without_zone_waits_and_is_told_what_to_do(labels):
    window = Window("* * * * *", 3600)
    assert not is_open([window], labels, 0)
    assert next_opening([window], labels, 0) is None
    assert "Europe.Berlin" in str(zone_fault([window], labels))
    assert zone_fault([NIGHTS], labels) is None


def test_the_next_opening_is_the_first_of_all_windows():
    later = Window("0 4 * * *", 3600, "UTC")
    assert next_opening([later, NIGHTS], {}, ms("2026-07-07T12:00:00")) == ms("2026-07-08T00:00:00")
    assert next_opening([later], {}, ms("2026-07-07T04:00:00")) == ms("2026-07-08T04:00:00")


def test_a_time_that_a_change_of_clocks_leaves_out_comes_at_once_after_it():
    """On 29 March 2026 Berlin goes from 2:00 to 3:00."""
    window = Window("30 2 * * *", 3600, "Europe/Berlin")
    assert not is_open([window], {}, ms("2026-03-29T00:59:59"))
    assert is_open([window], {}, ms("2026-03-29T01:00:00"))
    assert not is_open([window], {}, ms("2026-03-29T02:00:00"))


def test_a_time_in_the_hour_that_comes_twice_comes_once():
    """On 25 October 2026 Berlin goes from 3:00 back to 2:00."""
    window = Window("30 2 * * *", 600, "Europe/Berlin")
    assert is_open([window], {}, ms("2026-10-25T00:30:00"))
    assert not is_open([window], {}, ms("2026-10-25T01:30:00"))


@pytest.mark.parametrize(
    ("window", "said"),
    [
        (Window("0 2 * *", 60, "UTC"), "no cron line"),
        (Window("0 0 2 * * *", 60, "UTC"), "no cron line"),
        (Window("0 26 * * *", 60, "UTC"), "no cron line"),
        (Window("0 0 30 2 *", 60, "UTC"), "day-of-month"),
        (Window("0 0 * * *", 0, "UTC"), "a window lasts"),
        (Window("0 0 * * *", 32 * 86_400, "UTC"), "a window lasts"),
        (Window("0 0 * * *", 60, "Mars/Base"), "no time zone"),
    ],
)
def test_a_window_that_never_opens_says_why(window, said):
    assert said in str(window_fault(window))
    assert not is_open([window], {}, 0)
    assert next_opening([window], {}, 0) is None


def test_a_window_that_opens_has_no_fault():
    assert window_fault(NIGHTS) is None
    assert window_fault(Window("0 2 * * 2-5", 3600)) is None
