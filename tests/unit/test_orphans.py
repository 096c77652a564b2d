"""What edges hold and no object says is kept and listed, until someone adopts or withdraws it."""

import asyncio

import pytest
from click.testing import CliRunner

from leafcast.ask.api import ApiError
from leafcast.cli.commands.adopt import adopt
from leafcast.daemon.approvals import Approvals
from relay.adapters.spaces.memory_space import MemorySpace
from tests.awaiting import eventually
from tests.memory_tree import MANAGER, config_map, inventory, memory_tree, placement
from tests.unit.centre_world import config_key
from tests.unit.centre_world import placement_key as key_of
from tests.unit.test_recovery import (
    SITE,
    TREE,
    A,
    come_back,
    deliver,
    lose,
    recovered,
    revisions,
    until_site,
)


class Running:
    """A memory tree as the daemon's verbs see one that runs."""

    def __init__(self, tree):
        self.tree = tree

    @property
    def controllers(self):
        return self.tree.controllers

    @property
    def workloads(self):
        return self.tree.workloads

    @property
    def nodes(self):
        centre = next(iter(self.tree.drivers))
        return {centre: type("Centre", (), {"driver": self.tree.centre})}


async def lost_with_its_objects(tree):
    """The centre is lost, and so are its objects; an empty space of another identity is there."""
    await lose(tree)
    tree.workloads = MemorySpace(tree.clock, tree.dice)
    await come_back(tree)
    await recovered(tree)


async def test_with_its_objects_lost_an_orphan_is_adopted_and_nothing_is_applied_again(tmp_path):
    async with memory_tree(tmp_path, TREE) as tree:
        approvals = Approvals(Running(tree))
        await deliver(tree, "a", "b")
        held = await revisions(tree)
        await lost_with_its_objects(tree)
        assert [item["name"] for item in (await approvals.orphans())["orphans"]] == ["shop"]
        assert await revisions(tree) == held
        assert await approvals.adopt("shop") == {"objects": 3}
        assert await tree.workloads.get(A) is not None
        await tree.until("shop", lambda s: s.complete and s.states == {"synced": 1})
        assert (await approvals.orphans())["orphans"] == []
        # It is a placement like any other now.
        await tree.apply(config_map("b", "shop", at="2"))
        async with asyncio.timeout(60):
            while (await tree.clusters[SITE].get(config_key("b")))["data"]["at"] != "2":
                await tree.drivers[SITE].progress()
        assert (await revisions(tree))["a"] == held["a"]


async def test_an_orphan_is_withdrawn_and_what_another_placement_wants_stays(tmp_path):
    async with memory_tree(tmp_path, TREE) as tree:
        approvals = Approvals(Running(tree))
        await deliver(tree, "a", "b")
        held = await revisions(tree)
        await lost_with_its_objects(tree)
        await tree.apply(config_map("a", "shop", at="1"), placement("shop", "shop"))
        await tree.controllers.caught_up()
        (orphan,) = (await approvals.orphans())["orphans"]
        assert not orphan["here"]
        with pytest.raises(ApiError, match="already"):
            await approvals.adopt("shop")
        with pytest.raises(ApiError, match='"shop" of a space "nope"') as refused:
            await approvals.withdraw("shop", space="nope")
        assert f"shop (space {orphan['space']})" in refused.value.remedy
        await approvals.withdraw("shop", space=orphan["space"][:6])
        await until_site(tree, {"a"})
        assert (await revisions(tree))["a"] == held["a"]
        assert (await approvals.orphans())["orphans"] == []
        with pytest.raises(ApiError, match="no orphan"):
            await approvals.withdraw("shop")


async def orphaned(tree):
    """The space is older than the ledger's loss: it knows nothing of the placement any more."""
    await deliver(tree, "a", "b")
    await lose(tree)
    for key in (config_key("a"), config_key("b"), key_of("shop")):
        await tree.workloads.delete(key)
    await come_back(tree)
    await recovered(tree)


async def test_an_orphan_of_this_space_waits_for_adopt_and_is_no_held_removal(tmp_path):
    async with memory_tree(tmp_path, TREE) as tree:
        approvals = Approvals(Running(tree))
        await orphaned(tree)
        held = await revisions(tree)
        with pytest.raises(ApiError, match="leafcast adopt shop"):
            await approvals.accept("shop")
        await approvals.adopt("shop")
        assert not tree.recovery.notes.recovered
        assert (await approvals.held())["placements"] == {}
        assert await revisions(tree) == held


async def test_an_orphan_of_this_space_is_withdrawn(tmp_path):
    async with memory_tree(tmp_path, TREE) as tree:
        approvals = Approvals(Running(tree))
        await orphaned(tree)
        await approvals.withdraw("shop")
        await until_site(tree, set())
        assert not tree.recovery.notes.recovered


async def test_the_centre_waits_for_each_child_until_someone_goes_on_without_it(tmp_path):
    async with memory_tree(tmp_path, ["/apac", "/apac/s9", *TREE]) as tree:
        approvals = Approvals(Running(tree))
        await deliver(tree, "a", count=2)
        await lose(tree)
        tree.network.cut(next(path for path in tree.drivers if str(path) == "/apac"))
        await come_back(tree)

        async def awaits_apac():
            return (await approvals.orphans())["recovering"] == ["/apac"]

        await eventually(awaits_apac)
        assert "_index" not in tree.centre.node.records
        assert await tree.clusters[SITE].get(A) is not None
        with pytest.raises(ApiError, match="reads its ledger back from /apac"):
            await approvals.accept("shop")
        with pytest.raises(ApiError, match="awaited are: /apac"):
            await approvals.go_on_without("/emea")
        await approvals.go_on_without("/apac")
        await recovered(tree)
        assert "_index" in tree.centre.node.records
        assert (await approvals.orphans())["recovering"] == []


async def test_a_lost_inventory_is_adopted_and_no_destination_loses_a_thing(tmp_path):
    async with memory_tree(tmp_path, TREE) as tree:
        approvals = Approvals(Running(tree))
        await deliver(tree, "a", "b")
        held = await revisions(tree)
        await lose(tree)
        tree.inventory = MemorySpace(tree.clock, tree.dice)
        await come_back(tree)
        await recovered(tree)
        assert (await approvals.orphans())["strangers"] == 2
        # A SyncTarget alone does not take the place: no Location of its space would select it.
        target, _ = inventory([SITE])
        await tree.inventory.apply(target, MANAGER)
        await tree.controllers.caught_up()
        assert tree.drivers[SITE].node._state.edge.profile.source.space != await here(tree)
        assert await approvals.adopt_inventory() == {"objects": 2}
        async with asyncio.timeout(60):
            space = await here(tree)
            await tree.drivers[SITE].until(
                lambda node: node._state.edge.profile.source.space == space
            )
        await tree.until("shop", lambda s: s.complete and s.states == {"synced": 1})
        assert await revisions(tree) == held
        assert (await approvals.orphans())["strangers"] == 0
        kept = tree.centre.node._state.where
        assert {profile.source.space for profile in kept.profiles.values()} == {space}
        assert {location.source.space for location in kept.locations.values()} == {space}


async def here(tree):
    return await tree.inventory.identity()


@pytest.mark.parametrize("options", [["--space", "x"], ["--inventory", "--space", "x"]])
def test_a_space_is_refused_where_no_placement_is_named(options):
    done = CliRunner().invoke(adopt, options)
    assert done.exit_code == 2
    assert "--space goes with a PLACEMENT" in done.output
