"""What nobody said is held for a person's word, shown, and goes only for what was accepted."""

import asyncio

import pytest

from leafcast.ask.api import ApiError
from leafcast.daemon.verbs.approvals import Approvals
from schemas.objects.objects import ObjectKey
from schemas.values.identity import NodePath
from tests.memory_tree import MANAGER, config_map, memory_tree, placement
from tests.unit.centre_world import Centre, condition, config, config_key, deployment, holds
from tests.unit.centre_world import placement as shop_placement
from tests.unit.centre_world import placement_key as key_of

pytestmark = pytest.mark.leaps

SITE = NodePath.parse("/emea/s1")
NAMES = [f"c{at}" for at in range(15)]


def synced(count):
    return lambda found: found.exact and found.summary.states == {"synced": count}


async def test_too_many_vanish_unseen_and_the_edge_keeps_them_until_someone_accepts(tmp_path):
    async with memory_tree(tmp_path, ["/emea", "/emea/s1"]) as tree:
        approvals = Approvals(tree)
        await tree.apply(*(config_map(name, "shop", at="1") for name in NAMES))
        await tree.apply(placement("shop", "shop"))
        await tree.until("shop", synced(1))
        await tree.stop_controllers()
        for name in NAMES[:12]:
            await tree.workloads.delete(config_key(name))
        await tree.control(tree.group)
        await tree.controllers.caught_up()
        await tree.controllers.written(["shop"])
        held = (await approvals.held())["placements"]["shop"]
        assert "12 of 15 objects" in held
        assert "leafcast accept shop" in held
        said = condition(await tree.workloads.get(key_of("shop")), "RemovalHeld")
        assert said["message"] == held
        cluster = tree.clusters[SITE]
        assert len((await cluster.list("", "configmaps")).objects) == 15
        assert (await approvals.accept("shop"))["accepted"] == held
        async with asyncio.timeout(60):
            while len((await cluster.list("", "configmaps")).objects) != 3:
                await tree.drivers[SITE].progress()
        with pytest.raises(ApiError, match="no removal"):
            await approvals.accept("shop")


async def test_a_placement_that_vanished_is_listed_and_told_of_until_someone_accepts(tmp_path):
    async with memory_tree(tmp_path, ["/emea", "/emea/s1"]) as tree:
        approvals = Approvals(tree)
        await tree.apply(config_map("a", "shop", at="1"), placement("shop", "shop"))
        await tree.until("shop", synced(1))
        await tree.stop_controllers()
        await tree.workloads.delete(config_key("a"))
        await tree.workloads.delete(key_of("shop"))
        await tree.control(tree.group)
        await tree.controllers.caught_up()
        assert list((await approvals.held())["placements"]) == ["shop"]
        assert [said[:2] for said in tree.noted] == [("RemovalHeld", "edgeplacement/shop")]
        await approvals.accept("shop")
        assert await approvals.held() == {
            "placements": {},
            "inventory": {},
            "spaces": {},
            "ledger": "",
        }
        key = ObjectKey("", "configmaps", "shop", "a")
        async with asyncio.timeout(60):
            while await tree.clusters[SITE].get(key) is not None:
                await tree.drivers[SITE].progress()


async def test_an_inventory_that_vanished_is_held_until_someone_accepts(tmp_path):
    async with memory_tree(tmp_path, ["/emea", "/emea/s1"]) as tree:
        approvals = Approvals(tree)
        await tree.controllers.caught_up()
        await tree.stop_controllers()
        for resource in ("synctargets", "locations"):
            key = ObjectKey("edge.kubestellar.io", resource, "", "emea-s1")
            await tree.inventory.delete(key)
        await tree.control(tree.group)
        await tree.controllers.caught_up()
        assert set((await approvals.held())["inventory"]) == {"synctargets", "locations"}
        await approvals.accept(inventory=True)
        await tree.controllers.caught_up()
        assert (await approvals.held())["inventory"] == {}


async def test_accepting_for_one_placement_lets_nothing_of_another_one_go(tmp_path):
    centre = Centre(tmp_path / "keys")
    placements = shop_placement(), shop_placement("twin")
    await centre.apply(config("a"), config("b"), deployment("web"), *placements)
    async with centre.running():
        await centre.relay.until(holds("a", "b", "web"))
        await centre.relay.until(holds("a", "b", "web", of="twin"))
    for name in ("a", "b"):
        await centre.wds.delete(config_key(name))
    async with centre.running() as controllers:
        await controllers.caught_up()
        assert set(controllers.translator.placements.held) == {"shop", "twin"}
        controllers.translator.accept_removals("shop")
        await centre.relay.until(holds("web"))
        # Whatever has it looked at again, the other one keeps what nobody let go.
        await centre.apply(deployment("api"))
        await centre.relay.until(holds("a", "api", "b", "web", of="twin"))
        assert set(controllers.translator.placements.held) == {"twin"}


async def test_what_was_applied_again_is_no_longer_held(tmp_path):
    async with memory_tree(tmp_path, ["/emea", "/emea/s1"]) as tree:
        await tree.apply(config_map("a", "shop", at="1"), placement("shop", "shop"))
        await tree.until("shop", synced(1))
        await tree.stop_controllers()
        await tree.workloads.delete(config_key("a"))
        await tree.control(tree.group)
        await tree.controllers.caught_up()
        assert "configmaps/shop/a" in tree.controllers.translator.placements.held["shop"]
        await tree.workloads.apply(config_map("a", "shop", at="1"), MANAGER)
        await tree.controllers.caught_up()
        assert tree.controllers.translator.placements.held == {}


async def test_a_centre_that_is_behind_says_so_and_calls_it_no_defect(tmp_path, monkeypatch):
    monkeypatch.setattr("leafcast.daemon.verbs.approvals.SETTLED_SECONDS_MAX", 0.05)
    async with memory_tree(tmp_path, []) as tree:
        await tree.stop_controllers()
        await tree.apply(placement("shop", "shop"))
        with pytest.raises(ApiError, match=r"behind its spaces.*try again"):
            await Approvals(tree).accept("shop")
