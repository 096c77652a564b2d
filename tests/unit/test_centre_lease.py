"""One hub has one centre: who holds its lease, who waits, who is refused, and who stops writing."""

import asyncio
from dataclasses import replace
from types import SimpleNamespace

import pytest

from leafcast.centre.centre_spaces import centre_identity
from relay.adapters.clock import SystemDice
from relay.claims import centre_lease
from relay.claims.centre_lease import (
    LEASE_SECONDS,
    VALID_SECONDS,
    WORKLOADS_LEASE,
    CentreLease,
)
from relay.claims.claim import (
    HOST_NOTE,
    PLACE_NOTE,
    RUN_NOTE,
    TREE_NOTE,
    CentreIdentity,
    CentreVerdict,
    judge_centre,
)
from relay.claims.guarded_space import GRACE_SECONDS, LeasedSpace
from relay.core.instant import Instant
from relay.space_errors import SpaceError
from relay.space_port import Interests
from schemas.objects.objects import ObjectKey
from tests.unit.lease_space import LeaseSpace, away, forbidden, lease

TREE, OTHER_TREE = "a" * 32, "b" * 32
ME = CentreIdentity(TREE, "here", "run-2", "host-2")
TAKE, WAIT, REFUSED = CentreVerdict.TAKE, CentreVerdict.WAIT, CentreVerdict.REFUSED
KEY = ObjectKey("", "configmaps", "shop", "settings")


class HandClock:
    """A time that stands until a test moves it; its wall clock may be far off."""

    def __init__(self, wall_ms=1_800_000_000_000):
        self.seconds, self.wall_ms = 100.0, wall_ms

    def now(self):
        return Instant(self.seconds, self.wall_ms + int(self.seconds * 1000))

    async def sleep(self, seconds):
        await asyncio.sleep(0)

    def pass_by(self, seconds):
        self.seconds += seconds


def held_by(tree=TREE, place="there", run="run-1", *, released=False):
    notes = {TREE_NOTE: tree, PLACE_NOTE: place, RUN_NOTE: run, HOST_NOTE: "host-1"}
    return lease(WORKLOADS_LEASE, "" if released else "host-1_run-1", **notes)


def a_lease(clock, me=ME, **how):
    return CentreLease(WORKLOADS_LEASE, me, "hub.yaml", clock, **how)


@pytest.mark.parametrize(
    ("found", "silent", "verdict", "with_take_over"),
    [
        (None, True, TAKE, TAKE),
        # The same folder: its former run is over, as one process uses it at a time.
        (held_by(place="here"), False, TAKE, TAKE),
        (held_by(), False, WAIT, WAIT),
        (held_by(), True, TAKE, TAKE),
        (held_by(released=True), False, TAKE, TAKE),
        (held_by(OTHER_TREE), False, REFUSED, WAIT),
        (held_by(OTHER_TREE), True, REFUSED, TAKE),
        (held_by(OTHER_TREE, released=True), False, REFUSED, TAKE),
        # A place alone says nothing: another tree may have had this very folder.
        (held_by(OTHER_TREE, place="here"), True, REFUSED, TAKE),
        (lease(WORKLOADS_LEASE, "somebody"), True, REFUSED, TAKE),
    ],
)
def test_a_hub_is_taken_by_its_own_tree_and_from_another_one_by_a_persons_word(
    found, silent, verdict, with_take_over
):
    assert judge_centre(found, ME, silent=silent, take_over=False) is verdict
    assert judge_centre(found, ME, silent=silent, take_over=True) is with_take_over


async def test_a_hub_without_a_centre_is_taken_and_renewed():
    hub, clock = LeaseSpace(), HandClock()
    own = a_lease(clock)
    with pytest.raises(SpaceError, match=r"hub\.yaml: the hub has not said yet whose it is"):
        own.check()
    await own.take(hub)
    own.check()
    first = hub.held[WORKLOADS_LEASE]
    assert (first.holder, first.seconds, first.notes) == ("host-2_run-2", 15, ME.notes())
    clock.pass_by(5)
    await own.take(hub)
    second = hub.held[WORKLOADS_LEASE]
    assert (second.acquired, second.renewed != first.renewed) == (first.acquired, True)


async def test_a_centre_that_cannot_renew_stops_writing_before_another_may_begin():
    hub, clock = LeaseSpace(), HandClock()
    own, standby_clock = a_lease(clock), HandClock()
    await own.take(hub)
    standby = a_lease(standby_clock, CentreIdentity(TREE, "there", "run-3", "host-3"))
    await standby.take(hub)
    for _ in range(4):
        hub.fails = [away()]
        await own.take(hub)
        clock.pass_by(VALID_SECONDS / 4)
    with pytest.raises(SpaceError, match=r"cannot be reached|not renewed"):
        own.check()
    standby_clock.pass_by(VALID_SECONDS + GRACE_SECONDS)
    await standby.take(hub)
    assert not standby.is_held
    standby_clock.pass_by(LEASE_SECONDS - VALID_SECONDS - GRACE_SECONDS)
    await standby.take(hub)
    assert standby.is_held
    # The first one is back, sees who has it, and waits in its turn.
    await own.take(hub)
    assert (own.is_held, own.verdict) == (False, WAIT)


