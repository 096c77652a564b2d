"""A syncer and an API server that is down, refuses, or does not let go."""

import asyncio
import json
from contextlib import suppress

import pytest

from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.kubernetes.kubeconfig import Kubeconfig
from relay.adapters.kubernetes.space import KubernetesSpace
from relay.space_errors import SpaceError
from schemas.objects.objects import ObjectKey
from tests.awaiting import eventually
from tests.contract.spaces import config_map, definition, deployment, namespace
from tests.contract.syncing import Bench

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(240)]

SHOP = ObjectKey("", "namespaces", "", "shop")
SETTINGS = ObjectKey("", "configmaps", "shop", "settings")
WEB = ObjectKey("apps", "deployments", "shop", "web")


@pytest.fixture
async def connect():
    """A bench on a server, as the user of a kubeconfig."""
    spaces = []

    def on(kubeconfig):
        space = KubernetesSpace(Kubeconfig(str(kubeconfig)), SystemClock(), SystemDice())
        spaces.append(space)
        return Bench(space, SystemClock(), SystemDice())

    yield on
    for space in spaces:
        with suppress(SpaceError):  # The server may have ended before.
            await space.kinds()
        await space.close()


async def run(verb, *arguments, **how):
    return await asyncio.to_thread(verb, *arguments, **how)


async def test_an_outage_is_said_once_of_each_object_and_ends_by_itself(connect, api_server):
    bench = connect(api_server.kubeconfig)
    async with bench.running():
        bench.want(config_map(a="1"), deployment())
        await bench.settled()
        await run(api_server.kill)
        bench.history.clear()
        await bench.until(lambda: bench.said[SETTINGS].error and bench.said[WEB].error)
        bench.want(config_map(a="2"), deployment())
        await asyncio.sleep(2)
        # Why it is not ready may be said meanwhile, too: that lasts.
        said = [told for told in bench.history if told.key == WEB and told.error]
        assert len(said) == 1
        assert said[0].present
        tries = len(bench.space.applied)
        await run(api_server.start)
        await bench.settled()
        assert (await bench.space.get(SETTINGS))["data"] == {"a": "2"}
        assert not bench.said[WEB].error
        assert bench.space.deleted == []
        assert len(bench.space.applied) - tries <= 2


async def test_rights_that_are_lost_are_said_in_the_servers_words_and_missed_no_longer(
    connect, api_server
):
    guest = await run(api_server.add_user, "edge")
    await run(api_server.kubectl, "create", "namespace", "shop")
    for name, verbs, what in (
        ("config", "get,list,watch,patch,create,delete", "configmaps"),
        ("spaces", "get,list,watch,patch,create", "namespaces"),
        ("webs", "get,list,watch", "deployments.apps"),
    ):
        made = ("create", "clusterrole", name, f"--verb={verbs}", f"--resource={what}")
        await run(api_server.kubectl, *made)
        bound = ("create", "clusterrolebinding", name, f"--clusterrole={name}", "--user=edge")
        await run(api_server.kubectl, *bound)
    bench = connect(guest)
    async with bench.running():
        bench.want(config_map(a="1"), deployment())
        await bench.until(lambda: SETTINGS in bench.said and bench.said[SETTINGS].address)
        await bench.until(lambda: WEB in bench.said and bench.said[WEB].error)
        said = bench.said[WEB].error
        assert said.startswith("Forbidden: no right to patch deployments.apps in the namespace ")
        assert said.endswith(", as edge")
        more = ("create", "clusterrole", "more", "--verb=patch,create", "--resource=deployments")
        await run(api_server.kubectl, *more)
        bound = ("create", "clusterrolebinding", "more", "--clusterrole=more", "--user=edge")
        await run(api_server.kubectl, *bound)
        await bench.until(lambda: bench.said[WEB].address)


async def test_a_namespace_goes_only_if_it_is_ours_and_empty(connect, new_server):
    server = await run(new_server, workloads=False)
    bench = connect(server.kubeconfig)
    other = ObjectKey("", "namespaces", "", "other")
    async with bench.running():
        bench.want(namespace(), config_map(a="1"), config_map("theirs", "other"))
        await bench.settled()
        root = ("get", "configmap", "kube-root-ca.crt", "-n", "shop", "-o", "name")
        await eventually(lambda: run(server.kubectl, *root, check=False), "no controllers")
        theirs = config_map("theirs-too", "other")
        await run(server.kubectl, "apply", "-f", "-", stdin=json.dumps(theirs))
        bench.want()
        await eventually(lambda: _gone(bench, SHOP), "the namespace stays")
        await bench.until(lambda: [done.key for done in bench.done.held.values()] == [other])
        live = await bench.space.get(other)
        assert not live["metadata"].get("deletionTimestamp")
        await run(server.kubectl, "delete", "configmap", "theirs-too", "-n", "other")
        await eventually(lambda: _gone(bench, other), "it stays, and is empty")
        await bench.settled()
        assert bench.done.held == {}


async def test_a_definition_stays_while_others_have_objects_of_it(connect, clean_server):
    bench = connect(clean_server.kubeconfig)
    made = definition("oxen", "Ox")
    key = ObjectKey("apiextensions.k8s.io", "customresourcedefinitions", "", "oxen.example.com")
    theirs = {
        "apiVersion": "example.com/v1",
        "kind": "Ox",
        "metadata": {"name": "theirs", "namespace": "default"},
    }
    async with bench.running():
        bench.want(made)
        await bench.settled()
        await bench.until(lambda: bench.said[key].health == "healthy")
        await eventually(lambda: _created(clean_server, theirs), "not served")
        bench.want()
        await bench.until(lambda: not bench.said[key].present)
        assert "kept: not empty: oxen.example.com/default/theirs" in bench.said[key].reason
        assert await bench.space.get(key)


