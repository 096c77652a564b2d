"""When a node reports, and when it waits."""

import pytest

from relay.core.windows import (
    BUSY_MAIL,
    BUSY_REPORTS,
    GATHER_MAX_SECONDS,
    GATHER_SECONDS,
    Windows,
)
from schemas.identity import short_key

KEY = short_key(bytes(20))


def test_what_changes_is_gathered_in_one_window():
    windows = Windows()
    windows.gather(1.0)
    windows.gather(1.0 + GATHER_SECONDS / 2)
    assert windows.ends == 1.0 + GATHER_SECONDS
    assert not windows.is_over(1.0)
    assert windows.is_over(1.0 + GATHER_SECONDS)


def test_what_was_waited_for_is_said_at_once_but_not_more_often_than_windows_end():
    windows = Windows()
    windows.gather(1.0)
    windows.hurry(1.01)
    assert windows.is_over(1.01)
    windows.close(1.01)
    windows.hurry(1.02)
    assert not windows.is_over(1.02)
    assert windows.ends == pytest.approx(1.01 + GATHER_SECONDS)


def test_windows_grow_under_load_and_shrink_again():
    windows, now, lengths = Windows(), 0.0, []
    for reports in [BUSY_REPORTS + 1] * 8 + [0]:
        for _ in range(reports):
            windows.heard()
        windows.gather(now)
        windows.close(now)
        windows.gather(now)
        lengths.append(windows.ends - now)
        windows.close(now)
        for _ in range(reports):
            windows.heard()
        windows.gather(now)
        now += windows.ends - now
        windows.close(now)
    assert lengths[0] == pytest.approx(2 * GATHER_SECONDS)
    assert max(lengths) <= GATHER_MAX_SECONDS
    assert lengths[-1] == pytest.approx(GATHER_SECONDS)


def test_a_destination_at_work_is_reported_when_it_is_done():
    windows = Windows()
    assert windows.waits(KEY, 1.0, at_work=True)
    assert windows.close(1.5) == {KEY: None}
    assert not windows.waits(KEY, 1.5, at_work=False)
    assert windows.close(1.5) == {}


def test_a_destination_long_at_work_is_reported_as_pending():
    windows = Windows()
    assert windows.waits(KEY, 1.0, at_work=True)
    assert windows.ends == 1.0 + GATHER_MAX_SECONDS
    windows.close(windows.ends)
    assert not windows.waits(KEY, 1.0 + GATHER_MAX_SECONDS, at_work=True)
    assert windows.ends is None


def test_a_backlog_of_mail_puts_a_report_off_but_not_for_longer_than_the_longest_window():
    windows = Windows()
    windows.gather(1.0)
    assert not windows.put_off(1.1, BUSY_MAIL - 1)
    assert windows.put_off(1.1, BUSY_MAIL)
    assert not windows.is_over(1.1)
    assert not windows.put_off(1.0 + GATHER_MAX_SECONDS, BUSY_MAIL)


def test_what_was_waited_for_is_said_in_the_midst_of_a_backlog():
    windows = Windows()
    windows.gather(1.0)
    windows.hurry(1.05)
    assert not windows.put_off(1.1, BUSY_MAIL)