async def test_a_centre_whose_hub_was_away_goes_on_if_nobody_took_it():
    hub, clock = LeaseSpace(), HandClock()
    own = a_lease(clock)
    await own.take(hub)
    clock.pass_by(300)
    assert not own.is_held
    await own.take(hub)
    assert own.is_held


@pytest.mark.parametrize("hours", [-5, 5])
async def test_who_holds_a_hub_does_not_depend_on_whose_clock_is_right(hours):
    hub = LeaseSpace()
    first_clock, clock = HandClock(), HandClock(1_800_000_000_000 + hours * 3_600_000)
    first = a_lease(first_clock, CentreIdentity(TREE, "there", "run-1", "host-1"))
    await first.take(hub)
    own = a_lease(clock)
    for _ in range(8):
        await own.take(hub)
        assert own.verdict is WAIT
        first_clock.pass_by(5)
        clock.pass_by(5)
        await first.take(hub)
    word = "behind" if hours > 0 else "ahead of"
    assert f"its clock is 18000 s {word} this one" in own.trouble
    assert "NTP" in own.trouble
    # It falls silent.
    for _ in range(2):
        await own.take(hub)
        clock.pass_by(LEASE_SECONDS)
    await own.take(hub)
    assert own.is_held


async def test_another_trees_hub_is_refused_by_name_and_never_written_however_old_the_lease_is():
    hub, clock = LeaseSpace(), HandClock()
    hub.put(held_by(OTHER_TREE))
    own = a_lease(clock)
    for _ in range(5):
        await own.take(hub)
        clock.pass_by(3600)
    assert (own.verdict, hub.writes) == (REFUSED, 1)
    for word in ("bbbbbbbb", "host-1", "2026-01-01", "--take-over", "leafcast-system"):
        assert word in own.trouble


async def test_who_takes_over_waits_until_the_other_is_silent_and_does_so_once():
    hub, clock = LeaseSpace(), HandClock()
    hub.put(held_by(OTHER_TREE))
    own = a_lease(clock, take_over=True)
    await own.take(hub)
    assert (own.verdict, hub.writes) == (WAIT, 1)
    clock.pass_by(LEASE_SECONDS)
    await own.take(hub)
    assert own.is_held
    hub.put(replace(held_by(OTHER_TREE), version=hub.held[WORKLOADS_LEASE].version))
    await own.take(hub)
    assert own.verdict is REFUSED


async def test_a_lease_that_was_given_back_is_taken_by_its_tree_at_once():
    hub, clock = LeaseSpace(), HandClock()
    first = a_lease(clock, CentreIdentity(TREE, "there", "run-1", "host-1"))
    await first.take(hub)
    await first.give_back(hub)
    assert not first.is_held
    own = a_lease(clock)
    await own.take(hub)
    assert own.is_held


async def test_a_lease_that_says_a_longer_time_is_waited_for_but_not_for_ever():
    hub, clock = LeaseSpace(), HandClock()
    hub.put(replace(held_by(), seconds=60))
    own = a_lease(clock)
    await own.take(hub)
    clock.pass_by(59)
    await own.take(hub)
    assert not own.is_held
    clock.pass_by(1)
    await own.take(hub)
    assert own.is_held


async def test_who_may_not_take_the_lease_is_told_the_right_and_writes_nothing():
    hub = LeaseSpace()
    hub.fails = [forbidden()]
    own = a_lease(HandClock())
    await own.take(hub)
    assert "leases of coordination.k8s.io" in own.trouble
    assert "leafcast install" in own.trouble
    with pytest.raises(SpaceError):
        own.check()


class Recorded:
    """A space that notes what is asked of it; it takes some time to write."""

    def __init__(self):
        self.asked = []
        self.follows = 0

    async def apply(self, obj, manager, **how):
        self.asked.append("apply")

    async def delete(self, key, uid=""):
        self.asked.append("delete")
        return True

    async def set_status(self, key, status):
        self.asked.append("status")

    async def release(self, key, finalizer, uid):
        self.asked.append("release")

    async def follow(self, interests, tell):
        self.follows += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.follows -= 1


async def test_without_the_lease_no_verb_writes():
    behind, hub, clock = Recorded(), LeaseSpace(), HandClock()
    own = a_lease(clock)
    space = LeasedSpace(behind, own)
    calls = (
        lambda: space.apply({}, "me"),
        lambda: space.delete(KEY),
        lambda: space.set_status(KEY, {}),
        lambda: space.release(KEY, "f", "u"),
    )
    for call in calls:
        with pytest.raises(SpaceError, match="nothing is written"):
            await call()
    assert behind.asked == []
    await own.take(hub)
    for call in calls:
        await call()
    assert behind.asked == ["apply", "delete", "status", "release"]
    clock.pass_by(VALID_SECONDS)
    for call in calls:
        with pytest.raises(SpaceError, match="nothing is written"):
            await call()


