"""What travels through a tree is cipher text: the centre seals it, and edges alone open it."""

import json
from contextlib import suppress

import pytest

from relay.space_errors import SpaceError
from schemas.content.compression import decompress
from schemas.content.sealing import fleet_key
from schemas.objects.objects import ObjectKey
from schemas.values.identity import NodePath
from schemas.values.refusals import CodecError
from tests.memory_tree import MANAGER, config_map, inventory, memory_tree, placement
from tests.unit.centre_world import condition, placement_key
from tests.unit.test_approvals import synced

pytestmark = pytest.mark.leaps

REGION, SITE = NodePath.parse("/emea"), NodePath.parse("/emea/s1")
PATHS = ["/emea", "/emea/s1", "/emea/s2"]
WORD = "YS1rbm93bi1wbGFpbi10ZXh0"
SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "vault", "namespace": "shop"},
    "data": {"password": WORD},
}
KEY = ObjectKey("", "secrets", "shop", "vault")
POLICY = placement("shop", "shop")


def holds_word(data):
    """Whether bytes, opened as far as anyone can, hold the word."""
    texts = [data]
    with suppress(CodecError):
        texts.append(decompress(data[1:], 1 << 24))
    return any(WORD.encode() in text for text in texts)


def stored(streams):
    """All values that a node keeps."""
    yield from streams.blobs.values()
    yield from (record.data for record in streams.own.values())
    yield from (kept.data for _, kept in streams.mail.items())


async def applied(tree, path, key=KEY):
    obj = await tree.clusters[path].get(key)
    return (obj or {}).get("data", {}).get("password")


async def test_a_relay_holds_nothing_of_what_it_carries(tmp_path):
    async with memory_tree(tmp_path, PATHS) as tree:
        await tree.apply(SECRET, POLICY)
        await tree.until("shop", synced(2))
        assert await applied(tree, SITE) == WORD
        for path in (NodePath(), REGION, SITE):
            assert not any(holds_word(value) for value in stored(tree.network.streams(path)))
        masters = json.loads((tmp_path / "sealing.json").read_text())["masters"]
        fleet = fleet_key(bytes.fromhex(masters[0]))
        assert not any(fleet in value for value in stored(tree.network.streams(REGION)))


async def test_a_new_fleet_key_changes_all_content_and_nothing_that_is_applied(tmp_path):
    async with memory_tree(tmp_path, PATHS) as tree:
        await tree.apply(SECRET, config_map("web", "shop", at="1"), POLICY)
        await tree.until("shop", synced(2))
        uid = (await tree.clusters[SITE].get(KEY))["metadata"]["resourceVersion"]
        former = tree.controllers.translator.placements.entries("shop")[KEY]
        await tree.controllers.rotate_fleet(tree.dice)
        generation = tree.controllers.issuer.records[await tree.placement_key("shop")].generation
        await tree.until("shop", lambda it: it.generation == generation and synced(2)(it))
        entry = tree.controllers.translator.placements.entries("shop")[KEY]
        assert entry.identity == former.identity
        assert entry.address != former.address
        assert (await tree.clusters[SITE].get(KEY))["metadata"]["resourceVersion"] == uid
        await tree.apply(config_map("web", "shop", at="2"))
        await tree.until("shop", lambda it: it.generation > generation and synced(2)(it))


async def test_another_key_of_a_placement_holds_up_no_other_fleet_key(tmp_path):
    async with memory_tree(tmp_path, PATHS) as tree:
        await tree.apply(SECRET, POLICY)
        await tree.until("shop", synced(2))
        sealing = tree.controllers.keys.sealing
        before = sealing.ring.masters
        tree.controllers.translator.rotate_key("shop")
        await tree.controllers.rotate_fleet(tree.dice)
        assert sealing.ring.masters[1:] == before


async def test_what_stays_under_a_former_key_opens_after_three_others(tmp_path):
    names = [f"c{at}" for at in range(15)]
    async with memory_tree(tmp_path, PATHS) as tree:
        await tree.apply(*(config_map(name, "shop", at="1") for name in names), POLICY)
        await tree.until("shop", synced(2))
        await tree.stop_controllers()
        for name in names[:12]:
            await tree.workloads.delete(ObjectKey("", "configmaps", "shop", name))
        # What is held until someone accepts it cannot be sealed anew.
        await tree.control(tree.group)
        await tree.controllers.caught_up()
        issuer, key = tree.controllers.issuer, await tree.placement_key("shop")
        for _ in range(3):
            before = issuer.records[key].generation
            tree.controllers.translator.rotate_key("shop")
            await tree.until("shop", lambda it, g=before: it.generation > g and synced(2)(it))
        await tree.stop_controllers()
        await tree.control(tree.group)
        await tree.controllers.caught_up()
        await tree.controllers.written(["shop"])
        held = condition(await tree.workloads.get(placement_key("shop")), "RemovalHeld")
        assert "12 of 15 objects would go at once" in held["message"]


