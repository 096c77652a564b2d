"""A Rollout on real servers, six sites: canary, groups, approval, failure, abort, undo.

The first centre is a process of its own, which is killed while the second wave soaks.
"""

import asyncio
import json
import multiprocessing
from contextlib import asynccontextmanager

import pytest

from leafcast.daemon.tree_facts import destination_forms
from leafcast.local.tree import local_tree
from leafcast.local.views import TreeShape
from schemas.objects.objects import ObjectKey
from schemas.values.identity import NodePath
from tests.awaiting import until_object

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]

SHAPE = TreeShape(2, 3, 3)
ROLLOUT = ObjectKey("leafcast.io", "rollouts", "", "shop")
TILL = ObjectKey("apps", "deployments", "shop", "till")
CANARY = NodePath.parse("/region-1/site-1")
WAIT_SECONDS = 60


@asynccontextmanager
async def running(folder):
    tree = local_tree(SHAPE, folder)
    async with asyncio.TaskGroup() as group:
        run = group.create_task(tree.run())
        async with asyncio.timeout(WAIT_SECONDS):
            await tree.up.wait()
        try:
            yield tree
        finally:
            run.cancel()


def till(image):
    labels = {"app": "till"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "till", "namespace": "shop"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": f"till:{image}"}]},
            },
        },
    }


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
PLACEMENT = {
    "apiVersion": "edge.kubestellar.io/v2alpha1",
    "kind": "EdgePlacement",
    "metadata": {"name": "shop"},
    "spec": {"locationSelectors": [{}], "downsync": [{"namespaces": ["shop"]}]},
}
WAVES = [
    {"name": "canary", "selector": {"matchLabels": {"ring": "canary"}}, "soak": "1s"},
    # Not by percent: chance, by a salt, may choose all of six sites, or none of them.
    {
        "name": "half",
        "selector": {"matchLabels": {"ring": "half"}},
        "maxConcurrent": "50%",
        "soak": "10s",
    },
    {"name": "rest", "percent": 100, "approval": "before"},
]
RINGS = {"region-1-site-1": "canary", "region-1-site-3": "half", "region-2-site-2": "half"}


def rollout(**request):
    said = {"leafcast.io/rollout-request": json.dumps(request)} if request else {}
    return {
        "apiVersion": "leafcast.io/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "shop", "annotations": said},
        "spec": {"placement": {"name": "shop"}, "waves": WAVES},
    }


async def until(tree, predicate):
    seen = []

    def met(obj):
        seen.append((obj or {}).get("status", {}))
        return predicate(seen[-1])

    try:
        async with asyncio.timeout(WAIT_SECONDS):
            await until_object(tree.centre.workloads, ROLLOUT, met)
    except TimeoutError as error:
        raise AssertionError(f"not seen: {seen[-9:]}") from error
    return seen[-1]


def phase(name, revision=None):
    return lambda status: status.get("phase") == name and revision in (None, status["revision"])


async def images(tree):
    """Which image each site runs."""
    found = {}
    for path, node in tree.centre.nodes.items():
        if len(path.names) == 2:
            obj = await node._attached.space.get(TILL)
            containers = obj["spec"]["template"]["spec"]["containers"] if obj else [{"image": ""}]
            found[path] = containers[0]["image"].partition(":")[2]
    return found


async def ask(tree, mark, action, **fields):
    await tree.centre.apply([rollout(id=mark, action=action, **fields)])
    status = await until(tree, lambda status: (status.get("request") or {}).get("id") == mark)
    assert status["request"]["outcome"] == "Done", status["request"]


async def label_the_rings(tree):
    for name, ring in RINGS.items():
        target = ObjectKey("edge.kubestellar.io", "synctargets", "", name)
        obj = await tree.centre.inventory.get(target)
        metadata = {"name": name, "labels": {"ring": ring}}
        said = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}
        await tree.centre.inventory.apply(said, "test")


async def until_the_second_wave(folder, told):
    """Good: by waves, and the second one soaks."""
    async with running(folder) as tree:
        await label_the_rings(tree)
        await tree.centre.apply([NAMESPACE, till("1"), PLACEMENT])
        await tree.centre.controllers.caught_up()
        await tree.centre.apply([rollout()])
        await until(tree, phase("Complete", 1))
        await tree.centre.apply([till("2")])
        status = await until(tree, lambda status: is_soaking_in(2, status))
        found = {str(path): image for path, image in (await images(tree)).items()}
        told.send((status["waves"], found))
        await asyncio.Event().wait()


def is_soaking_in(wave, status):
    return (status.get("wave"), status.get("phase")) == (wave, "Soaking")


def first_centre(folder, told):
    asyncio.run(until_the_second_wave(folder, told))


def killed_in_the_second_wave(folder):
    """The waves and the images when it was killed."""
    context = multiprocessing.get_context("spawn")
    hears, tells = context.Pipe(duplex=False)
    centre = context.Process(target=first_centre, args=(folder, tells))
    centre.start()
    tells.close()
    try:
        return hears.recv()
    finally:
        centre.kill()
        centre.join()
        centre.close()


async def test_the_whole_story(tmp_path):
    waves, before = await asyncio.to_thread(killed_in_the_second_wave, tmp_path)
    assert [wave["members"] for wave in waves[:2]] == [1, 2]
    chosen = {path for path, image in before.items() if image == "2"}
    assert chosen == {str(CANARY), "/region-1/site-3", "/region-2/site-2"}
    async with running(tmp_path) as tree:
        # The same wave, and its soak goes on: nothing opened, nothing closed.
        status = await until(tree, lambda status: is_soaking_in(2, status))
        assert [wave.get("phase") for wave in status["waves"]] == ["Done", "Soaking", None]
        assert {str(path): image for path, image in (await images(tree)).items()} == before
        # The last one begins when a person says so.
        status = await until(tree, phase("AwaitingApproval", 2))
        told = destination_forms(tree.centre, "shop")["destinations"]
        assert {it["wave"] for it in told if it["path"] == str(CANARY)} == {"2.0"}
        await ask(tree, "a", "approve", wave="rest")
        status = await until(tree, phase("Complete", 2))
        assert sum(wave["members"] for wave in status["waves"]) == 6
        assert set((await images(tree)).values()) == {"2"}
        # Bad: stopped at the canary, and taken back there.
        await tree.centre.apply([till("broken")])
        status = await until(tree, phase("Paused", 3))
        assert status["waveName"] == "canary"
        found = await images(tree)
        assert found.pop(CANARY) == "broken"
        assert set(found.values()) == {"2"}
        await ask(tree, "b", "abort")
        async with asyncio.timeout(WAIT_SECONDS):
            while (await images(tree))[CANARY] != "2":
                await tree.centre.changed()
        # Back to the first, at once.
        await ask(tree, "c", "undo", revision=1, now=True)
        async with asyncio.timeout(WAIT_SECONDS):
            while set((await images(tree)).values()) != {"1"}:
                await tree.centre.changed()
