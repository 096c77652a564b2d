"""Nothing is deleted because something is unknown."""

import pytest

from relay.adapters.spaces.memory_space import MemorySpace
from tests.awaiting import eventually
from tests.unit.centre_world import (
    SHOP,
    Centre,
    condition,
    config,
    config_key,
    deployment,
    holds,
    lists,
    placement,
)


@pytest.fixture
def centre(tmp_path):
    return Centre(tmp_path / "keys")


async def test_a_small_deletion_while_the_centre_was_down_is_honoured(centre):
    await centre.apply(config("a"), config("b"), placement())
    async with centre.running():
        await centre.relay.until(holds("a", "b"))
    await centre.wds.delete(config_key("a"))
    async with centre.running():
        await centre.relay.until(holds("b"))


async def test_a_kind_that_vanished_unseen_is_held_until_someone_accepts(centre):
    await centre.apply(config("a"), deployment("web"), placement())
    async with centre.running():
        await centre.relay.until(holds("a", "web"))
    await centre.wds.delete(config_key("a"))
    async with centre.running() as controllers:
        obj = await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld"))
        assert set(await centre.relay.entries(centre.relay.delta("shop"))) == {"a", "web"}
        controllers.translator.accept_removals("shop")
        await centre.relay.until(holds("web"))
        await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld") is None)
    assert "configmaps" in condition(obj, "RemovalHeld")["message"]


async def test_many_deletions_on_a_watch_are_taken_at_their_word(centre):
    names = [f"c{at}" for at in range(30)]
    await centre.apply(*(config(name) for name in names), placement())
    async with centre.running():
        await centre.relay.until(holds(*names))
        for name in names:
            await centre.wds.delete(config_key(name))
        await centre.relay.until(holds())


async def test_an_empty_space_after_a_restart_withdraws_nothing(centre):
    names = [f"c{at}" for at in range(30)]
    await centre.apply(*(config(name) for name in names), placement())
    async with centre.running():
        await centre.relay.until(holds(*names))
    before = centre.relay.delta("shop")
    for name in names:
        await centre.wds.delete(config_key(name))
    await centre.wds.delete(SHOP)
    async with centre.running() as controllers:
        await eventually(lambda: "edgeplacement/shop" in controllers.errors)
    assert centre.relay.delta("shop") == before


async def test_another_space_withdraws_nothing_of_the_first_one(centre):
    await centre.apply(config("a"), placement())
    async with centre.running():
        await centre.relay.until(holds("a"))
    first = centre.relay.delta("shop")
    centre.wds = MemorySpace(centre.clock, centre.dice)
    await centre.apply(config("b"), placement("other"))
    async with centre.running():
        await centre.relay.until(holds("b", of="other"))
        await centre.relay.until(lambda relay: lists(relay, relay.delta("other").source.key))
        assert first.source.key in await centre.relay.index()
    assert centre.relay.delta("shop") == first
