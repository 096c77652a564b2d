"""When the centre signs, in virtual time: laws of the schedule, whatever changes and holds come."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.core.ledger.snapshots import (
    HOLD_SECONDS,
    INTERVAL_SECONDS,
    RENEWAL_SECONDS,
    SETTLING_SECONDS,
)
from schemas.records.snapshots import mail_entry_key
from schemas.values.identity import mail_key
from tests.property.examples import examples
from tests.unit.test_snapshot_issuer import Centre

KEYS = [mail_entry_key(mail_key("api", "space", "", str(n))) for n in range(4)]
EVENTS = st.lists(
    st.tuples(
        st.floats(0, 5) | st.sampled_from([0.1, 0.3, 1.0, 2.0, 30.0, 700.0]),
        st.sampled_from(["add", "take", "delete", "hold", "release"]),
        st.integers(0, 3),
    ),
    max_size=30,
)


def run(events):
    """Sign whenever it is due; at the end, for as long as anything is still open."""
    centre, now = Centre(), 0.0
    issued_at, taken_at, deleted_at, drops, held = {}, {}, {}, [], []

    def sign_until(begin, end):
        while (at := max(centre.issuer.due, begin)) <= end:
            drops.extend((at, deleted_at.pop(key)) for key in centre.sign(at).dropped)

    for wait, what, number in events:
        sign_until(now, now + wait)
        now += wait
        key = KEYS[number]
        if what in ("add", "take"):
            generation = centre.issue(key, now, takes_away=what == "take")
            issued_at[generation] = now
            if what == "take":
                taken_at[generation] = now
            deleted_at.pop(key, None)
        elif what == "delete":
            centre.issuer.deleted(key, now=now)
            deleted_at.setdefault(key, now)
        elif what == "hold":
            centre.issuer.pause(str(number), now=now)
            if not any(name == str(number) and now < end for name, _, end in held):
                held.append([str(number), now, now + HOLD_SECONDS])
        else:
            centre.issuer.resume(str(number))
            held = [[n, b, min(end, now) if n == str(number) else end] for n, b, end in held]
        centre.issuer.assert_invariants()
    sign_until(now, now + RENEWAL_SECONDS + HOLD_SECONDS)
    return centre, issued_at, taken_at, deleted_at, drops, held


@settings(max_examples=examples(300))
@given(EVENTS)
def test_at_most_one_each_second_and_at_least_one_every_ten_minutes(events):
    centre, *_ = run(events)
    times = [at for at, _ in centre.snapshots]
    gaps = [after - before for before, after in pairwise(times)]
    assert times[0] == 0
    assert all(INTERVAL_SECONDS * 0.999 <= gap <= RENEWAL_SECONDS * 1.001 for gap in gaps)


@settings(max_examples=examples(300))
@given(EVENTS)
def test_settled_never_falls_and_covers_nothing_younger_than_two_seconds_or_during_a_hold(events):
    centre, issued_at, _, _, _, held = run(events)
    settled = [record.settled for _, record in centre.snapshots]
    assert settled == sorted(settled)
    for at, record in centre.snapshots:
        covered = [when for generation, when in issued_at.items() if generation <= record.settled]
        assert all(when + SETTLING_SECONDS <= at for when in covered)
        running = [began for _, began, ended in held if began <= at < ended]
        assert all(when < began for when in covered for began in running)


@settings(max_examples=examples(300))
@given(EVENTS)
def test_a_deletion_is_dropped_after_two_seconds_and_never_during_a_hold_that_was_on(events):
    _, _, _, left, drops, held = run(events)
    assert left == {}
    for at, deleted in drops:
        assert deleted + SETTLING_SECONDS <= at
        assert not any(began < deleted + SETTLING_SECONDS and at < end for _, began, end in held)


@settings(max_examples=examples(300))
@given(EVENTS)
def test_what_takes_is_settled_within_three_seconds_without_a_hold_and_by_a_minute_more_with(
    events,
):
    centre, _, taken_at, _, drops, held = run(events)
    slack = SETTLING_SECONDS + INTERVAL_SECONDS + (HOLD_SECONDS if held else 0) + 0.001
    assert all(at <= deleted + slack for at, deleted in drops)
    for generation, when in taken_at.items():
        assert any(
            record.settled >= generation and at <= when + slack for at, record in centre.snapshots
        )


def test_under_steady_change_removals_still_happen_within_seconds():
    centre, dropped = Centre(), {}
    for step in range(6000):
        now = step / 100
        while centre.issuer.due <= now:
            at = centre.issuer.due
            dropped |= dict.fromkeys(centre.sign(at).dropped, at)
        if step % 100:
            centre.issue(KEYS[step % 3], now, takes_away=step % 7 == 0)
        elif step == 2000:
            centre.issuer.deleted(KEYS[3], now=now)
        elif step == 100:
            centre.issue(KEYS[3], now)
    assert SETTLING_SECONDS <= dropped[KEYS[3]] - 20 <= SETTLING_SECONDS + INTERVAL_SECONDS
    assert len(centre.snapshots) >= 55
    for _, record in centre.snapshots[5:]:
        assert 190 <= record.generation - record.settled <= 210
