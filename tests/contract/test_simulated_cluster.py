"""A simulated cluster is a space whose objects come to life."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from relay.adapters.spaces.simulated_cluster import ApplyRefusal, Settings, SimulatedCluster
from relay.objects.health import assess
from relay.space_errors import SpaceError
from schemas.objects.objects import BUILT_IN_KINDS, ObjectKey
from tests.awaiting import until_object
from tests.contract.spaces import config_map, deployment, namespace
from tests.contract.syncing import Bench

QUICK = Settings(startup_seconds=(0.01, 0.05), deadline_seconds=0.1)
WEB = ObjectKey("apps", "deployments", "shop", "web")


@asynccontextmanager
async def living(space, clock, dice, settings=QUICK):
    cluster = SimulatedCluster(space, clock, dice, settings)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(cluster.run())
        try:
            yield cluster
        finally:
            task.cancel()


async def becomes(space, key, health):
    return await until_object(space, key, lambda obj: assess(obj)[0] == health)


def workload(kind, api="apps/v1", **spec):
    pod = {"containers": [{"name": "main", "image": "web:1"}]}
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": "w", "namespace": "shop"},
        "spec": {"template": {"spec": pod}, **spec},
    }


API_SERVICE = {
    "apiVersion": "apiregistration.k8s.io/v1",
    "kind": "APIService",
    "metadata": {"name": "v1.shop.example.org"},
    "spec": {"group": "shop.example.org", "version": "v1"},
}


@pytest.mark.parametrize(
    "obj",
    [
        deployment(),
        workload("StatefulSet", replicas=3),
        workload("DaemonSet"),
        workload("ReplicaSet", replicas=2),
        workload("Job", "batch/v1"),
        workload("Pod", "v1"),
        workload("Service", "v1", type="LoadBalancer"),
        workload("PersistentVolumeClaim", "v1", accessModes=["ReadWriteOnce"]),
        workload("Ingress", "networking.k8s.io/v1"),
        workload("PodDisruptionBudget", "policy/v1", maxUnavailable=1),
        workload("HorizontalPodAutoscaler", "autoscaling/v2", minReplicas=2, maxReplicas=4),
        API_SERVICE,
    ],
    ids=lambda obj: obj["kind"],
)
async def test_what_is_applied_comes_to_life(space, clock, dice, obj):
    async with living(space, clock, dice) as cluster:
        await cluster.apply(namespace(), "me")
        applied = await cluster.apply(obj, "me")
        assert assess(applied)[0] == "progressing"
        await becomes(cluster, BUILT_IN_KINDS.key_of(obj), "healthy")


async def test_a_broken_image_never_becomes_ready(space, clock, dice):
    async with living(space, clock, dice) as cluster:
        await cluster.apply(namespace(), "me")
        await cluster.apply(deployment(image="web:broken"), "me")
        late = await becomes(cluster, WEB, "degraded")
        assert assess(late)[1].startswith("ProgressDeadlineExceeded")
        await cluster.apply(deployment(image="web:2"), "me")
        well = await becomes(cluster, WEB, "healthy")
        assert well["status"]["observedGeneration"] == well["metadata"]["generation"] == 2


async def test_what_started_before_a_restart_goes_on(space, clock, dice):
    async with living(space, clock, dice, Settings(startup_seconds=(600, 600))) as cluster:
        await cluster.apply(namespace(), "me")
        await cluster.apply(deployment(), "me")
    async with living(space, clock, dice) as cluster:
        await becomes(cluster, WEB, "healthy")


async def test_an_object_needs_its_namespace(space, clock, dice):
    cluster = SimulatedCluster(space, clock, dice)
    await space.delete(ObjectKey("", "namespaces", "", "shop"))
    with pytest.raises(SpaceError, match='namespaces "shop" not found') as refused:
        await cluster.apply(config_map(), "me")
    assert refused.value.reason == "NotFound"
    await cluster.apply(config_map(namespace="default"), "me")


async def test_what_a_namespace_holds_goes_with_it(space, clock, dice):
    cluster = SimulatedCluster(space, clock, dice)
    await cluster.apply(namespace(), "me")
    await cluster.apply(config_map(), "me")
    await cluster.apply(config_map(namespace="default"), "me")
    await cluster.delete(ObjectKey("", "namespaces", "", "shop"))
    left = (await cluster.list("", "configmaps")).objects
    assert [obj["metadata"]["namespace"] for obj in left] == ["default"]


async def test_what_is_to_be_refused_is_refused(space, clock, dice):
    settings = Settings(refuse=(ApplyRefusal("configmaps", "set*", "quota is used up"),))
    cluster = SimulatedCluster(space, clock, dice, settings)
    await cluster.apply(namespace(), "me")
    with pytest.raises(SpaceError, match="quota is used up"):
        await cluster.apply(config_map("settings"), "me")
    await cluster.apply(config_map("other"), "me")


async def test_a_syncer_brings_a_workload_to_life(space, clock, dice):
    async with living(space, clock, dice) as cluster:
        bench = Bench(cluster, clock, dice)
        async with bench.running():
            bench.want(deployment(), config_map())
            await bench.until(lambda: WEB in bench.said and bench.said[WEB].health == "healthy")
            assert bench.said[WEB].address
