"""The inventory becomes records, and whoever gets no place is told why."""

import asyncio

import pytest

from controllers.issuing.nodes import add_node, remove_node
from relay.adapters.server.nkey_pairs import new_user_nkey
from schemas.objects.objects import ObjectKey
from schemas.records.records import LocationRecord, Profile
from schemas.values.identity import NodePath
from tests.awaiting import eventually
from tests.doubles.memory_space import MemorySpace
from tests.unit.centre_world import USER, Centre, condition, config, location, placement, target

pytestmark = pytest.mark.leaps


@pytest.fixture
def centre(tmp_path):
    return Centre(tmp_path / "keys")


async def test_the_inventory_becomes_profiles_and_location_records(centre):
    await centre.inventory.apply(target("s1", "/emea/s1", site="s1"), USER)
    await centre.inventory.apply(location("emea", region="emea"), USER)
    async with centre.running():
        await centre.relay.until(lambda relay: len(_inventory(relay)) == 2)
    profile = next(item for item in _inventory(centre.relay) if isinstance(item, Profile))
    place = next(item for item in _inventory(centre.relay) if isinstance(item, LocationRecord))
    space = await centre.inventory.identity()
    assert profile.destination.startswith(f"{space}-mb-")
    assert (str(profile.path), profile.labels) == ("/emea/s1", {"site": "s1"})
    assert place.labels == {"region": "emea"}
    assert place.instance_selector.is_everything


def _inventory(relay):
    kinds = (Profile, LocationRecord)
    return [item for item in relay.held().values() if isinstance(item, kinds)]


async def test_a_deleted_sync_target_is_erased_once_no_snapshot_lists_it(centre):
    await centre.inventory.apply(target("s1", "/emea/s1"), USER)
    async with centre.running():
        await centre.relay.until(lambda relay: len(_inventory(relay)) == 1)
        await centre.inventory.delete(ObjectKey("edge.kubestellar.io", "synctargets", "", "s1"))
        await centre.relay.until(lambda relay: not _inventory(relay))
    assert await centre.relay.listed() == {}


async def test_an_inventory_that_vanished_unseen_is_kept(centre):
    await centre.inventory.apply(target("s1", "/emea/s1"), USER)
    async with centre.running():
        await centre.relay.until(lambda relay: len(_inventory(relay)) == 1)
    await centre.inventory.delete(ObjectKey("edge.kubestellar.io", "synctargets", "", "s1"))
    async with centre.running() as controllers:
        await eventually(lambda: "synctargets/RemovalHeld" in controllers.errors)
        assert len(_inventory(centre.relay)) == 1
        controllers.mailboxes.accept_removals()
        await centre.relay.until(lambda relay: not _inventory(relay))


class LateSpace(MemorySpace):
    """Tells nothing before it is let."""

    def __init__(self, clock, dice):
        super().__init__(clock, dice)
        self.let = asyncio.Event()

    async def follow(self, interests, tell):
        await self.let.wait()
        await super().follow(interests, tell)


async def test_who_waits_for_the_ledger_waits_for_what_no_placement_was_known_for(centre):
    centre.wds = LateSpace(centre.clock, centre.dice)
    centre.wds.let.set()
    await centre.inventory.apply(location("all"), USER)
    for name in ("s1", "s2", "s3"):
        await centre.inventory.apply(target(name, f"/emea/{name}"), USER)
    await centre.apply(config("a"), placement())
    async with centre.running() as controllers:
        await add_nodes(controllers, centre, "/emea", "/emea/s1", "/emea/s2", "/emea/s3")
        await controllers.caught_up()
    await centre.inventory.delete(ObjectKey("edge.kubestellar.io", "synctargets", "", "s1"))
    # What the placement loses at that node nobody knows before its space is read.
    centre.wds.let.clear()
    async with centre.running() as controllers, asyncio.TaskGroup() as group:
        caught_up = group.create_task(controllers.caught_up())
        await controllers.mailboxes.caught_up()
        assert len(_profiles(controllers)) == 3
        centre.wds.let.set()
        await caught_up
        assert sorted(_profiles(controllers)) == ["s2", "s3"]