async def test_no_key_changes_while_a_space_cannot_be_asked(tmp_path, monkeypatch):
    async with memory_tree(tmp_path, PATHS) as tree:
        await tree.apply(SECRET, POLICY)
        await tree.until("shop", synced(2))
        sealing, kept = tree.controllers.keys.sealing, (tmp_path / "sealing.json").read_text()

        async def away():
            raise SpaceError("Unavailable", "it is away")

        with monkeypatch.context() as broken:
            broken.setattr(tree.inventory, "revision", away)
            with pytest.raises(SpaceError):
                await tree.controllers.rotate_fleet(tree.dice)
        assert (tmp_path / "sealing.json").read_text() == kept
        assert sealing.announced is sealing.ring
        # What was announced and not taken is gone on with, and no other key is made.
        sealing.announce(tree.dice)
        announced = sealing.announced
        await tree.controllers.rotate_fleet(tree.dice)
        assert sealing.ring is announced


async def test_a_restarted_centre_issues_nothing_anew(tmp_path):
    async with memory_tree(tmp_path, PATHS) as tree:
        await tree.apply(SECRET, POLICY)
        await tree.until("shop", synced(2))
        await tree.stop_controllers()
        before = {key: it.generation for key, it in tree.controllers.issuer.records.items()}
        await tree.control(tree.group)
        await tree.controllers.caught_up()
        after = {key: it.generation for key, it in tree.controllers.issuer.records.items()}
        assert after == before


def in_clear(tree):
    """As a tree that was made before content was sealed."""
    (tree.folder / "sealing.json").unlink()


async def test_an_old_tree_is_sealed_and_nothing_is_applied_again(tmp_path):
    async with memory_tree(tmp_path, PATHS, prepare=in_clear) as tree:
        await tree.apply(SECRET, POLICY)
        await tree.until("shop", synced(2))
        former = tree.controllers.translator.placements.entries("shop")[KEY]
        assert not former.mark
        assert any(holds_word(value) for value in stored(tree.network.streams(REGION)))
        version = (await tree.clusters[SITE].get(KEY))["metadata"]["resourceVersion"]
        await tree.controllers.rotate_fleet(tree.dice)
        key = await tree.placement_key("shop")
        generation = tree.controllers.issuer.records[key].generation
        await tree.until("shop", lambda it: it.generation == generation and synced(2)(it))
        entry = tree.controllers.translator.placements.entries("shop")[KEY]
        assert entry.identity == entry.mark != former.identity
        assert (await tree.clusters[SITE].get(KEY))["metadata"]["resourceVersion"] == version


async def test_an_edge_whose_key_is_another_keeps_what_it_has_until_it_has_its_own(tmp_path):
    async with memory_tree(tmp_path, PATHS) as tree:
        await tree.apply(SECRET, config_map("web", "shop", at="1"), POLICY)
        await tree.until("shop", synced(2))
        seed, tree.seeds[SITE] = tree.seeds[SITE], tree.seeds[NodePath.parse("/emea/s2")]
        await tree.stop(SITE)
        await tree.start(SITE, tree.group, attached=True)
        await tree.workloads.delete(ObjectKey("", "configmaps", "shop", "web"))
        found = await tree.until("shop", lambda it: bool(it.summary.exceptions))
        assert found.summary.states == {"synced": 1, "pending": 1}
        assert found.summary.exceptions[0].reason.startswith("Sealed: ")
        cluster = tree.clusters[SITE]
        assert await cluster.get(ObjectKey("", "configmaps", "shop", "web")) is not None
        assert await applied(tree, SITE) == WORD
        tree.seeds[SITE] = seed
        await tree.stop(SITE)
        await tree.start(SITE, tree.group, attached=True)
        await tree.until("shop", synced(2))
        assert await cluster.get(ObjectKey("", "configmaps", "shop", "web")) is None


async def test_a_placement_of_secrets_names_destinations_without_a_key(tmp_path):
    async with memory_tree(tmp_path, PATHS) as tree:
        for obj in inventory([NodePath.parse("/emea/s3")]):
            await tree.inventory.apply(obj, MANAGER)
        await tree.controllers.caught_up()
        await tree.apply(SECRET, POLICY)
        await tree.until("shop", lambda it: it.summary.states.get("synced") == 2)
        await tree.controllers.written(["shop"])
        said = condition(await tree.workloads.get(placement_key("shop")), "SecretsUnopened")
        assert '"emea-s3"' in said["message"]


async def test_without_its_masters_a_centre_says_so_and_lets_nothing_go(tmp_path):
    async with memory_tree(tmp_path, PATHS) as tree:
        await tree.apply(SECRET, POLICY)
        await tree.until("shop", synced(2))
        await tree.stop_controllers()
        (tmp_path / "sealing.json").unlink()
        await tree.control(tree.group)
        await tree.controllers.caught_up()
        assert any(reason == "MastersLost" for reason, *_ in tree.noted)
        assert "shop" in tree.controllers.translator.placements.held
        assert await applied(tree, SITE) == WORD
        tree.controllers.translator.accept_removals("shop")
        await tree.controllers.caught_up()
        generation = tree.controllers.issuer.records[await tree.placement_key("shop")].generation
        await tree.until("shop", lambda it: it.generation == generation and synced(2)(it))
