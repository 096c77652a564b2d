"""What was put right at an edge is counted, with what was amiss and who did it, as far as known."""

import pytest

from schemas.objects.annotations import ON_REMOVAL
from schemas.objects.objects import ObjectKey
from tests.contract.spaces import config_map, deployment
from tests.contract.syncing import Bench

CONFIG = ObjectKey("", "configmaps", "shop", "settings")
WEB = ObjectKey("apps", "deployments", "shop", "web")


@pytest.fixture
def bench(any_space, clock, dice):
    return Bench(any_space, clock, dice)


def repaired(bench, key):
    done = bench.done.of(key)
    return done.repaired if done is not None else None


async def until_repaired(bench, key, count):
    await bench.until(lambda: (found := repaired(bench, key)) and found.count == count)
    await bench.until(lambda: (found := bench.said[key].repaired) and found.count == count)
    return repaired(bench, key)


async def test_a_field_that_another_changed_is_told_with_its_manager(bench, any_space):
    async with bench.running():
        bench.want(deployment(image="web:1"))
        await bench.settled()
        assert repaired(bench, WEB) is None
        assert bench.said[WEB].repaired is None
        tells = "managedFields" in (await any_space.get(WEB))["metadata"]
        await any_space.apply(deployment(image="evil:1"), "kubectl-set")
        found = await until_repaired(bench, WEB, 1)
        assert "image" in found.field
        assert found.manager == ("kubectl-set" if tells else "")
        assert abs(found.at_ms - bench.clock.now().wall_ms) < 60_000
        await any_space.apply(deployment(image="evil:2"), "kubectl-edit")
        found = await until_repaired(bench, WEB, 2)
        assert found.manager == ("kubectl-edit" if tells else "")


async def test_what_was_deleted_and_made_again_counts_without_a_field(bench, any_space):
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        await any_space.delete(CONFIG)
        found = await until_repaired(bench, CONFIG, 1)
        assert (found.field, found.manager) == ("", "")
        assert await any_space.get(CONFIG) is not None


async def test_a_count_outlives_a_restart_and_ends_with_the_object(bench, any_space):
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        await any_space.apply(config_map(a="2"), "they")
        await until_repaired(bench, CONFIG, 1)
        await bench.settled()
    # What is changed while nobody looks is found, and put right, by the next run.
    await any_space.apply(config_map(a="3"), "they")
    bench.said.clear()
    async with bench.running():
        bench.want(config_map(a="1"))
        await until_repaired(bench, CONFIG, 2)
        bench.want(config_map(a="5"))
        await bench.settled()
        assert bench.said[CONFIG].repaired.count == 2
        bench.want()
        await bench.settled()
        bench.want(config_map(a="5"))
        await bench.settled()
        assert bench.said[CONFIG].repaired is None


async def test_what_is_wanted_anew_is_no_repair(bench):
    async with bench.running():
        for value in "123":
            bench.want(config_map(a=value))
            await bench.settled()
    async with bench.running():
        bench.want(config_map(a="3"))
        await bench.settled()
        bench.want(config_map(a="4"))
        await bench.settled()
        assert repaired(bench, CONFIG) is None


async def test_what_is_kept_and_taken_again_begins_anew(bench, any_space):
    kept = config_map(a="1")
    kept["metadata"]["annotations"] = {ON_REMOVAL: "keep"}
    async with bench.running():
        bench.want(kept)
        await bench.settled()
        await any_space.apply(config_map(a="2"), "they")
        await until_repaired(bench, CONFIG, 1)
        bench.want()
        await bench.until(lambda: (done := bench.done.of(CONFIG)) and done.kept)
        bench.want(kept)
        await bench.until(lambda: (done := bench.done.of(CONFIG)) and not done.kept)
        await bench.settled()
        assert repaired(bench, CONFIG) is None
