"""What every space tells its followers."""

import asyncio

import pytest

from relay.space_port import Interest, Interests, KindsServed, ObjectsListed, Synced
from schemas.objects.objects import ObjectKey
from schemas.objects.selectors import LabelSelector
from tests.contract.following import Told, following
from tests.contract.spaces import config_map, deployment, namespace

CONFIG_MAPS, DEPLOYMENTS = Interest("", "configmaps"), Interest("apps", "deployments")
SETTINGS = ObjectKey("", "configmaps", "shop", "settings")
WEB = ObjectKey("apps", "deployments", "shop", "web")


@pytest.fixture
def space(any_space):
    """Each test runs on all of them."""
    return any_space


async def test_a_follower_is_told_kinds_then_what_there_is_then_that_this_was_all(space):
    await space.apply(namespace(), "me")
    made = await space.apply(config_map(a="1"), "me")
    async with following(space, CONFIG_MAPS) as (told, wanted):
        kinds = [type(event) for event in told.events]
        assert kinds.index(KindsServed) < kinds.index(ObjectsListed) < kinds.index(Synced)
        assert told.objects[SETTINGS] == made
        assert all(key.resource == "configmaps" for key in told.objects)
        assert wanted.wanted == {CONFIG_MAPS}


async def test_changes_are_told_in_their_order_as_they_happen(space):
    await space.apply(namespace(), "me")
    async with following(space, CONFIG_MAPS) as (told, _):
        made = await space.apply(config_map(a="1"), "me")
        await told.until(lambda told: told.objects.get(SETTINGS) == made)
        changed = await space.apply(config_map(a="2"), "me")
        await told.until(lambda told: told.objects.get(SETTINGS) == changed)
        assert await space.delete(SETTINGS, made["metadata"]["uid"])
        await told.until(lambda told: SETTINGS not in told.objects)
        ours = [change for change in told.changes if change.key == SETTINGS]
        assert [change.kind for change in ours] == ["added", "modified", "deleted"]
        assert ours[-1].object["metadata"]["uid"] == made["metadata"]["uid"]


async def test_a_follower_hears_of_nothing_that_is_of_no_interest(space):
    await space.apply(namespace(), "me")
    async with following(space, CONFIG_MAPS) as (told, _):
        await space.apply(deployment(), "me")
        await told.reached(await space.revision())
        assert WEB not in told.objects
        assert not [change for change in told.changes if change.key == WEB]


async def test_what_becomes_of_interest_is_listed_and_then_followed(space):
    await space.apply(namespace(), "me")
    await space.apply(deployment(), "me")
    async with following(space, CONFIG_MAPS) as (told, interests):
        interests.set({CONFIG_MAPS, DEPLOYMENTS})
        await told.synced(frozenset({CONFIG_MAPS, DEPLOYMENTS}))
        assert WEB in told.objects
        changed = await space.apply(deployment(replicas=5), "me")
        await told.until(lambda told: told.objects[WEB] == changed)
        interests.set({CONFIG_MAPS})
        await told.until(lambda told: told.events[-1] == Synced(frozenset({CONFIG_MAPS})))
        heard = len(told.changes)
        await space.apply(deployment(replicas=6), "me")
        made = await space.apply(config_map(a="1"), "me")
        await told.until(lambda told: told.objects.get(SETTINGS) == made)
        assert [change.key for change in told.changes[heard:]] == [SETTINGS]


async def test_a_selector_takes_objects_in_and_out_by_their_labels(space):
    await space.apply(namespace(), "me")
    ours = Interest("", "configmaps", LabelSelector.from_kubernetes({"matchLabels": {"a": "b"}}))
    await space.apply(config_map("other"), "me")
    async with following(space, ours) as (told, _):
        assert told.objects == {}
        await space.apply(config_map(labels={"a": "b"}), "me")
        await told.until(lambda told: SETTINGS in told.objects)
        await space.apply(config_map(labels={"a": "c"}), "me")
        await told.until(lambda told: SETTINGS not in told.objects)
        assert [change.kind for change in told.changes] == ["added", "deleted"]


async def test_what_came_and_went_while_a_follower_was_busy_is_told_as_gone(space):
    await space.apply(namespace(), "me")
    ours = Interest("", "configmaps", LabelSelector.from_kubernetes({"matchLabels": {"a": "b"}}))
    told, idle = Told(), asyncio.Event()
    idle.set()

    async def tell(event):
        await idle.wait()
        await told(event)

    async with asyncio.TaskGroup() as group:
        following = group.create_task(space.follow(Interests({ours}), tell))
        await told.synced(frozenset({ours}))
        idle.clear()
        for name in ("first", "settings"):
            made = await space.apply(config_map(name, labels={"a": "b"}), "me")
        assert await space.delete(SETTINGS, made["metadata"]["uid"])
        idle.set()
        await told.until(lambda told: SETTINGS in {it.key for it in told.changes})
        await told.until(lambda told: [it.name for it in told.objects] == ["first"])
        following.cancel()


async def test_what_one_selector_takes_no_more_and_another_still_does_is_not_deleted(space):
    one, two = (
        Interest("", "configmaps", LabelSelector.from_kubernetes({"matchLabels": {name: "x"}}))
        for name in ("one", "two")
    )
    await space.apply(config_map(labels={"one": "x", "two": "x"}), "me")
    async with following(space, one, two) as (told, _):
        changed = await space.apply(config_map(labels={"two": "x"}), "me")
        await told.until(lambda told: told.objects.get(SETTINGS) == changed)
        await space.apply(config_map("last", labels={"one": "x"}), "me")
        await told.until(lambda told: "last" in {key.name for key in told.objects})
        assert SETTINGS in told.objects
        await space.apply(config_map(labels={}), "me")
        await told.until(lambda told: SETTINGS not in told.objects)


async def test_a_mark_of_now_is_reached_once_all_before_it_was_told(space):
    await space.apply(namespace(), "me")
    async with following(space, CONFIG_MAPS) as (told, _):
        for count in range(5):
            await space.apply(config_map(f"c{count}"), "me")
        await told.reached(await space.revision())
        names = {f"c{count}" for count in range(5)}
        assert names <= {key.name for key in told.objects}


async def test_a_defined_kind_is_served_from_when_its_definition_is_there(space):
    await space.apply(namespace(), "me")
    async with following(space, CONFIG_MAPS) as (told, _):
        assert "crontabs" not in {kind.resource for kind in told.kinds}
        definition = crontab_definition()
        await space.apply(definition, "me")
        await told.until(lambda told: "crontabs" in {kind.resource for kind in told.kinds})
        kind = next(kind for kind in told.kinds if kind.resource == "crontabs")
        assert (kind.group, kind.kind, kind.version) == ("stable.example.com", "CronTab", "v1")
        assert kind.namespaced


async def test_two_followers_are_told_the_same(space):
    await space.apply(namespace(), "me")
    async with following(space, CONFIG_MAPS) as (one, _), following(space, CONFIG_MAPS) as (two, _):
        made = await space.apply(config_map(a="1"), "me")
        async with asyncio.TaskGroup() as group:
            for told in (one, two):
                group.create_task(told.until(lambda told: told.objects.get(SETTINGS) == made))


def crontab_definition():
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "crontabs", "singular": "crontab", "kind": "CronTab"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "crontabs.stable.example.com"},
        "spec": {
            "group": "stable.example.com",
            "scope": "Namespaced",
            "names": names,
            "versions": [version],
        },
    }
