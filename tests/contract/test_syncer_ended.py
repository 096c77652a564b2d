"""What came to a good end is done: it is not made again when its cluster takes it."""

import pytest

from relay.syncer import losses
from schemas.content.manifest import CREATE_ONLY
from schemas.objects.objects import ObjectKey
from schemas.values import codec
from tests.contract.spaces import config_map
from tests.contract.syncing import Bench

ONCE = ObjectKey("batch", "jobs", "shop", "once")
CONFIG = ObjectKey("", "configmaps", "shop", "settings")
MOMENT = "2026-01-01T00:00:00Z"
COMPLETE = {
    "startTime": MOMENT,
    "completionTime": MOMENT,
    "succeeded": 1,
    "conditions": [
        {"type": kind, "status": "True", "lastTransitionTime": MOMENT, "lastProbeTime": MOMENT}
        for kind in ("SuccessCriteriaMet", "Complete")
    ],
}


@pytest.fixture
def bench(any_space, clock, dice):
    return Bench(any_space, clock, dice)


def job(note="", **annotations):
    containers = [{"name": "main", "image": f"job:1{note}"}]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": ONCE.name, "namespace": "shop", "annotations": annotations},
        "spec": {
            "ttlSecondsAfterFinished": 5,
            "template": {"spec": {"restartPolicy": "Never", "containers": containers}},
        },
    }


async def run_once(bench):
    """Have it made, come to its end, and taken."""
    bench.want(job())
    await bench.settled()
    await bench.space.set_status(ONCE, COMPLETE)
    await bench.until(lambda: bench.said[ONCE].health == "healthy")
    await bench.space.delete(ONCE)
    await bench.settled()


def said_done(bench):
    said = bench.said[ONCE]
    return (said.present, said.health, said.address) == (True, "healthy", bench.address(ONCE))


async def test_a_job_that_succeeded_and_is_taken_is_done(bench, any_space):
    async with bench.running():
        await run_once(bench)
        bench.want(job(), config_map(a="1"))
        await bench.settled()
        assert bench.space.applied.count(ONCE.name) == 1
        assert await any_space.get(ONCE) is None
        assert said_done(bench)
        assert codec.unpack(bench.said[ONCE].status)["succeeded"] == 1
        assert bench.said[ONCE].repaired is None


async def test_it_is_done_also_for_the_next_run_and_for_who_asks_for_it_besides(bench, any_space):
    async with bench.running():
        await run_once(bench)
    bench.said.clear()
    async with bench.running():
        bench.want(job())
        await bench.until(lambda: ONCE in bench.said and said_done(bench))
        await bench.settled()
        [(key, wanted)] = [(key, it) for key, it in bench.wanted.items()]
        more = type(wanted)(key, wanted.reference, wanted.order, wanted.flags, ("p", "q"))
        bench.syncer.set_wants({key: more}, may_prune=lambda _key: True)
        await bench.settled()
        await bench.until(lambda: bench.done.of(ONCE).placements == ("p", "q"))
        assert bench.space.applied.count(ONCE.name) == 1
        assert await any_space.get(ONCE) is None
        assert said_done(bench)


@pytest.mark.parametrize("flags", [0, CREATE_ONLY])
async def test_what_it_says_anew_runs_anew(bench, any_space, flags):
    async with bench.running():
        bench.want_keyed({}, job(), flags=flags)
        await bench.settled()
        await bench.space.set_status(ONCE, COMPLETE)
        await bench.until(lambda: bench.said[ONCE].health == "healthy")
        await bench.space.delete(ONCE)
        await bench.settled()
        bench.want_keyed({}, job(note="2"), flags=flags)
        await bench.until(lambda: bench.space.applied.count(ONCE.name) == 2)
        await bench.settled()
        assert await any_space.get(ONCE)
        assert bench.said[ONCE].health == "progressing"
        assert bench.done.of(ONCE).ended is None


async def test_what_was_taken_before_its_end_is_made_again(bench, any_space):
    async with bench.running():
        bench.want(job())
        await bench.settled()
        uid = (await any_space.get(ONCE))["metadata"]["uid"]
        await any_space.delete(ONCE)
        await bench.until(lambda: bench.space.applied.count(ONCE.name) == 2)
        await bench.settled()
        assert (await any_space.get(ONCE))["metadata"]["uid"] != uid


async def test_what_is_done_and_wanted_no_more_leaves_nothing(bench):
    async with bench.running():
        await run_once(bench)
        bench.want()
        await bench.settled()
        assert bench.done.of(ONCE) is None
        assert not bench.said[ONCE].present
        bench.want(job())
        await bench.settled()
        assert bench.space.applied.count(ONCE.name) == 2


async def test_what_is_taken_again_and_again_is_made_ever_more_rarely_and_says_so(bench, any_space):
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        for time in range(losses.FREE):
            await any_space.delete(CONFIG)
            await bench.until(lambda time=time: len(bench.space.applied) == 2 + time)
            await bench.settled()
            bench.clock.ahead += 20
        await any_space.delete(CONFIG)
        await bench.until(lambda: "again and again" in bench.said[CONFIG].error)
        assert "4 times" in bench.said[CONFIG].error
        assert await any_space.get(CONFIG) is None
    # Whoever starts anew knows it still.
    bench.said.clear()
    made = len(bench.space.applied)
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.until(lambda: CONFIG in bench.said and bench.said[CONFIG].error)
        assert len(bench.space.applied) == made
        # What is said anew is made at once.
        bench.want(config_map(a="2"))
        await bench.settled()
        assert (await any_space.get(CONFIG))["data"] == {"a": "2"}
