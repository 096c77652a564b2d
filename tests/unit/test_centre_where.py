"""What a SinglePlacementSlice lists: where a placement goes, as it is now."""

import pytest

from controllers.core.inventory.where import DESTINATIONS_MAX, InventoryIndex
from schemas.api.parsing import parse_kind
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector
from schemas.records.placements import result_key
from schemas.values.groups import NOTE
from tests.awaiting import until_object
from tests.unit.centre_world import (
    SHOP,
    USER,
    Centre,
    config,
    location,
    placement,
    target,
)

pytestmark = pytest.mark.leaps

PROD = {"matchLabels": {"env": "prod"}}


@pytest.fixture
def centre(tmp_path):
    return Centre(tmp_path / "keys")


async def test_a_slice_lists_each_pair_of_location_and_sync_target(centre):
    await centre.inventory.apply(location("l1", PROD, tier="a"), USER)
    await centre.inventory.apply(location("l2", {"matchLabels": {"id": "s2"}}, tier="a"), USER)
    await centre.inventory.apply(location("l3", tier="b"), USER)
    made = {}
    for name, env in [("s1", "prod"), ("s2", "prod"), ("s3", "test")]:
        obj = target(name, f"/emea/{name}", id=name, env=env)
        made[name] = (await centre.inventory.apply(obj, USER))["metadata"]["uid"]
    await centre.apply(config("a"), placement(selectors=[{"matchLabels": {"tier": "a"}}]))
    async with centre.running():
        found = await until_listed(centre, ["l1/s1", "l1/s2", "l2/s2"])
        await centre.inventory.apply(target("s3", "/emea/s3", id="s3", env="prod"), USER)
        await until_listed(centre, ["l1/s1", "l1/s2", "l1/s3", "l2/s2"])
        await centre.inventory.apply(location("l3", tier="a"), USER)
        await until_listed(centre, ["l1/s1", "l1/s2", "l1/s3", "l2/s2", "l3/s1", "l3/s2", "l3/s3"])
        await centre.inventory.delete(ObjectKey("edge.kubestellar.io", "locations", "", "l1"))
        await centre.inventory.delete(ObjectKey("edge.kubestellar.io", "synctargets", "", "s1"))
        await until_listed(centre, ["l2/s2", "l3/s2", "l3/s3"])
        await centre.apply(placement(selectors=[]))
        await until_listed(centre, [])
    assert found["destinations"][0] == {
        "cluster": await centre.inventory.identity(),
        "locationName": "l1",
        "syncTargetName": "s1",
        "syncTargetUID": made["s1"],
    }
    [owner] = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("EdgePlacement", "shop")
    assert owner["uid"] == (await centre.wds.get(SHOP))["metadata"]["uid"]


async def test_a_slice_goes_with_its_placement_and_comes_back_without(centre):
    await centre.inventory.apply(location("l1"), USER)
    await centre.inventory.apply(target("s1", "/emea/s1"), USER)
    await centre.apply(config("a"), placement())
    async with centre.running():
        await until_listed(centre, ["l1/s1"])
        await centre.wds.delete(result_key("shop"))
        await until_listed(centre, ["l1/s1"])
        await centre.wds.delete(SHOP)
        await until_gone(centre)


async def test_a_slice_is_not_written_again_by_a_restart(centre):
    await centre.inventory.apply(location("l1"), USER)
    await centre.inventory.apply(target("s1", "/emea/s1"), USER)
    await centre.apply(config("a"), placement())
    async with centre.running():
        before = await until_listed(centre, ["l1/s1"])
    async with centre.running() as controllers:
        await controllers.caught_up()
        await centre.apply(config("b"), placement("other"))
        await until_listed(centre, ["l1/s1"], "other")
        assert await centre.wds.get(result_key("shop")) == before


async def test_a_slice_of_a_placement_that_vanished_unseen_stays_until_that_is_accepted(centre):
    await centre.inventory.apply(location("l1"), USER)
    await centre.inventory.apply(target("s1", "/emea/s1"), USER)
    await centre.apply(*(config(f"c{at}") for at in range(12)), placement())
    async with centre.running():
        await until_listed(centre, ["l1/s1"])
    await centre.wds.delete(SHOP)
    async with centre.running() as controllers:
        await controllers.caught_up()
        assert "edgeplacement/shop" in controllers.errors
        await centre.apply(placement("other"))
        await until_listed(centre, ["l1/s1"], "other")
        assert await centre.wds.get(result_key("shop"))
        controllers.translator.accept_removals("shop")
        await until_gone(centre)


async def test_over_the_limit_a_slice_says_so_and_lists_none(centre):
    await centre.inventory.apply(location("l1"), USER)
    for at in range(DESTINATIONS_MAX):
        await centre.inventory.apply(target(f"s{at}", f"/emea/s{at}"), USER)
    await centre.apply(config("a"), placement())
    async with centre.running():
        await until(centre, lambda found: len(found["destinations"]) == DESTINATIONS_MAX)
        await centre.inventory.apply(target("one-more", "/emea/one-more"), USER)
        full = await until(centre, lambda found: not found["destinations"])
        await centre.inventory.delete(ObjectKey("edge.kubestellar.io", "synctargets", "", "s7"))
        await until(centre, lambda found: len(found["destinations"]) == DESTINATIONS_MAX)
        left = await centre.wds.get(result_key("shop"))
    assert f"more than {DESTINATIONS_MAX}" in full["metadata"]["annotations"][NOTE]
    assert NOTE not in left["metadata"].get("annotations", {})


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ({}, ["a", "b", "c"]),
        ({"matchLabels": {"id": "a"}}, ["a"]),
        ({"matchLabels": {"id": "none"}}, []),
        ({"matchLabels": {"env": "prod", "id": "b"}}, ["b"]),
        ({"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]}, ["c"]),
        ({"matchExpressions": [{"key": "id", "operator": "In", "values": ["a", "c"]}]}, ["a", "c"]),
    ],
)
def test_an_instance_selector_chooses_by_labels(selector, found):
    inventory = InventoryIndex("space")
    for name, labels in [("a", {"env": "prod"}), ("b", {"env": "prod"}), ("c", {})]:
        inventory.put_target(parse_kind(target(name, f"/emea/{name}", id=name, **labels)))
    inventory.locations["l"] = parse_kind(location("l", selector))
    pairs = inventory.pairs([LabelSelector()])
    assert [pair.sync_target_name for pair in pairs] == found


async def until(centre, predicate, name="shop"):
    return await centre.until_status(result_key(name), predicate)


async def until_listed(centre, pairs, name="shop"):
    def listed(found):
        return [f"{p['locationName']}/{p['syncTargetName']}" for p in found["destinations"]]

    return await until(centre, lambda found: listed(found) == pairs, name)


async def until_gone(centre):
    await until_object(centre.wds, result_key("shop"), lambda found: found is None)
