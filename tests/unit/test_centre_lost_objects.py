"""What a damaged space does not show was not deleted: it stays until a person lets it go."""

import pytest

from schemas.objects.objects import ObjectKey
from tests.awaiting import eventually
from tests.unit.centre_world import (
    SHOP,
    USER,
    Centre,
    condition,
    config,
    config_key,
    holds,
    placement,
    target,
)

LOST = "what the centre's space stored of them is damaged or lost"


@pytest.fixture
def centre(tmp_path):
    return Centre(tmp_path / "keys")


def target_key(name):
    return ObjectKey("edge.kubestellar.io", "synctargets", "", name)


async def test_one_lost_object_is_held_though_one_that_was_deleted_goes(centre):
    await centre.apply(config("a"), config("b"), config("c"), placement())
    async with centre.running():
        await centre.relay.until(holds("a", "b", "c"))
    await centre.wds.delete(config_key("a"))
    centre.wds.damage(config_key("b"))
    for _ in range(2):
        # Neither does it go at the next start.
        async with centre.running():
            obj = await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld"))
            assert LOST in condition(obj, "RemovalHeld")["message"]
            await centre.relay.until(holds("b", "c"))
    async with centre.running():
        await centre.apply(config("b"))
        await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld") is None)
        assert set(await centre.relay.entries(centre.relay.delta("shop"))) == {"b", "c"}


async def test_a_person_lets_a_lost_object_go(centre):
    await centre.apply(config("a"), config("b"), placement())
    async with centre.running():
        await centre.relay.until(holds("a", "b"))
    centre.wds.damage(config_key("b"))
    async with centre.running() as controllers:
        await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld"))
        controllers.translator.accept_removals("shop")
        await centre.relay.until(holds("a"))


async def test_a_lost_placement_is_held_however_little_it_is(centre):
    await centre.apply(config("a"), placement(), placement("other"))
    async with centre.running():
        await centre.relay.until(holds("a"))
    centre.wds.damage(SHOP)
    async with centre.running() as controllers:
        await eventually(lambda: LOST in controllers.translator.placements.held.get("shop", ""))
        assert set(await centre.relay.entries(centre.relay.delta("shop"))) == {"a"}


async def test_a_lost_destination_is_held_though_others_are_seen(centre):
    for name in ("s1", "s2"):
        await centre.inventory.apply(target(name, f"/emea/{name}"), USER)
    async with centre.running():
        await eventually(lambda: {"s1", "s2"} <= profiles(centre))
    centre.inventory.damage(target_key("s1"))
    async with centre.running() as controllers:
        mailboxes = controllers.mailboxes
        await eventually(lambda: LOST in mailboxes.errors.get("synctargets/RemovalHeld", ""))
        assert {"s1", "s2"} <= profiles(centre)


def profiles(centre) -> set[str]:
    return {record.path.name for record in centre.relay.held().values()}


async def test_a_lost_namespace_takes_nothing_of_those_it_was_selected_by(centre):
    labelled = {"matchLabels": {"team": "web"}}
    for name in ("shop", "other"):
        labels = {"name": name, "labels": {"team": "web"}}
        await centre.wds.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": labels}, USER)
    await centre.apply(
        config("a"),
        placement(clause={"namespaceSelectors": [labelled], "resources": ["configmaps"]}),
    )
    await centre.wds.apply(config("z", namespace="other"), USER)
    async with centre.running():
        await centre.relay.until(holds("a", "z"))
    centre.wds.damage(ObjectKey("", "namespaces", "", "shop"))
    async with centre.running():
        obj = await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld"))
        assert LOST in condition(obj, "RemovalHeld")["message"]
        assert set(await centre.relay.entries(centre.relay.delta("shop"))) == {"a", "z"}
