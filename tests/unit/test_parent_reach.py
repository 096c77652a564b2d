"""Which member of a relay is active where one of them alone is cut off from the parent."""

import asyncio
from types import SimpleNamespace
from unittest.mock import AsyncMock, Mock

import pytest

from leafcast.join import relay_member
from leafcast.join.relay_member import REACHES
from leafcast.members.member_node import Standing
from leafcast.node.member_forms import STORE_FULL
from relay.adapters.jetstream.lease_stream import LeaseKeeper
from relay.adapters.jetstream.member_presence import CLOCK_TROUBLE, MEMBER, MemberPresence
from relay.members.lease import LeaseNote, LeaseSeen, MemberLease
from relay.members.parent_reach import (
    ASIDE_SECONDS,
    CUT_OFF_SECONDS,
    IN_VAIN_MAX,
    REACHES_SECONDS,
    TAKEN_SECONDS,
    ParentReach,
)
from relay.ports import BusBroken
from schemas.values.identity import NodePath
from tests.unit.test_member_addresses import granted_relay

OTHERS = {"m2": 0.0, "m3": REACHES_SECONDS}


class Clock:
    """Goes on as it is slept by, until it is late."""

    def __init__(self, until=600.0):
        self.seconds, self.until = 0.0, until

    def now(self):
        return SimpleNamespace(seconds=self.seconds, wall_ms=0)

    async def sleep(self, seconds):
        self.seconds += seconds
        if self.seconds > self.until:
            raise TimeoutError
        await asyncio.sleep(0)


def test_who_is_cut_off_alone_and_for_long_has_a_better_one():
    reach = ParentReach(0.0)
    assert reach.better_one(CUT_OFF_SECONDS - 1, OTHERS) == ""
    assert reach.better_one(CUT_OFF_SECONDS, OTHERS) == "m3"
    assert reach.better_one(CUT_OFF_SECONDS, {"m2": 0.0, "m3": REACHES_SECONDS - 1}) == ""
    assert reach.better_one(CUT_OFF_SECONDS, {}) == ""


def test_who_reaches_the_parent_has_none_and_it_counts_from_the_last_answer():
    reach = ParentReach(0.0)
    for now in (1.0, 4.0):
        reach.asked(now, is_answered=True)
    assert reach.seconds(7.0) == 6.0
    assert reach.better_one(1000.0, OTHERS) == ""
    for now in (1000.0, 1003.0):
        reach.asked(now, is_answered=False)
    assert reach.seconds(1003.0) == 0.0
    assert reach.better_one(1000.0 + CUT_OFF_SECONDS - 1, OTHERS) == ""
    assert reach.better_one(1000.0 + CUT_OFF_SECONDS, OTHERS) == "m3"


def test_who_stepped_aside_leaves_the_lease_to_others_for_a_while_or_until_it_reaches_again():
    reach = ParentReach(0.0)
    assert not reach.is_aside(50.0)
    reach.step_aside(50.0)
    assert reach.is_aside(50.0 + ASIDE_SECONDS - 1)
    assert not reach.is_aside(50.0 + ASIDE_SECONDS)
    reach.asked(51.0, is_answered=True)
    assert not reach.is_aside(52.0)


def patience(reach, began):
    """After how many seconds of a tenure it steps aside."""
    return next(it for it in range(100_000) if reach.better_one(began + it, OTHERS))


def test_who_was_cut_off_long_before_it_is_active_counts_from_then():
    reach = ParentReach(0.0)
    reach.active(5000.0)
    assert patience(reach, 5000.0) == CUT_OFF_SECONDS


def test_who_stepped_aside_in_vain_waits_longer_each_time_until_another_one_took_the_lease():
    reach, now = ParentReach(0.0), 0.0
    for times in (1, 2, *[IN_VAIN_MAX] * IN_VAIN_MAX):
        reach.step_aside(now)
        now += ASIDE_SECONDS + 1
        reach.active(now)
        if times < IN_VAIN_MAX:
            assert patience(reach, now) == CUT_OFF_SECONDS * 2**times
    assert patience(reach, now) == CUT_OFF_SECONDS * 2**IN_VAIN_MAX
    reach.step_aside(now)
    now += ASIDE_SECONDS + TAKEN_SECONDS + 1
    reach.active(now)
    assert patience(reach, now) == CUT_OFF_SECONDS


