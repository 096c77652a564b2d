"""What is wanted anew while something else is done about it: a word counts for its own wish."""

import asyncio

import pytest

from relay.space_errors import SpaceError
from schemas.objects.objects import ObjectKey
from tests.contract.spaces import config_map
from tests.contract.syncing import Bench

pytestmark = pytest.mark.leaps

CONFIG = ObjectKey("", "configmaps", "shop", "settings")
OTHER = ObjectKey("", "configmaps", "shop", "other")


@pytest.fixture
def bench(space, clock, dice):
    return Bench(space, clock, dice)


def vouched(bench, wish):
    """The words by which the object is there as this wish has it."""
    address = bench.address(CONFIG)
    words = (said for said in bench.history if said.key == CONFIG and said.wish == wish)
    return [said for said in words if said.present and said.address == address]


async def held_up(bench, *, wish, **data):
    """Want the object anew, and another, and wait for the other: the syncer had its time."""
    bench.want(config_map(**data), config_map("other"), wish=wish)
    await bench.until(lambda: OTHER in bench.said and bench.said[OTHER].address)


async def test_what_is_wanted_again_while_it_is_taken_away_is_there_once_it_was_made_anew(
    bench, space
):
    async with bench.running():
        bench.want(config_map())
        await bench.settled()
        former = (await space.get(CONFIG))["metadata"]["uid"]
        bench.space.gates["settings"] = asyncio.Event()
        bench.want()
        await bench.until(lambda: CONFIG in bench.syncer._under_way)
        await held_up(bench, wish=1)
        assert not vouched(bench, 1)
        bench.space.gates["settings"].set()
        await bench.settled()
        assert vouched(bench, 1)
        assert (await space.get(CONFIG))["metadata"]["uid"] != former


async def test_what_is_wanted_as_before_while_it_is_changed_is_there_once_it_was_changed_back(
    bench, space
):
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        bench.space.gates["settings"] = asyncio.Event()
        bench.want(config_map(a="2"), wish=1)
        await bench.until(lambda: bench.space.applied.count("settings") == 2)
        await held_up(bench, wish=2, a="1")
        assert not vouched(bench, 2)
        bench.space.gates["settings"].set()
        await bench.settled()
        assert vouched(bench, 2)
        assert (await space.get(CONFIG))["data"] == {"a": "1"}


async def test_of_a_change_that_failed_and_is_not_wanted_any_more_it_is_looked_what_came(
    bench, space
):
    """Whoever got no answer does not know whether it was done."""
    async with bench.running():
        bench.want(config_map(a="1"))
        await bench.settled()
        bench.space.refused["settings"] = SpaceError("Timeout", "no answer")
        bench.want(config_map(a="2"), wish=1)
        await bench.until(lambda: bench.said[CONFIG].error)
        del bench.space.refused["settings"]
        bench.space.looked.clear()
        bench.want(config_map(a="1"), wish=2)
        await bench.settled()
        assert "settings" in bench.space.looked
        assert vouched(bench, 2)
        assert (await space.get(CONFIG))["data"] == {"a": "1"}


@pytest.mark.parametrize("was_unwanted", [True, False])
async def test_what_was_left_alone_meanwhile_is_said_to_be_there_anew(bench, was_unwanted):
    async with bench.running():
        bench.want(config_map())
        await bench.settled()
        bench.space.applied.clear()
        if was_unwanted:
            bench.want(may_prune=False)
        bench.want(config_map(), wish=1)
        await bench.until(lambda: vouched(bench, 1))
        await bench.settled()
        assert bench.space.applied == []
        assert bench.space.deleted == []
