"""Nothing is deleted because something is unknown."""

import pytest

from schemas.objects.objects import ObjectKey
from schemas.records.records import LocationRecord, SpaceMark
from tests.awaiting import eventually
from tests.doubles.memory_space import MemorySpace
from tests.unit.centre_world import (
    SHOP,
    USER,
    Centre,
    condition,
    config,
    config_key,
    deployment,
    holds,
    lists_not,
    location,
    placement,
    target,
)

pytestmark = pytest.mark.leaps

S1 = ObjectKey("edge.kubestellar.io", "synctargets", "", "s1")
L1 = ObjectKey("edge.kubestellar.io", "locations", "", "l1")


def locations_in(relay):
    """The Locations in force, by name."""
    return {it.source.name for it in relay.held().values() if isinstance(it, LocationRecord)}


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
    await centre.apply(config("a"), config("b"), deployment("web"), placement())
    async with centre.running():
        await centre.relay.until(holds("a", "b", "web"))
    for name in ("a", "b"):
        await centre.wds.delete(config_key(name))
    async with centre.running() as controllers:
        obj = await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld"))
        assert set(await centre.relay.entries(centre.relay.delta("shop"))) == {"a", "b", "web"}
        controllers.translator.accept_removals("shop")
        await centre.relay.until(holds("web"))
        await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld") is None)
    assert "configmaps" in condition(obj, "RemovalHeld")["message"]


async def test_the_last_object_of_a_kind_that_was_deleted_while_the_centre_was_down_goes(centre):
    await centre.apply(config("a"), deployment("web"), placement())
    async with centre.running():
        await centre.relay.until(holds("a", "web"))
    await centre.wds.delete(config_key("a"))
    async with centre.running():
        await centre.relay.until(holds("web"))


async def test_of_a_space_that_the_ledger_never_knew_far_the_last_of_a_kind_is_held(centre):
    await centre.apply(config("a"), deployment("web"), placement())
    async with centre.running():
        await centre.relay.until(holds("a", "web"))
    await centre.wds.delete(config_key("a"))
    centre.relay.space_marks.clear()
    async with centre.running():
        await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld"))
        assert set(await centre.relay.entries(centre.relay.delta("shop"))) == {"a", "web"}


async def test_the_last_object_of_all_is_held(centre):
    await centre.apply(config("a"), placement())
    async with centre.running():
        await centre.relay.until(holds("a"))
    await centre.wds.delete(config_key("a"))
    async with centre.running():
        await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld"))


async def test_of_a_space_that_was_rolled_back_nothing_is_taken_for_deleted_until_it_is_whole(
    centre,
):
    await centre.apply(config("a"), deployment("web"), placement())
    async with centre.running():
        await centre.relay.until(holds("a", "web"))
    (space, mark) = next(iter(centre.relay.space_marks.items()))
    await centre.wds.delete(config_key("a"))
    # As if it had been further than it is now.
    centre.relay.space_marks[space] = SpaceMark(mark.revision + 1000)
    for _ in range(2):
        # It is no better after a restart, though its revision is not lower any more.
        async with centre.running():
            await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld"))
            assert set(await centre.relay.entries(centre.relay.delta("shop"))) == {"a", "web"}
            await eventually(lambda: centre.relay.space_marks[space].rolled_back)
    async with centre.running():
        await centre.apply(config("a"))
        await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld") is None)
        await eventually(lambda: not centre.relay.space_marks[space].rolled_back)
    await centre.wds.delete(config_key("a"))
    async with centre.running():
        await centre.relay.until(holds("web"))


class ServerSpace(MemorySpace):
    """As an API server, it does not say what was deleted."""

    absence = None


@pytest.mark.parametrize("count", [1, 3])
async def test_what_a_restored_ledger_misses_is_held_one_or_many_until_a_person_lets_go(
    centre, count
):
    """The space is an API server's: it went on, while the ledger went back."""
    centre.wds = ServerSpace(centre.clock, centre.dice)
    centre.inventory = ServerSpace(centre.clock, centre.dice)
    names = [f"c{at}" for at in range(30)]
    await centre.apply(*map(config, names), placement())
    await centre.inventory.apply(location("l1"), USER)
    await centre.inventory.apply(location("l2"), USER)
    async with centre.running():
        await centre.relay.until(holds(*names))
        await centre.relay.until(lambda relay: locations_in(relay) == {"l1", "l2"})
    for name in names[:count]:
        await centre.wds.delete(config_key(name))
    await centre.inventory.delete(L1)
    for space, mark in centre.relay.space_marks.items():
        centre.relay.space_marks[space] = SpaceMark(mark.revision, rolled_back=True)
    for _ in range(2):
        async with centre.running() as controllers:
            await eventually(lambda: "shop" in controllers.translator.placements.held)
            await eventually(lambda: "locations/RemovalHeld" in controllers.errors)
            assert len(await centre.relay.entries(centre.relay.delta("shop"))) == 30
            assert locations_in(centre.relay) == {"l1", "l2"}
    async with centre.running() as controllers:
        await eventually(lambda: "shop" in controllers.translator.placements.held)
        controllers.translator.accept_removals("shop")
        await eventually(controllers.mailboxes.registry.waiting)
        controllers.mailboxes.accept_removals(controllers.mailboxes.registry.waiting())
        await centre.relay.until(holds(*names[count:]))
        await centre.relay.until(lambda relay: locations_in(relay) == {"l2"})


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


async def test_another_space_deletes_nothing_of_the_first_one_until_someone_accepts(centre):
    await centre.apply(config("a"), placement())
    async with centre.running():
        await centre.relay.until(holds("a"))
    first = centre.relay.delta("shop")
    centre.wds = MemorySpace(centre.clock, centre.dice)
    await centre.apply(config("b"), placement("other"))
    async with centre.running() as controllers:
        await centre.relay.until(holds("b", of="other"))
        assert centre.relay.delta("shop") == first
        await eventually(lambda: not any(controllers.unready().values()))
        assert controllers.lost_spaces() == {first.source.space: [first]}
        assert await controllers.accept_lost_space(first.source.space) == 1
        assert not controllers.lost_spaces()
        await centre.relay.until(lambda relay: lists_not(relay, first.source.key))
    assert centre.relay.delta("shop") is None
    assert centre.relay.delta("other")


async def test_an_inventory_in_the_place_of_a_lost_one_takes_its_places_when_someone_accepts(
    centre,
):
    await centre.inventory.apply(target("s1", "/emea/s1"), USER)
    async with centre.running():
        await centre.relay.until(lambda relay: relay.held())
    lost = await centre.inventory.identity()
    ((key, first),) = centre.relay.held().items()
    centre.inventory = MemorySpace(centre.clock, centre.dice)
    await centre.inventory.apply(target("s1", "/emea/s1"), USER)
    async with centre.running() as controllers:
        told = await centre.until_status(
            S1, lambda obj: condition(obj, "Registered"), centre.inventory
        )
        assert f"leafcast accept --space {lost}" in condition(told, "Registered")["message"]
        assert centre.relay.held() == {key: first}
        await eventually(lambda: not any(controllers.unready().values()))
        assert await controllers.accept_lost_space(lost) == 1
        await centre.relay.until(lambda relay: len(relay.held()) == 2)
        # Whoever hangs there is never without a place.
        await centre.relay.until(lambda relay: key not in relay.held())
        (second,) = centre.relay.held().values()
    assert second.path == first.path
    assert second.destination != first.destination