async def test_a_hub_is_followed_from_when_it_is_held_and_anew_after_it_was_anothers():
    behind, hub, clock = Recorded(), LeaseSpace(), HandClock()
    own = a_lease(clock)
    following = asyncio.create_task(LeasedSpace(behind, own).follow(Interests(()), None))

    async def turns():
        for _ in range(10):
            await asyncio.sleep(0)
        return behind.follows

    assert await turns() == 0
    await own.take(hub)
    assert await turns() == 1
    clock.pass_by(VALID_SECONDS)
    hub.fails = [away()]
    await own.take(hub)
    assert await turns() == 1
    hub.put(held_by())
    await own.take(hub)
    assert await turns() == 0
    clock.pass_by(LEASE_SECONDS)
    await own.take(hub)
    assert await turns() == 1
    following.cancel()


class Tenure:
    """One member's time of being active; `stopped` happens as soon as it is confirmed."""

    def __init__(self):
        self.is_over, self.stopped = False, None

    async def confirm(self):
        if self.is_over:
            raise SpaceError("ServiceUnavailable", "another member is active")
        if (stopped := self.stopped) is not None:
            self.stopped = None
            await stopped()

    def lease(self, run):
        me = CentreIdentity(TREE, "members", run, "host-2")
        return a_lease(HandClock(), me, confirm=self.confirm)


async def test_a_member_that_takes_over_has_the_hub_at_once_and_the_former_one_never_again():
    hub, former, successor = LeaseSpace(), Tenure(), Tenure()
    first, second = former.lease("run-1"), successor.lease("run-2")
    await first.take(hub)
    former.is_over = True
    await second.take(hub)
    assert (second.is_held, hub.held[WORKLOADS_LEASE].notes[RUN_NOTE]) == (True, "run-2")
    await first.take(hub)
    assert hub.held[WORKLOADS_LEASE].notes[RUN_NOTE] == "run-2"
    await first.give_back(hub)
    assert hub.held[WORKLOADS_LEASE].holder == "host-2_run-2"


@pytest.mark.parametrize("renews", [False, True])
async def test_a_member_that_is_stopped_before_it_writes_does_not_take_the_hub_from_the_next(
    renews,
):
    hub, former, successor = LeaseSpace(), Tenure(), Tenure()
    first, second = former.lease("run-1"), successor.lease("run-2")
    if renews:
        await first.take(hub)

    async def followed():
        former.is_over = True
        await second.take(hub)

    former.stopped = followed
    await first.take(hub)
    assert hub.held[WORKLOADS_LEASE].notes[RUN_NOTE] == "run-2"
    assert (first.is_held, second.is_held) == (False, True)


async def test_a_member_that_another_one_outruns_by_a_last_write_looks_again_at_once():
    hub, former, successor = LeaseSpace(), Tenure(), Tenure()
    first, second = former.lease("run-1"), successor.lease("run-2")
    await first.take(hub)
    hub.before_write = lambda: hub.put(replace(hub.held[WORKLOADS_LEASE], holder=""))
    await second.take(hub)
    assert second.is_held


async def test_a_lease_whose_last_renewal_was_not_answered_is_given_back():
    hub, own = LeaseSpace(), a_lease(HandClock())
    await own.take(hub)
    hub.put(hub.held[WORKLOADS_LEASE])
    await own.give_back(hub)
    assert hub.held[WORKLOADS_LEASE].holder == ""


async def test_a_member_that_waits_for_the_others_says_so_and_blames_no_hub(monkeypatch):
    monkeypatch.setattr(centre_lease, "FIRST_LOOK_SECONDS_MAX", 0.01)
    elected = asyncio.Event()

    async def confirm():
        await elected.wait()

    own = a_lease(HandClock(), confirm=confirm)
    await own.take(LeaseSpace())
    assert "the members of this centre did not confirm" in own.trouble
    hub = LeaseSpace()
    hub.read = lambda _name: elected.wait()
    await own.take(hub)
    assert "no answer within" in own.trouble


def test_members_of_a_centre_are_one_to_a_hub_and_a_copy_of_it_is_another(tmp_path):
    folders = [tmp_path / name for name in ("m1", "m2")]
    for folder in folders:
        folder.mkdir()

    def places(keys):
        members = SimpleNamespace(keys=keys)
        return {centre_identity(TREE, it, SystemDice(), members).place for it in folders}

    keys = {"m1": b"1" * 32, "m2": b"2" * 32, "m3": b"3" * 32}
    alone = {centre_identity(TREE, it, SystemDice()).place for it in folders}
    assert (len(alone), len(places(keys))) == (2, 1)
    assert places(keys) == places(dict(reversed(keys.items())))
    assert places(keys).isdisjoint(places({**keys, "m3": b"4" * 32}) | alone)
