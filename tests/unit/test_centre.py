"""A placement and its objects become deltas: few, small, and none twice."""

import pytest

from tests.unit.centre_world import (
    SHOP,
    USER,
    Centre,
    config,
    config_key,
    holds,
    lists,
    lists_exactly,
    lists_not,
    placement,
)

pytestmark = pytest.mark.leaps


@pytest.fixture
def centre(tmp_path):
    return Centre(tmp_path / "keys")


async def test_a_placement_and_its_objects_become_one_delta(centre):
    await centre.apply(*(config(f"c{at}") for at in range(30)), placement())
    async with centre.running():
        await centre.relay.until(holds(*(f"c{at}" for at in range(30))))
    assert len(centre.relay.deltas()) == 1


async def test_a_burst_of_objects_makes_few_deltas(centre):
    await centre.apply(placement())
    async with centre.running():
        await centre.relay.until(holds())
        await centre.apply(*(config(f"c{at}") for at in range(30)))
        await centre.relay.until(holds(*(f"c{at}" for at in range(30))))
    assert len(centre.relay.deltas()) <= 4


async def test_a_changed_object_costs_its_own_blob_and_its_part_of_the_manifest(centre):
    await centre.apply(*(config(f"c{at}") for at in range(500)), placement())
    async with centre.running():
        await centre.relay.until(holds(*(f"c{at}" for at in range(500))))
        before = centre.relay.delta("shop")
        await centre.apply(config("c7", value="2"))
        await centre.relay.until(lambda relay: relay.delta("shop") != before)
    writes = [item for item in centre.relay.blob_writes if item]
    assert len(writes[1]) > 500
    change = [item for item in writes if len(item) == 3]
    assert change, [len(item) for item in writes]


async def test_a_restart_issues_no_delta_again(centre):
    await centre.apply(config("a"), placement())
    async with centre.running():
        await centre.relay.until(holds("a"))
    before = centre.relay.deltas()
    await centre.wds.set_status(config_key("a"), {"seen": "yes"})
    async with centre.running():
        await centre.until_status(SHOP, lambda obj: "status" in obj)
        await centre.apply(config("b"))
        await centre.relay.until(holds("a", "b"))
    (new,) = centre.relay.deltas()[len(before) :]
    assert new.generation > before[-1].generation


async def test_a_new_status_is_no_news_to_destinations(centre):
    await centre.apply(config("a"), placement())
    async with centre.running():
        await centre.relay.until(holds("a"))
        await centre.wds.set_status(config_key("a"), {"ready": "yes"})
        await centre.apply(config("b"))
        await centre.relay.until(holds("a", "b"))
    first, second = [await centre.relay.entries(head) for head in centre.relay.deltas()]
    assert first["a"] == second["a"]


async def test_a_placement_selects_what_was_there_when_nothing_selected_its_kind(centre):
    await centre.apply(config("a"), placement())
    async with centre.running() as controllers:
        await centre.relay.until(holds("a"))
        await centre.wds.delete(SHOP)
        await controllers.caught_up()
        # What is told first has the kind followed no more, and what is told next has it again.
        await centre.wds.apply(config("b"), USER)
        await centre.wds.apply(placement("till"), USER)
        await centre.relay.until(holds("a", "b", of="till"))


async def test_a_deleted_object_is_lost_and_the_delta_says_when(centre):
    await centre.apply(config("a"), config("b"), placement())
    async with centre.running():
        await centre.relay.until(holds("a", "b"))
        assert centre.relay.delta("shop").last_loss == 0
        await centre.wds.delete(config_key("a"))
        await centre.relay.until(holds("b"))
        lost = centre.relay.delta("shop")
        await centre.apply(config("c"))
        await centre.relay.until(holds("b", "c"))
    assert lost.last_loss == lost.generation
    assert centre.relay.delta("shop").last_loss == lost.generation


async def test_a_deleted_placement_is_listed_for_a_moment_and_then_erased(centre):
    await centre.apply(config("a"), placement())
    async with centre.running():
        await centre.relay.until(holds("a"))
        first = centre.relay.delta("shop")
        await centre.apply(config("b"))
        await centre.wds.delete(config_key("a"))
        await centre.relay.until(lambda relay: settled(relay, first.generation))
        key = first.source.key
        assert await lists(centre.relay, key)
        await centre.wds.delete(SHOP)
        await centre.relay.until(lambda relay: lists_not(relay, key))
    assert centre.relay.delta("shop") is None


async def test_a_placement_made_again_supersedes_the_deleted_one_and_may_be_less(centre):
    await centre.apply(config("a"), placement())
    async with centre.running():
        await centre.relay.until(holds("a"))
        first = centre.relay.delta("shop")
        await centre.wds.delete(SHOP)
        await centre.relay.until(lambda relay: relay.delta("shop") is None)
        await centre.apply(placement())
        await centre.relay.until(holds("a"))
        again = centre.relay.delta("shop")
        await centre.relay.until(lambda relay: settled(relay, again.generation))
        assert await lists_exactly(centre.relay, again)
    assert again.generation > first.generation
    assert again.last_loss == again.generation


async def test_what_one_change_moves_is_gained_before_a_snapshot_settles_its_loss(centre):
    clauses = {name: {"labelSelectors": [{"matchLabels": {"to": name}}]} for name in "ab"}
    await centre.apply(*(placement(name, clause) for name, clause in clauses.items()))
    await centre.apply(config("moving", to="b"), config("a", to="a"), config("b", to="b"))
    async with centre.running():
        await centre.relay.until(holds("moving", "b", of="b"))
        await centre.apply(config("moving", to="a"))
        await centre.relay.until(holds("b", of="b"))
        losing = centre.relay.delta("b")
        await centre.relay.until(lambda relay: settled(relay, losing.generation))
        gaining = centre.relay.delta("a")
        await centre.relay.until(holds("moving", "a", of="a"))
        assert await lists_exactly(centre.relay, gaining)


def settled(relay, generation):
    return relay.snapshots[-1].settled >= generation