def test_a_member_says_to_the_others_that_its_clock_keeps_it_from_being_active():
    presence = MemberPresence(Mock(), NodePath("site"), "m1", Clock(), dict)
    assert presence.own()[CLOCK_TROUBLE] == ""
    presence._ahead.update(m2=3600.0, m3=3600.0)
    assert presence.own()[CLOCK_TROUBLE] == presence.clock_trouble() != ""


@pytest.mark.parametrize("trouble", [{STORE_FULL: True}, {CLOCK_TROUBLE: "it is 60 s ahead"}])
async def test_an_active_member_steps_aside_for_none_that_cannot_take_the_lease(tmp_path, trouble):
    relay, _ = granted_relay(tmp_path, Clock())
    said = [{MEMBER: "m3", REACHES: REACHES_SECONDS, **trouble}]
    presence = SimpleNamespace(look_at_others=AsyncMock(return_value=said))
    with pytest.raises(TimeoutError):
        await relay._step_aside(SimpleNamespace(is_linked=False), presence)
    assert relay.why_others() == ""


@pytest.mark.parametrize(
    ("is_linked", "others", "steps_aside"),
    [
        (False, OTHERS, True),
        # By another member's server, on the same machine.
        (True, OTHERS, False),
        # The parent is gone for all of them.
        (False, {"m2": 0.0, "m3": 0.0}, False),
        # Of a release before, which does not say.
        (False, {"m2": None}, False),
    ],
)
async def test_an_active_member_steps_aside_for_one_that_alone_reaches_the_parent(
    tmp_path, is_linked, others, steps_aside
):
    relay, _ = granted_relay(tmp_path, clock := Clock())
    said = [{MEMBER: name, REACHES: seconds} for name, seconds in others.items()]
    presence = SimpleNamespace(look_at_others=AsyncMock(return_value=said))
    runtime = SimpleNamespace(is_linked=is_linked)
    with pytest.raises(BusBroken if steps_aside else TimeoutError) as ended:
        await relay._step_aside(runtime, presence)
    assert bool(relay.why_others()) is steps_aside
    if steps_aside:
        assert "member m3 does" in str(ended.value)
        assert clock.seconds < CUT_OFF_SECONDS + 10


@pytest.mark.parametrize(
    ("standing", "is_linked", "times"),
    [
        (Standing(active_seconds=1.0), False, 20),
        (Standing(active_seconds=1.0), True, 7),
        (Standing(), False, 7),
    ],
)
async def test_the_parent_is_asked_often_only_by_an_active_member_without_a_link(
    tmp_path, monkeypatch, standing, is_linked, times
):
    relay, _ = granted_relay(tmp_path, Clock(until=59.0))
    relay._runtime = SimpleNamespace(is_linked=is_linked)
    asking = SimpleNamespace(open=AsyncMock(), close=AsyncMock(), request=AsyncMock())
    monkeypatch.setattr(relay_member, "Connection", lambda *_: asking)
    with pytest.raises(TimeoutError):
        await relay._reach_parent(Mock(url=""), Mock(uplink=""), lambda: standing)
    assert asking.request.await_count == times


async def test_who_leaves_the_lease_to_others_takes_it_once_no_reason_is_left():
    lease, clock, reasons = MemberLease("m1", "run"), Clock(), ["another one reaches it"] * 3
    given_back = LeaseSeen(5, LeaseNote("", "former", 9, "mark"))
    stream = SimpleNamespace(look=AsyncMock(return_value=given_back), put=AsyncMock(return_value=6))
    presence = SimpleNamespace(
        clock_trouble=lambda: "", look_at_others=AsyncMock(return_value=[]), tell=AsyncMock()
    )

    def why_others():
        return reasons.pop() if reasons else ""

    await LeaseKeeper(stream, lease, clock, presence, why_others).take()
    assert stream.put.await_count == 1
    assert clock.seconds > 0
    assert lease.holds(clock.seconds)
