"""Waves of one placement: each begins when the earlier are healthy, and removal goes backwards."""

import pytest

from relay.space_errors import SpaceError
from relay.syncer import wave_barrier
from schemas.objects.objects import ObjectKey
from schemas.objects.order import WAVE
from tests.contract.spaces import config_map, deployment, namespace
from tests.contract.syncing import Bench

WEB = ObjectKey("apps", "deployments", "shop", "web")
LATER = ObjectKey("", "configmaps", "shop", "later")
WELL = {
    "observedGeneration": 99,
    "replicas": 2,
    "updatedReplicas": 2,
    "readyReplicas": 2,
    "availableReplicas": 2,
}


@pytest.fixture
def bench(space, clock, dice):
    return Bench(space, clock, dice)


def in_wave(wave, obj):
    metadata = {**obj["metadata"], "annotations": {WAVE: str(wave)}}
    return {**obj, "metadata": metadata}


async def well(space, key=WEB):
    await space.set_status(key, WELL)


async def test_a_wave_begins_when_the_earlier_is_healthy_and_not_before(bench, space, clock):
    async with bench.running():
        bench.want(deployment(), in_wave(1, config_map("later")))
        await bench.until(lambda: is_applied(bench, "web"))
        clock.ahead += 60
        bench.syncer._wake.set()
        await bench.until(lambda: not bench.syncer._pending)
        assert "later" not in bench.space.applied
        assert not bench.syncer.idle
        await well(space)
        await bench.settled()
        assert bench.space.applied[-1] == "later"


async def test_new_content_of_a_later_wave_waits_for_that_of_an_earlier(bench, space):
    async with bench.running():
        bench.want(deployment(), in_wave(1, config_map("later")))
        await bench.until(lambda: is_applied(bench, "web"))
        await well(space)
        await bench.settled()
        changed = deployment(image="two")
        bench.space.refused = {"web": SpaceError("Invalid", "no")}
        bench.want(changed, in_wave(1, config_map("later")))
        await bench.until(lambda: bench.said[WEB].error)
        # What was applied is kept as it is meanwhile.
        await space.delete(LATER)
        await bench.until(lambda: bench.space.applied.count("later") == 2)
        bench.want(changed, in_wave(1, config_map("later", a="2")))
        await bench.until(lambda: not bench.syncer._under_way)
        assert bench.space.applied.count("later") == 2
        bench.space.refused = {}
        clock_ahead(bench)
        await bench.until(lambda: not bench.said[WEB].error)
        await well(space)
        await bench.settled()
        assert (await space.get(LATER))["data"] == {"a": "2"}


def clock_ahead(bench):
    bench.clock.ahead += 600
    bench.syncer._wake.set()


async def test_negative_waves_and_kinds_within_a_wave(bench):
    async with bench.running():
        bench.want(
            in_wave(-1, config_map("before")),
            config_map("amid"),
            in_wave(2, config_map("after")),
            in_wave(7, namespace()),
        )
        await bench.settled()
        assert bench.space.applied == ["shop", "before", "amid", "after"]
        bench.want()
        await bench.settled()
        assert bench.space.deleted == ["after", "amid", "before"]


async def test_what_goes_waits_until_what_comes_is_healthy(any_space, clock, dice):
    space, bench = any_space, Bench(any_space, clock, dice)
    blue, green = deployment("blue"), deployment("green")
    async with bench.running():
        bench.want(blue, in_wave(1, config_map("switch", to="blue")))
        await bench.until(lambda: is_applied(bench, "blue"))
        await well(space, key_of("blue"))
        await bench.settled()
        bench.want(green, in_wave(1, config_map("switch", to="green")))
        await bench.until(
            lambda: key_of("green") in bench.said and bench.said[key_of("green")].address
        )
        assert not bench.space.deleted
        assert bench.space.applied.count("switch") == 1
        await well(space, key_of("green"))
        await bench.settled()
        assert bench.space.applied[-1] == "switch"
        assert bench.space.deleted == ["blue"]


async def test_an_object_that_hangs_is_named_by_those_that_wait_for_it(bench, monkeypatch):
    monkeypatch.setattr(wave_barrier, "STALLED_SECONDS", 0.05)
    async with bench.running():
        bench.want(deployment(), in_wave(1, config_map("later")))
        # Before the other one is there nobody can say why it hangs.
        named = "deployments.apps/shop/web of wave 0: "
        await bench.until(lambda: LATER in bench.said and bench.said[LATER].waits.startswith(named))


async def test_a_restart_amid_waves_goes_on_where_it_was(bench, space):
    wants = (deployment(), in_wave(1, config_map("later")))
    async with bench.running():
        bench.want(*wants)
        await bench.until(lambda: (done := bench.done.of(WEB)) and done.uid)
    async with bench.running():
        bench.want(*wants)
        await bench.until(lambda: WEB in bench.said)
        assert "later" not in bench.space.applied
        await well(space)
        await bench.settled()
        assert bench.space.applied.count("web") == 1
        assert bench.space.applied[-1] == "later"


def is_applied(bench, name):
    key = key_of(name)
    return key in bench.said and bench.said[key].address


def key_of(name):
    return ObjectKey("apps", "deployments", "shop", name)
