"""Another key of the fleet, or of a placement: all follow, whoever was away, whatever ends."""

import asyncio

import pytest

from controllers.issuing.nodes import enrol_nodes
from relay.adapters.server.nkey_pairs import private_key
from schemas.content.sealing import FleetKeyMissing, fleet_keys_for, unwrap_keys
from schemas.objects.objects import ObjectKey
from schemas.records.records import Profile
from schemas.values.identity import NodePath
from tests.awaiting import eventually
from tests.memory_tree import config_map, memory_tree, placement
from tests.unit.test_approvals import synced

pytestmark = pytest.mark.timeout(120)

AWAY, STAYS = NodePath.parse("/emea/s1"), NodePath.parse("/emea/s2")
PATHS = ["/emea", str(AWAY), str(STAYS)]
OBJECT = ObjectKey("", "configmaps", "shop", "a")


def wrapped(tree, key):
    """The keys of a placement as its delta brings them."""
    return tree.controllers.issuer.ledger.bodies[key].value.key


async def brought_anew(tree, key, before):
    await eventually(lambda: wrapped(tree, key) != before, "no delta brings the new key")


async def revision(tree, path):
    return (await tree.spaces[path].get(OBJECT))["metadata"]["resourceVersion"]


async def test_who_was_away_for_three_rotations_follows_and_nothing_is_written_again(tmp_path):
    async with memory_tree(tmp_path, PATHS) as tree:
        await tree.apply(config_map("a", "shop", at="1"), placement("shop", "shop"))
        await tree.until("shop", synced(2))
        key = await tree.placement_key("shop")
        before = {path: await revision(tree, path) for path in (AWAY, STAYS)}
        await tree.stop(AWAY)
        for _ in range(3):
            old = wrapped(tree, key)
            await tree.controllers.rotate_fleet(tree.dice)
            await brought_anew(tree, key, old)
        await tree.start(AWAY, tree.group, attached=True)
        await tree.until("shop", synced(2))
        assert {path: await revision(tree, path) for path in (AWAY, STAYS)} == before
        await tree.apply(config_map("a", "shop", at="2"))
        for path in (AWAY, STAYS):
            await eventually(lambda path=path: says(tree, path, "2"), f"{path} lacks the change")


async def says(tree, path, value):
    return (await tree.spaces[path].get(OBJECT))["data"]["at"] == value


async def test_a_centre_that_ends_as_it_rotates_goes_on_with_it_at_its_next_start(tmp_path):
    async with memory_tree(tmp_path, PATHS) as tree:
        await tree.apply(config_map("a", "shop", at="1"), placement("shop", "shop"))
        await tree.until("shop", synced(2))
        key = await tree.placement_key("shop")
        old, profiles = wrapped(tree, key), boxes(tree)
        # It ends as soon as the ring says it, before anything is issued.
        tree.controllers.keys.sealing.announce(tree.dice)
        await tree.stop_controllers()
        await tree.control(tree.group)
        await brought_anew(tree, key, old)
        await eventually(lambda: not boxes(tree) & profiles, "profiles bring the old key alone")
        await tree.apply(config_map("a", "shop", at="2"))
        for path in (AWAY, STAYS):
            await eventually(lambda path=path: says(tree, path, "2"), f"{path} lacks the change")
        await tree.until("shop", synced(2))


def boxes(tree):
    records = tree.controllers.issuer.records.values()
    return {record.fleet_key for record in records if getattr(record, "fleet_key", b"")}


async def test_another_key_of_a_placement_changes_that_one_alone(tmp_path):
    async with memory_tree(tmp_path, PATHS) as tree:
        for name in ("shop", "bank"):
            await tree.apply(config_map("a", name, at="1"), placement(name, name))
            await tree.until(name, synced(2))
        keys = {name: await tree.placement_key(name) for name in ("shop", "bank")}
        before = {name: wrapped(tree, key) for name, key in keys.items()}
        profiles = boxes(tree)
        assert tree.controllers.translator.rotate_key("shop") == keys["shop"]
        await brought_anew(tree, keys["shop"], before["shop"])
        await tree.until("shop", synced(2))
        assert wrapped(tree, keys["bank"]) == before["bank"]
        assert boxes(tree) == profiles
        async with asyncio.timeout(60):
            await tree.controllers.caught_up()


async def test_who_was_revoked_opens_nothing_that_is_sealed_after_the_next_rotation(tmp_path):
    async with memory_tree(tmp_path, PATHS) as tree:
        await tree.apply(config_map("a", "shop", at="1"), placement("shop", "shop"))
        await tree.until("shop", synced(2))
        key, issuer = await tree.placement_key("shop"), tree.controllers.issuer
        private = private_key(tree.seeds[AWAY])
        profile = profile_of(tree, AWAY)
        stolen = fleet_keys_for([private], profile.public_key, profile.fleet_key)
        before = wrapped(tree, key)
        assert unwrap_keys(stolen, issuer.tree, key, before)

        await enrol_nodes(issuer, {AWAY: ""})
        await eventually(lambda: not profile_of(tree, AWAY).fleet_key, "it is given keys")
        await tree.controllers.rotate_fleet(tree.dice)
        await brought_anew(tree, key, before)
        assert not profile_of(tree, AWAY).fleet_key
        with pytest.raises(FleetKeyMissing):
            unwrap_keys(stolen, issuer.tree, key, wrapped(tree, key))
        # What it knew of keys opens nothing of what is sealed now.
        known = set(unwrap_keys(stolen, issuer.tree, key, before))
        assert tree.controllers.keys.sealing.ring.keys(key).newest.key not in known
        await tree.apply(config_map("a", "shop", at="2"))
        await eventually(lambda: says(tree, STAYS, "2"), f"{STAYS} lacks the change")


def profile_of(tree, path):
    records = tree.controllers.issuer.records.values()
    return next(it for it in records if isinstance(it, Profile) and it.path == path)