def _profiles(controllers):
    records = controllers.issuer.records.values()
    return [record.source.name for record in records if isinstance(record, Profile)]


async def test_a_path_has_one_claimant_and_the_other_is_told_of_both(centre):
    key = ObjectKey("edge.kubestellar.io", "synctargets", "", "s2")
    await centre.inventory.apply(target("s1", "/emea/s1"), USER)
    await centre.inventory.apply(target("s2", "/emea/s1"), USER)
    async with centre.running() as controllers:
        told = await centre.until_status(
            key, lambda obj: condition(obj, "Registered"), centre.inventory
        )
        await centre.relay.until(lambda relay: len(_inventory(relay)) == 1)
        await add_nodes(controllers, centre, "/emea", "/emea/s1")
        await centre.inventory.delete(ObjectKey("edge.kubestellar.io", "synctargets", "", "s1"))
        await centre.until_status(
            key, lambda obj: condition(obj, "Registered")["status"] == "True", centre.inventory
        )
        await centre.relay.until(lambda relay: [p.source.name for p in _inventory(relay)] == ["s2"])
    message = condition(told, "Registered")["message"]
    assert '"s1"' in message
    assert '"s2"' in message
    assert condition(told, "Registered")["reason"] == "PathTaken"


async def test_who_loses_its_path_to_an_older_one_is_no_destination_any_more(centre):
    await centre.inventory.apply(target("s1", "/emea/s9"), USER)
    await centre.inventory.apply(target("s2", "/emea/s1"), USER)
    async with centre.running():
        await centre.relay.until(lambda relay: len(_inventory(relay)) == 2)
        await centre.inventory.apply(target("s1", "/emea/s1"), USER)
        await centre.relay.until(
            lambda relay: (
                [(p.source.name, str(p.path)) for p in _inventory(relay)] == [("s1", "/emea/s1")]
            )
        )


async def test_a_sync_target_whose_path_is_no_node_is_told_until_it_is_one(centre):
    key = ObjectKey("edge.kubestellar.io", "synctargets", "", "s1")
    await centre.inventory.apply(target("s1", "/emea/s1"), USER)
    async with centre.running() as controllers:
        told = await centre.until_status(
            key, lambda obj: condition(obj, "Registered"), centre.inventory
        )
        await centre.relay.until(lambda relay: len(_inventory(relay)) == 1)
        await add_nodes(controllers, centre, "/emea", "/emea/s1")
        await centre.until_status(
            key, lambda obj: condition(obj, "Registered")["status"] == "True", centre.inventory
        )
        issuer = controllers.issuer
        await remove_node(issuer, NodePath.parse("/emea/s1"))
        await centre.until_status(
            key, lambda obj: condition(obj, "Registered")["reason"] == "NoNode", centre.inventory
        )
    assert condition(told, "Registered")["reason"] == "NoNode"
    assert "leafcast node add /emea/s1" in condition(told, "Registered")["message"]


async def add_nodes(controllers, centre, *paths):
    for path in map(NodePath.parse, paths):
        entropy, issuer = centre.dice.entropy(32), controllers.issuer
        await add_node(issuer, path, entropy, new_user_nkey)


async def test_a_sync_target_without_a_path_is_told_how_to_get_one(centre):
    key = ObjectKey("edge.kubestellar.io", "synctargets", "", "s1")
    await centre.inventory.apply(target("s1"), USER)
    async with centre.running():
        told = await centre.until_status(
            key, lambda obj: condition(obj, "Registered"), centre.inventory
        )
    assert "leafcast.io/path" in condition(told, "Registered")["message"]
    assert not _inventory(centre.relay)


async def test_who_has_no_place_is_named_until_they_have_one(centre):
    bare = target("s1", "/emea/s1")
    bare["metadata"].pop("annotations")
    await centre.inventory.apply(bare, USER)
    async with centre.running() as controllers:
        await eventually(lambda: "no annotation" in controllers.mailboxes.unplaced.get("s1", ""))
        await centre.inventory.delete(ObjectKey("edge.kubestellar.io", "synctargets", "", "s1"))
        await eventually(lambda: not controllers.mailboxes.unplaced)
