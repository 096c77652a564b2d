"""What is asked for at the centre is so at the edges, through changes, cuts and restarts."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from relay.adapters.spaces.simulated_cluster import ApplyRefusal
from schemas.objects.objects import ObjectKey
from schemas.values.identity import NodePath
from tests.memory_tree import MANAGER, config_map, memory_tree, placement

PATHS = ["/r1", "/r2", "/r1/s1", "/r1/s2", "/r2/s1"]
S1, S2, S3 = (NodePath.parse(path) for path in ("/r1/s1", "/r1/s2", "/r2/s1"))


def key(name: str) -> ObjectKey:
    return ObjectKey("", "configmaps", "shop", name)


async def names(tree, path) -> set[str]:
    listing = await tree.spaces[path].list("", "configmaps")
    return {obj["metadata"]["name"] for obj in listing.objects}


async def hold(tree, path, wanted: set[str]) -> None:
    """Wait until an edge's space holds just these ConfigMaps."""
    space = tree.spaces[path]
    async with asyncio.timeout(60):
        listing = await space.list()
        if await names(tree, path) == wanted:
            return
        async for _ in space.watch(listing.revision):
            if await names(tree, path) == wanted:
                return


async def label(tree, name: str, **labels: str) -> None:
    """Set the labels of an edge's Location."""
    found = await tree.inventory.get(ObjectKey("edge.kubestellar.io", "locations", "", name))
    metadata = {"name": name, "labels": labels}
    wish = {k: found[k] for k in ("apiVersion", "kind", "spec")} | {"metadata": metadata}
    await tree.inventory.apply(wish, MANAGER)


def deployment(name: str, namespace: str, image: str, replicas: int = 1) -> dict:
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod},
    }


async def status(tree, key, met) -> None:
    """Wait until the status of an object in the workload space meets the condition."""
    async with asyncio.timeout(60):
        listing = await tree.workloads.list()
        if met((await tree.workloads.get(key) or {}).get("status") or {}):
            return
        async for change in tree.workloads.watch(listing.revision):
            if change.key == key and met(change.object.get("status") or {}):
                return


@pytest.fixture
async def tree(tmp_path):
    async with memory_tree(tmp_path, PATHS) as grown:
        yield grown


async def test_a_deleted_object_goes_and_the_rest_stays(tree):
    await tree.apply(placement("shop", "shop"), config_map("a", "shop"), config_map("b", "shop"))
    await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 3})
    await tree.workloads.delete(key("a"))
    for path in (S1, S2, S3):
        await hold(tree, path, {"b"})
    count = await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 3})
    assert count.summary.exceptions == ()


async def test_a_destination_that_no_longer_matches_loses_its_copy_and_gains_it_again(tree):
    selective = placement("shop", "shop", locationSelectors=[{"matchLabels": {"region": "r1"}}])
    await tree.apply(selective, config_map("a", "shop"))
    await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 2})
    assert await names(tree, S3) == set()

    await label(tree, "r1-s1", id="r1-s1", region="elsewhere")
    await hold(tree, S1, set())
    await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 1})

    await label(tree, "r1-s1", id="r1-s1", region="r1")
    await hold(tree, S1, {"a"})
    await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 2})


async def test_a_deleted_placement_leaves_nothing_and_may_come_again(tree):
    await tree.apply(placement("shop", "shop"), config_map("a", "shop"))
    await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 3})
    await tree.workloads.delete(ObjectKey("edge.kubestellar.io", "edgeplacements", "", "shop"))
    for path in (S1, S2, S3):
        await hold(tree, path, set())
    await tree.until("shop", lambda c: c.exact and c.summary.states == {})

    await tree.apply(placement("shop", "shop"))
    await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 3})
    for path in (S1, S2, S3):
        await hold(tree, path, {"a"})


async def test_a_region_that_was_cut_off_holds_just_the_present_state_afterwards(tree):
    await tree.apply(placement("shop", "shop"), config_map("a", "shop"))
    await tree.apply(placement("till", "till"), config_map("t", "till"))
    await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 3})
    await tree.until("till", lambda c: c.exact and c.summary.states == {"synced": 3})

    tree.network.cut(S1.parent)
    await tree.apply(config_map("b", "shop"))
    await tree.workloads.delete(key("a"))
    await tree.workloads.delete(ObjectKey("edge.kubestellar.io", "edgeplacements", "", "till"))
    await hold(tree, S3, {"b"})
    assert await names(tree, S1) == {"a", "t"}

    tree.network.heal(S1.parent)
    for path in (S1, S2):
        await hold(tree, path, {"b"})
    await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 3})
    await tree.until("till", lambda c: c.exact and c.summary.states == {})


