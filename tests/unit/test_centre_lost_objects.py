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
    deployment,
    holds,
    placement,
    placement_key,
    target,
)

pytestmark = pytest.mark.leaps

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
        await eventually(
            lambda: LOST in mailboxes.registry.errors.get("synctargets/RemovalHeld", "")
        )
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


OUTDATED = "the centre's space lost what was newest"


async def test_what_a_space_shows_that_fell_back_waits_until_it_is_as_it_was(centre):
    await centre.apply(config("a"), config("b"), config("deleted"), placement())
    async with centre.running():
        await centre.relay.until(holds("a", "b", "deleted"))
        before = centre.wds.copied()
        await centre.wds.delete(config_key("deleted"))
        await centre.apply(config("a", value="2"))
        await centre.relay.until(holds("a", "b"))
    issued = centre.relay.delta("shop")
    centre.wds.fall_back_to(before)
    for _ in range(2):
        async with centre.running():
            obj = await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld"))
            assert OUTDATED in condition(obj, "RemovalHeld")["message"]
            assert centre.relay.delta("shop") == issued
    async with centre.running() as controllers:
        await eventually(lambda: "shop" in controllers.translator.placements.held)
        # A placement that is new waits for nothing.
        await centre.apply(placement("new"))
        await centre.relay.until(holds("a", "b", "deleted", of="new"))
        await centre.apply(config("a", value="2"))
        await centre.wds.delete(config_key("deleted"))
        await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld") is None)
        await centre.apply(config("c"))
        await centre.relay.until(holds("a", "b", "c"))


async def test_a_person_lets_out_what_a_space_shows_that_fell_back(centre):
    await centre.apply(config("a"), placement(), placement("deleted"))
    async with centre.running():
        await centre.relay.until(holds("a"))
        await centre.relay.until(holds("a", of="deleted"))
        before = centre.wds.copied()
        await centre.wds.delete(placement_key("deleted"))
        await centre.apply(config("b"))
        await centre.relay.until(holds("a", "b"))
        await eventually(lambda: centre.relay.delta("deleted") is None)
    centre.wds.fall_back_to(before)
    async with centre.running() as controllers:
        await eventually(
            lambda: controllers.translator.placements.held.keys() == {"shop", "deleted"}
        )
        assert centre.relay.delta("deleted") is None
        controllers.translator.accept_removals("deleted")
        await centre.relay.until(holds("a", of="deleted"))
        controllers.translator.accept_removals("shop")
        await centre.relay.until(holds("a"))
        await eventually(lambda: not fallen(centre))


async def test_what_a_lost_transform_made_of_an_object_stays(centre):
    """Nothing that is missed goes out itself."""
    await centre.apply(config("a"), TRANSFORM, placement())
    async with centre.running():
        await centre.relay.until(holds("a"))
    issued = centre.relay.delta("shop")
    centre.wds.damage(ObjectKey("control.kubestellar.io", "customtransforms", "", "no-key"))
    centre.wds.mended()
    async with centre.running() as controllers:
        await eventually(lambda: OUTDATED in controllers.translator.placements.held.get("shop", ""))
        assert centre.relay.delta("shop") == issued
        await centre.apply(TRANSFORM)
        await eventually(lambda: not controllers.translator.placements.held)


def fallen(centre) -> bool:
    return any(it.rolled_back or it.fell_back for it in centre.relay.space_marks.values())


TRANSFORM = {
    "apiVersion": "control.kubestellar.io/v1alpha1",
    "kind": "CustomTransform",
    "metadata": {"name": "no-key"},
    "spec": {"apiGroup": "", "resource": "configmaps", "remove": ["$.data.key"]},
}


async def test_a_loss_that_was_made_good_is_none_for_what_is_missed_later(centre):
    """Its last object of a kind goes though the run began with a space that had fallen back."""
    await centre.apply(config("a"), deployment("web"), placement())
    async with centre.running():
        await centre.relay.until(holds("a", "web"))
        before = centre.wds.copied()
        await centre.apply(config("b"))
        await centre.relay.until(holds("a", "b", "web"))
    centre.wds.fall_back_to(before)
    async with centre.running():
        await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld"))
        await centre.apply(config("b"))
        await centre.until_status(SHOP, lambda obj: condition(obj, "RemovalHeld") is None)
        await eventually(lambda: not fallen(centre))
    await centre.wds.delete(config_key("b"))
    async with centre.running():
        await centre.relay.until(holds("a", "web"))


async def test_what_a_deleted_destination_that_comes_back_gets_waits(centre):
    await centre.inventory.apply(target("s1", "/emea/s1", env="test"), USER)
    async with centre.running():
        await eventually(lambda: profiles(centre) == {"s1"})
        before = centre.inventory.copied()
        await centre.inventory.apply(target("s2", "/emea/s2"), USER)
        await centre.inventory.apply(target("s1", "/emea/s1", env="prod"), USER)
        await eventually(lambda: profiles(centre) == {"s1", "s2"} and "prod" in labels(centre))
    centre.inventory.fall_back_to(before)
    async with centre.running() as controllers:
        mailboxes = controllers.mailboxes
        await eventually(
            lambda: OUTDATED in mailboxes.registry.errors.get("synctargets/RemovalHeld", "")
        )
        assert profiles(centre) == {"s1", "s2"}
        assert "prod" in labels(centre)
        await centre.inventory.apply(target("s1", "/emea/s1", env="prod"), USER)
        await centre.inventory.apply(target("s2", "/emea/s2"), USER)
        await eventually(lambda: "synctargets/RemovalHeld" not in mailboxes.registry.errors)
        await centre.inventory.apply(target("s1", "/emea/s1", env="test"), USER)
        await eventually(lambda: "prod" not in labels(centre))


def labels(centre) -> set[str]:
    return {dict(record.labels).get("env") for record in centre.relay.held().values()}