async def _created(server, obj):
    given = json.dumps(obj)
    code, _, _ = await run(server.kubectl, "create", "-f", "-", stdin=given, check=False)
    return code == 0


def _error(bench, key):
    return bench.said[key].error if key in bench.said else ""


async def _gone(bench, key):
    return await bench.space.get(key) is None


async def test_health_follows_what_real_controllers_say(connect, live_cluster):
    bench = connect(live_cluster.kubeconfig)
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "once", "namespace": "shop"},
        "spec": {
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "main", "image": "once:1"}],
                }
            }
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "disk", "namespace": "shop"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "none-such",
        },
    }
    job_key = ObjectKey("batch", "jobs", "shop", "once")
    claim_key = ObjectKey("", "persistentvolumeclaims", "shop", "disk")
    stuck = deployment("stuck")
    stuck["spec"]["template"]["spec"]["nodeSelector"] = {"disk": "none-such"}
    stuck_key = ObjectKey("apps", "deployments", "shop", "stuck")
    async with bench.running():
        bench.want(deployment(), job, claim, stuck)
        await bench.until(lambda: WEB in bench.said and bench.said[WEB].health == "healthy")
        await bench.until(lambda: job_key in bench.said and bench.said[job_key].health == "healthy")
        await bench.until(
            lambda: claim_key in bench.said and bench.said[claim_key].health == "progressing"
        )
        assert bench.said[claim_key].error == ""
        healths = [told.health for told in bench.history if told.key == WEB and told.address]
        assert healths[0] == "progressing"
        assert len(bench.space.applied) == 5
        # What lasts says why, and of its Pods what keeps them.
        await bench.until(lambda: "Unschedulable: 0/1 nodes" in bench.said[stuck_key].reason)
        assert bench.said[stuck_key].reason.startswith("0 of 2 replicas available: ")
        assert bench.said[claim_key].reason == "not bound to a volume"
        assert not bench.said[WEB].reason


async def test_what_a_quota_refuses_is_said_and_comes_once_there_is_room(connect, live_cluster):
    bench = connect(live_cluster.kubeconfig)
    names = [ObjectKey("", "configmaps", "shop", name) for name in ("one", "two")]
    hard = ("--hard=configmaps=2,pods=1", "-n", "shop")
    await run(live_cluster.kubectl, "create", "namespace", "shop")
    # The cluster's own certificate takes the other place. What comes at the same moment as the
    # quota may be counted minutes later.
    certificate = ("configmap/kube-root-ca.crt", "-n", "shop", "--for=create")
    await run(live_cluster.kubectl, "wait", *certificate, "--timeout=60s")
    await run(live_cluster.kubectl, "create", "quota", "limit", *hard)
    used = ("quota/limit", "-n", "shop", "--for=jsonpath={.status.used.configmaps}=1")
    await run(live_cluster.kubectl, "wait", *used, "--timeout=60s")
    async with bench.running():
        bench.want(config_map("one"), config_map("two"), deployment())
        await bench.until(lambda: any(_error(bench, key) for key in names))
        (refused,) = filter(None, (_error(bench, key) for key in names))
        assert "exceeded quota: limit" in refused
        await bench.until(lambda: WEB in bench.said and bench.said[WEB].health == "degraded")
        assert '-…" is forbidden: exceeded quota: limit' in bench.said[WEB].reason
        await run(live_cluster.kubectl, "delete", "quota", "limit", "-n", "shop")
        await bench.settled()
        assert all(bench.said[key].address and not bench.said[key].error for key in names)
        await bench.until(lambda: bench.said[WEB].health == "healthy")


async def test_what_a_real_autoscaler_sets_is_left_to_it(connect, live_cluster):
    bench = connect(live_cluster.kubeconfig)
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 4,
            "maxReplicas": 6,
        },
    }

    async def replicas():
        return (await bench.space.get(WEB))["spec"]["replicas"]

    async def scaled():
        return await has_replicas(4)

    async def has_replicas(count):
        return await replicas() == count

    async with bench.running():
        bench.want(deployment(replicas=2), scaler)
        await bench.settled()
        await eventually(scaled, "the autoscaler does not act")
        await bench.settled()
        applied = bench.space.applied.count("web")
        bench.want(deployment(replicas=3, minReadySeconds=1), scaler)
        await bench.settled()
        live = await bench.space.get(WEB)
        assert (live["spec"]["replicas"], live["spec"]["minReadySeconds"]) == (4, 1)
        await bench.until(lambda: bench.said[WEB].health == "healthy")
        assert not bench.said[WEB].error
        # One for the change, and one where the scale had come between.
        assert bench.space.applied.count("web") - applied <= 2
        assert await replicas() == 4
        # With the autoscaler gone it is as it is wanted, also where nothing else changes.
        bench.want(deployment(replicas=3, minReadySeconds=1))
        await eventually(lambda: has_replicas(3), "they are left to an autoscaler that is gone")
        # So it is with one that was not ours, once something changes.
        await asyncio.to_thread(live_cluster.kubectl, "apply", "-f", "-", stdin=json.dumps(scaler))
        await eventually(scaled, "the autoscaler does not act")
        await asyncio.to_thread(live_cluster.kubectl, "-n", "shop", "delete", "hpa", "web")
        bench.want(deployment(replicas=5, minReadySeconds=1))
        await eventually(lambda: has_replicas(5), "a change does not arrive")
