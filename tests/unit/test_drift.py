"""What is drift, and when it is put right: a word for each, and the same word while it lasts."""

import pytest

from relay.core.destination.claims import DesiredObject
from relay.ports import Instant
from relay.space_errors import SpaceError
from relay.syncer.drift import Drift
from relay.syncer.going import Going, check_gone
from relay.syncer.observed import look_at
from schemas.content.blobs import Reference
from schemas.objects.objects import ObjectKey
from schemas.reports.reports import Done

KEY = ObjectKey("", "namespaces", "", "shop")
DONE = Done(KEY, "u1", "a" * 64, (), made=True, order=1)
WANT = DesiredObject(KEY, Reference("object", "a" * 64, 1), 1, 0, ())
SIGHT = look_at({"metadata": {"uid": "u2"}})
NOON_MS = 1_769_860_800_000


class HandClock:
    def __init__(self):
        self.seconds = 100.0

    def now(self):
        return Instant(self.seconds, NOON_MS + round((self.seconds - 100) * 1000))


class Bench:
    def __init__(self):
        self.clock = HandClock()
        self.drift = Drift(None, self.clock)

    async def lose(self, done=DONE):
        """The object is gone; what is said of that, and its record once it was made again."""
        said = await self.drift.judge(None, None, done, WANT)
        if said:
            return said, done
        amiss = self.drift.applied(KEY, SIGHT)
        return "", self.drift.put_right(done, amiss)


async def test_what_was_deleted_for_us_and_goes_later_is_no_repair():
    bench = Bench()
    bench.drift.failed(KEY, Going("u1", "terminating"))
    for _ in range(20):
        said, done = await bench.lose()
        assert (said, done) == ("", DONE)
        bench.drift.failed(KEY, Going("u1", "terminating"))


async def test_what_others_delete_is_a_repair_though_another_of_its_name_went_for_us():
    bench = Bench()
    bench.drift.failed(KEY, SpaceError("Terminating", "terminating"))
    assert (await bench.lose())[1].repaired.count == 1
    bench.drift.failed(KEY, Going("u0", "terminating"))
    assert (await bench.lose())[1].repaired.count == 1
    bench.drift.failed(KEY, Going("u1", "terminating"))
    await bench.lose()
    # It was made again since: whoever takes that one is somebody else.
    assert (await bench.lose())[1].repaired.count == 1


async def test_when_a_contended_object_is_repaired_is_said_the_same_while_it_waits():
    bench, done, said = Bench(), DONE, ""
    while not said:
        said, done = await bench.lose(done)
        bench.clock.seconds += 1
    words = set()
    for _ in range(25):
        bench.clock.seconds += 0.9
        words.add((await bench.lose(done))[0])
    assert len(words) == 1
    assert words == {said}
    assert "again at 2026-01-31T12:0" in said


CONFIG = ObjectKey("", "configmaps", "shop", "a")


class Shown:
    """A space that shows one object, or none."""

    def __init__(self, live):
        self.live = live

    async def get(self, _key):
        return self.live


async def test_only_what_is_still_there_as_it_was_is_going():
    await check_gone(Shown(None), CONFIG, "u1")
    await check_gone(Shown({"metadata": {"uid": "u1"}}), CONFIG, "u1")
    ending = {"metadata": {"uid": "u1", "deletionTimestamp": "2026-01-31T12:00:00Z"}}
    await check_gone(Shown(ending), CONFIG, "u0")
    with pytest.raises(Going) as going:
        await check_gone(Shown(ending), CONFIG, "u1")
    assert (going.value.reason, going.value.uid) == ("Terminating", "u1")
