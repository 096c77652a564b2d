"""When a node reports, and when it waits."""

import itertools

import pytest

from relay.core.reports.throttle import (
    BUSY_MAIL,
    BUSY_REPORTS,
    GATHER_MAX_SECONDS,
    GATHER_SECONDS,
    ReportThrottle,
)
from schemas.values.identity import short_key

KEY = short_key(bytes(20))


def test_what_changes_is_gathered_in_one_window():
    throttle = ReportThrottle()
    throttle.gather(1.0)
    throttle.gather(1.0 + GATHER_SECONDS / 2)
    assert throttle.ends == 1.0 + GATHER_SECONDS
    assert not throttle.is_over(1.0)
    assert throttle.is_over(1.0 + GATHER_SECONDS)


def test_what_was_waited_for_is_said_at_once_but_not_more_often_than_windows_end():
    throttle = ReportThrottle()
    throttle.gather(1.0)
    throttle.hurry(1.01)
    assert throttle.is_over(1.01)
    throttle.close(1.01)
    throttle.hurry(1.02)
    throttle.assert_invariants()
    assert not throttle.is_over(1.02)
    assert throttle.ends == pytest.approx(1.01 + GATHER_SECONDS)


def test_what_is_told_alone_waits_for_nothing_and_windows_do_not_come_closer():
    throttle = ReportThrottle()
    throttle.tell(1.0)
    assert throttle.is_over(1.0)
    throttle.close(1.0)
    throttle.tell(1.02)
    assert throttle.ends == pytest.approx(1.0 + GATHER_SECONDS)
    for number in range(BUSY_REPORTS + 1):
        throttle.heard(f"c{number}", KEY)
    throttle.close(1.0 + GATHER_SECONDS)
    throttle.tell(1.0 + GATHER_SECONDS)
    assert throttle.ends == pytest.approx(1.0 + 3 * GATHER_SECONDS)


def test_windows_grow_under_load_and_shrink_again():
    throttle, now, lengths = ReportThrottle(), 0.0, []
    for reports in [BUSY_REPORTS + 1] * 8 + [0]:
        for number in range(reports):
            throttle.heard(f"c{number}", KEY)
        throttle.gather(now)
        throttle.close(now)
        throttle.gather(now)
        lengths.append(throttle.ends - now)
        throttle.close(now)
        for number in range(reports):
            throttle.heard(f"c{number}", KEY)
        throttle.gather(now)
        now += throttle.ends - now
        throttle.close(now)
    assert lengths[0] == pytest.approx(2 * GATHER_SECONDS)
    assert max(lengths) <= GATHER_MAX_SECONDS
    assert lengths[-1] == pytest.approx(GATHER_SECONDS)


def test_one_child_alone_makes_no_window_longer_whatever_it_says():
    throttle = ReportThrottle()
    for number in range(10 * BUSY_REPORTS):
        throttle.heard("loud", f"s{number}")
        throttle.heard("louder", KEY)
    throttle.gather(1.0)
    throttle.close(1.0)
    throttle.gather(1.0)
    assert throttle.ends == pytest.approx(1.0 + GATHER_SECONDS)


@pytest.mark.parametrize("children", [2, 3, 5])
def test_a_few_children_that_report_much_make_windows_longer(children):
    throttle = ReportThrottle()
    for slot in range(BUSY_REPORTS // children + 1):
        for child in range(children):
            throttle.heard(f"c{child}", f"s{slot}")
    throttle.close(1.0)
    throttle.gather(1.0)
    assert throttle.ends == pytest.approx(1.0 + 2 * GATHER_SECONDS)


@pytest.mark.parametrize(("only_child", "times"), [(True, 2), (False, 1)])
def test_an_only_child_that_reports_much_makes_windows_longer(only_child, times):
    throttle = ReportThrottle()
    for slot in range(BUSY_REPORTS):
        throttle.heard("c", f"s{slot}")
    throttle.close(1.0, only_child=only_child)
    throttle.gather(1.0)
    assert throttle.ends == pytest.approx(1.0 + times * GATHER_SECONDS)


def test_a_destination_at_work_is_reported_when_it_is_done():
    throttle = ReportThrottle()
    assert throttle.waits(KEY, 1.0, at_work=True)
    assert throttle.close(1.5) == {KEY: None}
    assert not throttle.waits(KEY, 1.5, at_work=False)
    assert throttle.close(1.5) == {}


def test_a_destination_long_at_work_is_reported_as_pending():
    throttle = ReportThrottle()
    assert throttle.waits(KEY, 1.0, at_work=True)
    assert throttle.ends == 1.0 + GATHER_MAX_SECONDS
    throttle.close(throttle.ends)
    assert not throttle.waits(KEY, 1.0 + GATHER_MAX_SECONDS, at_work=True)
    assert throttle.ends is None


def test_a_backlog_of_mail_puts_a_report_off_but_not_for_longer_than_the_longest_window():
    throttle = ReportThrottle()
    throttle.gather(1.0)
    assert not throttle.put_off(1.1, BUSY_MAIL - 1)
    assert throttle.put_off(1.1, BUSY_MAIL)
    assert not throttle.is_over(1.1)
    assert not throttle.put_off(1.0 + GATHER_MAX_SECONDS, BUSY_MAIL)


def test_mail_goes_before_what_was_waited_for_too():
    throttle = ReportThrottle()
    throttle.hurry(1.0)
    assert throttle.put_off(1.0, BUSY_MAIL)
    throttle.hurry(1.01)
    assert throttle.is_over(1.01)
    assert not throttle.put_off(1.01, BUSY_MAIL - 1)
    assert not throttle.put_off(1.0 + GATHER_MAX_SECONDS, BUSY_MAIL)


def test_one_that_always_has_something_at_work_says_its_progress_in_the_longest_window():
    throttle, said = ReportThrottle(), [0.0]
    keys = [short_key(bytes(19) + bytes([at])) for at in range(60)]
    for second in range(60):
        # Each is at work for three seconds.
        dirty = {keys[second]: None} | throttle.close(second)
        for key in dirty:
            throttle.waits(key, second, at_work=second < keys.index(key) + 3)
        throttle.assert_invariants()
        if not throttle.is_waiting:
            said.append(second)
    gaps = [later - before for before, later in itertools.pairwise(said)]
    assert max([*gaps, 60 - said[-1]]) <= GATHER_MAX_SECONDS + 1