async def test_one_bad_object_holds_up_no_other_and_is_named_at_the_centre(tree):
    refusal = ApplyRefusal("configmaps", "bad", "the quota of this namespace is used up")
    tree.clusters[S1].settings = replace(tree.clusters[S1].settings, refuse=(refusal,))
    objects = [config_map(name, "shop") for name in ("a", "bad", "c")]
    await tree.apply(placement("shop", "shop"), *objects)
    for path, wanted in ((S1, {"a", "c"}), (S2, {"a", "bad", "c"})):
        await hold(tree, path, wanted)
    count = await tree.until(
        "shop", lambda c: c.exact and c.summary.states == {"synced": 2, "failing": 1}
    )
    [sample] = count.summary.exceptions
    assert (sample.object, sample.path) == ("configmaps/shop/bad", "/r1/s1")
    assert "quota" in sample.reason

    tree.clusters[S1].settings = replace(tree.clusters[S1].settings, refuse=())
    await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 3})


async def test_an_image_that_never_starts_is_degraded_and_named(tree):
    await tree.apply(placement("shop", "shop"), deployment("web", "shop", "shop/web:broken"))
    count = await tree.until("shop", lambda c: c.exact and c.summary.health == {"degraded": 3})
    assert count.summary.states == {"synced": 3}
    assert [(x.object, x.count) for x in count.summary.exceptions] == [
        ("deployments.apps/shop/web", 3)
    ]

    await tree.apply(deployment("web", "shop", "shop/web:1"))
    await tree.until("shop", lambda c: c.exact and c.summary.health == {"healthy": 3})


async def test_a_single_copy_returns_its_exact_status_and_a_second_copy_clears_it(tree):
    one = [{"matchLabels": {"id": "r1-s1"}}]
    wish = placement("shop", "shop", locationSelectors=one, wantSingletonReportedState=True)
    # The copy is of the second generation that the centre has of it, and of its own first.
    await tree.apply(deployment("web", "shop", "shop/web:0"))
    await tree.apply(wish, deployment("web", "shop", "shop/web:1"))
    web = ObjectKey("apps", "deployments", "shop", "web")

    await status(tree, web, lambda s: s.get("readyReplicas") == 1)
    await status(tree, web, lambda s: s.get("observedGeneration") == 2)
    copy = (await tree.spaces[S1].get(web))["status"]
    assert copy["observedGeneration"] == 1
    assert (await tree.workloads.get(web))["status"] == {**copy, "observedGeneration": 2}
    for path in (NodePath(), S1.parent):
        said = [kept.data for _, kept in tree.network.streams(path).stat.items()]
        assert any(b"deployments" in data for data in said), "it is told of"
        assert not any(b"readyReplicas" in data for data in said), "and for the centre alone"

    await tree.controllers.rotate_fleet(tree.dice)
    await tree.apply(deployment("web", "shop", "shop/web:2", replicas=2))
    await status(tree, web, lambda s: s.get("readyReplicas") == 2)
    await status(tree, web, lambda s: s.get("observedGeneration") == 3)

    two = [{"matchExpressions": [{"key": "id", "operator": "In", "values": ["r1-s1", "r2-s1"]}]}]
    await tree.apply({**wish, "spec": {**wish["spec"], "locationSelectors": two}})
    await status(tree, web, lambda s: not s)


async def test_the_placement_says_in_its_status_what_became_of_it(tree):
    await tree.apply(placement("shop", "shop"), config_map("a", "shop"))
    shop = ObjectKey("edge.kubestellar.io", "edgeplacements", "", "shop")
    await status(tree, shop, lambda s: s.get("complete") and s.get("healthy") == 3)
    said = (await tree.workloads.get(shop))["status"]
    assert (said["destinations"], said["synced"], said["specGeneration"]) == (3, 3, 1)


async def test_a_changed_copy_at_an_edge_is_repaired_with_the_parent_away(tree):
    await tree.apply(placement("shop", "shop"), config_map("a", "shop", x="1"))
    await tree.until("shop", lambda c: c.exact and c.summary.states == {"synced": 3})
    tree.network.cut(S1)
    space = tree.spaces[S1]
    revision = (await space.list()).revision
    await space.apply(config_map("a", "shop", x="2"), "someone")
    async with asyncio.timeout(60):
        async for change in space.watch(revision):
            if change.object.get("data") == {"x": "1"}:
                break
