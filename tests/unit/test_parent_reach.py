"""Which member of a relay is active where one of them alone is cut off from the parent."""

import asyncio
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest

from leafcast.join.relay_member import REACHES
from relay.adapters.jetstream.lease_stream import LeaseKeeper
from relay.adapters.jetstream.member_presence import MEMBER
from relay.members.lease import LeaseNote, LeaseSeen, MemberLease
from relay.members.parent_reach import (
    ASIDE_SECONDS,
    CUT_OFF_SECONDS,
    REACHES_SECONDS,
    ParentReach,
)
from relay.ports import BusBroken
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


async def test_who_leaves_the_lease_to_others_takes_it_once_no_reason_is_left():
    lease, clock, reasons = MemberLease("m1", "run"), Clock(), ["another one reaches it"] * 3
    given_back = LeaseSeen(5, LeaseNote("", "former", 9, "mark"))
    stream = SimpleNamespace(look=AsyncMock(return_value=given_back), put=AsyncMock(return_value=6))
    presence = SimpleNamespace(clock_trouble=lambda: "", look_at_others=AsyncMock(return_value=[]))

    def why_others():
        return reasons.pop() if reasons else ""

    await LeaseKeeper(stream, lease, clock, presence, why_others).take()
    assert stream.put.await_count == 1
    assert clock.seconds > 0
    assert lease.holds(clock.seconds)
