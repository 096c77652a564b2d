"""Who waits for the lease takes it soon: amid an election once it has ended, and once it may."""

import asyncio
import json
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest

from relay.adapters.jetstream import member_presence
from relay.adapters.jetstream.connection import NO_STREAM, JetStreamRefused
from relay.adapters.jetstream.jetstream_leader import (
    PATIENT_LOOKS,
    PATIENT_SECONDS,
    SOON_SECONDS,
    until_led,
)
from relay.adapters.jetstream.lease_stream import (
    ANSWER_SECONDS,
    ELECTION_ANSWER_SECONDS,
    LeaseKeeper,
)
from relay.adapters.jetstream.member_presence import (
    CAME,
    HEARD,
    MEMBER,
    ROLE,
    STANDBY,
    MemberPresence,
)
from relay.adapters.jetstream.server_watch import ServerWatch
from relay.members.lease import GONE_SECONDS, LeaseNote, LeaseSeen, MemberLease
from relay.ports import BusBroken
from schemas.values.identity import NodePath

LOST = LeaseSeen(7, LeaseNote("m1", "run", 3, "mark"))


class Seconds:
    """A clock that moves as it is slept, and as the stream lets who asks it wait."""

    def __init__(self):
        self.passed = 0.0

    def now(self):
        return SimpleNamespace(seconds=self.passed)

    async def sleep(self, seconds):
        self.passed += seconds


class ElectingStream:
    """What nobody leads until a time, and then holds the lease of a member that is gone."""

    def __init__(self, clock, led_at):
        self.clock, self.led_at = clock, led_at
        self.waited, self.taken_at = [], 0.0

    async def look(self, seconds=ANSWER_SECONDS):
        if self.clock.passed >= self.led_at or not self.clock.passed:
            return LOST
        self.waited.append(seconds)
        await self.clock.sleep(seconds)
        return None

    async def put(self, write):
        self.taken_at = self.clock.passed
        return 8


def said_by(look_at_others):
    return SimpleNamespace(
        look_at_others=look_at_others, clock_trouble=lambda: "", tell=AsyncMock(), when_told=None
    )


async def test_the_lease_of_a_lost_member_is_taken_soon_after_an_election():
    clock = Seconds()
    stream = ElectingStream(clock, GONE_SECONDS + 2)

    async def nobody_in_time():
        await clock.sleep(0.5)
        return []

    presence = said_by(nobody_in_time)
    await LeaseKeeper(stream, MemberLease("m2", "other"), clock, presence).take()
    # The others are asked once more, and as many looks follow as it takes.
    assert stream.taken_at - stream.led_at < 1.0
    # One in some waits longer: a busy server is heard, too.
    waits = [ELECTION_ANSWER_SECONDS] * PATIENT_LOOKS
    waits[-1] = ANSWER_SECONDS
    assert stream.waited[:PATIENT_LOOKS] == waits


async def test_that_who_is_gone_was_waited_for_is_no_sign_of_a_holder():
    clock = Seconds()
    stream = ElectingStream(clock, 0.0)

    async def one_in_time():
        said = {ROLE: STANDBY, HEARD: clock.passed, CAME: clock.passed}
        await clock.sleep(0.5)
        return [said]

    presence = said_by(one_in_time)
    await LeaseKeeper(stream, MemberLease("m2", "other"), clock, presence).take()
    assert stream.taken_at == pytest.approx(GONE_SECONDS, abs=0.3)


async def test_of_what_a_member_says_is_known_when_it_came(monkeypatch):
    clock, hears = Seconds(), []

    class Client:
        def new_inbox(self):
            return "inbox"

        async def subscribe(self, _subject, cb):
            hears.append(cb)
            return SimpleNamespace(unsubscribe=lambda: clock.sleep(6.0))

        async def publish(self, _subject, _data, reply):
            assert reply == "inbox"
            await clock.sleep(3.0)
            await hears[0](SimpleNamespace(data=json.dumps({MEMBER: "m3", CAME: 1.0}).encode()))

    monkeypatch.setattr(member_presence, "LOOK_SECONDS", 0.01)
    connection = SimpleNamespace(client=Client())
    presence = MemberPresence(connection, NodePath("site"), "m1", clock, dict)
    (said,) = await presence.look_at_others()
    assert (said[CAME], clock.passed) == (3.0, 9.0)


class Asked:
    def __init__(self, *answers):
        self.answers = list(answers)

    async def api_once(self, verb, seconds):
        error = self.answers.pop(0)
        if error is not None:
            raise error


async def test_a_leader_is_found_soon_after_its_election_and_a_busy_one_is_waited_for():
    clock, waits, led_at = Seconds(), [], 5.0

    async def api_once(_verb, seconds):
        waits.append(seconds)
        if clock.passed < led_at:
            await clock.sleep(seconds)
            raise BusBroken("no answer")

    await until_led(SimpleNamespace(api_once=api_once), clock)
    assert clock.passed - led_at < 2.0
    assert waits[:PATIENT_LOOKS] == [SOON_SECONDS] * (PATIENT_LOOKS - 1) + [PATIENT_SECONDS]


async def test_who_asks_which_servers_run_waits_for_none_that_is_gone():
    asked, clock = AsyncMock(), Seconds()
    asked.new_inbox = lambda: "inbox"
    watch = ServerWatch(SimpleNamespace(client=asked), clock, 3)
    await watch.ask()
    assert not clock.passed
    (hear,) = (call.kwargs["cb"] for call in asked.subscribe.await_args_list)
    for name in ("m1", "m2"):
        said = {"server": {"name": name, "id": f"start of {name}"}, "data": {}}
        await hear(SimpleNamespace(data=json.dumps(said).encode(), headers=None))
    clock.sleep = AsyncMock(side_effect=asyncio.CancelledError)
    with pytest.raises(asyncio.CancelledError):
        await watch.run()
    assert watch.running == {"m1", "m2"}


async def test_a_stream_that_is_not_there_waits_for_no_leader():
    there = Asked(BusBroken("no answer"), None)
    await until_led(there, Seconds(), ["OWN"])
    missing = Asked(JetStreamRefused("STREAM.INFO.KV_new", NO_STREAM, "stream not found"))
    await until_led(missing, Seconds(), ["KV_new"])
    assert not there.answers
    assert not missing.answers
