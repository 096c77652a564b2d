"""A syncer on a cluster with the usual controllers: what ends, and what they never give."""

import json

import pytest

from relay.syncer import stalled, surroundings
from schemas.objects.objects import ObjectKey
from tests.awaiting import eventually
from tests.contract.spaces import config_map, definition, deployment, namespace, ox, serve
from tests.kube.bed import kubectl

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture
def server(live_server):
    return live_server


@pytest.fixture
def bench_tree(place):
    """A tree of its own: what another test's syncer kept is not its."""
    return place


def job(place, name="once", image="job:1", ttl=1, **spec):
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": image}]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": place},
        "spec": {"ttlSecondsAfterFinished": ttl, "template": {"spec": pod}, **spec},
    }


async def test_a_job_that_its_cluster_takes_after_its_time_ran_once_until_it_is_changed(
    server, place, bench
):
    key = ObjectKey("batch", "jobs", place, "once")

    async def is_gone():
        return await bench.space.get(key) is None

    async with bench.running():
        bench.want(job(place, ttl=0))
        await bench.until(lambda: (done := bench.done.of(key)) and done.ended)
        await bench.until(is_gone)
        await bench.settled()
        assert bench.space.applied.count("once") == 1
        assert bench.said[key].health == "healthy"
        first = bench.done.of(key).uid
        bench.want(job(place, image="job:2"))
        await bench.until(lambda: (done := bench.done.of(key)).uid != first and done.ended)
    # It is taken while nobody looks.
    await bench.until(is_gone)
    bench.said.clear()
    async with bench.running():
        bench.want(job(place, image="job:2"))
        await bench.until(lambda: key in bench.said and bench.said[key].present)
        await bench.settled()
        assert bench.space.applied.count("once") == 2
        assert bench.said[key].health == "healthy"


async def test_of_a_job_that_ended_while_nobody_looked_the_clusters_events_tell(
    server, place, bench
):
    key = ObjectKey("batch", "jobs", place, "once")
    async with bench.running():
        bench.want(job(place))
        await bench.settled()

    async def is_gone():
        return await bench.space.get(key) is None

    done = bench.done.of(key)
    await bench.until(is_gone)
    # As a node finds it that was killed at once after it had made the Job.
    [slot] = [slot for slot, held in bench.done.held.items() if held.key == key]
    bench.done.held[slot] = type(done)(
        *[getattr(done, name) for name in done.__struct_fields__][:14]
    )
    async with bench.running():
        bench.want(job(place))
        await bench.until(lambda: (done := bench.done.of(key)) and done.ended)
        await bench.settled()
        assert bench.space.applied.count("once") == 1


@pytest.fixture
def soon(monkeypatch):
    """What is waited for in vain is soon waited for no more."""
    for name in ("ADDRESS_GRACE_SECONDS", "OPERATOR_GRACE_SECONDS"):
        monkeypatch.setattr(surroundings, name, 3.0)
    monkeypatch.setattr(surroundings, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(surroundings, "FACTS_SECONDS", 0.5)


API_SERVICE = """
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {name: nobody, namespace: default}
"""


def storage_class(name, mode):
    return f"""
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {{name: {name}}}
provisioner: example.com/nobody
volumeBindingMode: {mode}
---
"""


def claim(place, name, storage):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": place},
        "spec": {**spec, "storageClassName": storage},
    }


def of_wave(obj, wave):
    obj["metadata"].setdefault("annotations", {})["leafcast.io/wave"] = wave
    return obj


def healthy(bench, *keys):
    return all(key in bench.said and bench.said[key].health == "healthy" for key in keys)


async def test_a_claim_that_waits_for_its_first_pod_holds_up_no_wave(server, place, bench, soon):
    late, now = f"late-{place}", f"now-{place}"
    classes = storage_class(late, "WaitForFirstConsumer") + storage_class(now, "Immediate")
    await kubectl(server, "apply", "-f", "-", stdin=classes)
    data, other = (ObjectKey("", "persistentvolumeclaims", place, it) for it in ("data", "other"))
    web = ObjectKey("apps", "deployments", place, "web")
    async with bench.running():
        bench.want(claim(place, "data", late), of_wave(deployment(namespace=place), "1"))
        await bench.until(lambda: healthy(bench, data, web))
        # One that nothing keeps from being bound is waited for.
        bench.want(
            claim(place, "data", late),
            claim(place, "other", now),
            of_wave(deployment(namespace=place), "1"),
        )
        await bench.until(lambda: other in bench.said and bench.said[other].present)
        await bench.settled()
        assert bench.said[other].health == "progressing"


async def test_an_address_is_waited_for_only_where_some_controller_gives_such(
    server, place, bench, soon
):
    def ingress(name, of):
        backend = {"service": {"name": "web", "port": {"number": 80}}}
        return {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"name": name, "namespace": place},
            "spec": {"ingressClassName": f"{of}-{place}", "defaultBackend": backend},
        }

    balancer = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "front", "namespace": place},
        "spec": {
            "type": "LoadBalancer",
            "loadBalancerClass": f"example.com/{place}",
            "ports": [{"port": 80}],
        },
    }
    without, given, former = (
        ObjectKey("networking.k8s.io", "ingresses", place, name)
        for name in ("without", "given", "former")
    )
    front = ObjectKey("", "services", place, "front")
    async with bench.running():
        bench.want(ingress("former", "good"))
        await bench.settled()
        address = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
        await bench.space.set_status(former, address)
        bench.want(
            ingress("former", "good"), ingress("given", "good"), ingress("without", "bad"), balancer
        )
        await bench.until(lambda: {given, without, front} <= bench.said.keys())
        assert bench.said[without].health == "progressing"
        await bench.until(lambda: healthy(bench, without, front))
        assert bench.said[given].health == "progressing"
        await bench.space.set_status(given, address)
        await bench.until(lambda: healthy(bench, given, without, front))


async def test_an_autoscaler_is_well_where_nobody_measures(server, place, bench, soon):
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": place},
        "spec": {
            "maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "metrics": [{"type": "Resource", "resource": metric}],
        },
    }
    key = ObjectKey("autoscaling", "horizontalpodautoscalers", place, "web")
    # As its controller says it, after up to 15 s.
    said = {"lastTransitionTime": "2026-01-01T00:00:00Z", "message": "no metrics"}
    conditions = [
        {"type": "AbleToScale", "status": "True", "reason": "SucceededGetScale", **said},
        {"type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric", **said},
    ]
    async with bench.running():
        bench.want(deployment(namespace=place), autoscaler)
        await bench.settled()
        await bench.space.set_status(key, {"desiredReplicas": 0, "conditions": conditions})
        await bench.until(lambda: healthy(bench, key))
        measured = "v1beta1.metrics.k8s.io"
        await kubectl(server, "apply", "-f", "-", stdin=API_SERVICE)
        try:
            await bench.until(lambda: bench.said[key].health == "degraded")
        finally:
            await kubectl(server, "delete", "apiservice", measured)
        await bench.until(lambda: healthy(bench, key))


async def test_what_its_author_stops_is_well_and_what_another_stops_is_not(
    server, place, bench, monkeypatch
):
    monkeypatch.setattr(stalled, "STALLED_SECONDS", 0.2)
    paused, plain = deployment("paused", place, paused=True), deployment("plain", place)
    kinds = {name: ObjectKey("apps", "deployments", place, name) for name in ("paused", "plain")}
    asleep = ObjectKey("batch", "jobs", place, "asleep")
    async with bench.running():
        bench.want(paused, plain, job(place, "asleep", suspend=True))
        await bench.until(lambda: healthy(bench, *kinds.values(), asleep))
        await kubectl(server, "-n", place, "rollout", "pause", "deployment/plain")
        await bench.until(lambda: bench.said[kinds["plain"]].health == "progressing")
        await bench.until(lambda: "paused there" in bench.said[kinds["plain"]].reason)


async def test_a_custom_resource_is_at_work_until_its_operator_speaks_or_a_while_is_over(
    place, bench, soon
):
    defined = definition("oxen", "Ox")
    defined["spec"]["versions"][0]["subresources"] = {"status": {}}
    await serve(bench.space, defined)
    beast = ox(legs=4)
    beast["metadata"]["namespace"] = place
    key = ObjectKey("example.com", "oxen", place, beast["metadata"]["name"])
    async with bench.running():
        bench.want_keyed({key: beast})
        await bench.until(lambda: key in bench.said and bench.said[key].present)
        assert bench.said[key].health == "progressing"
        await bench.until(lambda: healthy(bench, key))
        await bench.space.set_status(
            key, {"conditions": [{"type": "Ready", "status": "False", "reason": "Lame"}]}
        )
        await bench.until(lambda: bench.said[key].health == "degraded")


async def test_a_namespace_that_hangs_names_the_finalizer_and_what_it_holds(
    server, place, bench, monkeypatch
):
    monkeypatch.setattr(stalled, "STALLED_SECONDS", 0.2)
    key = ObjectKey("", "namespaces", "", place)
    held = json.dumps({"metadata": {"finalizers": ["example.com/hold"]}})
    free = json.dumps({"metadata": {"finalizers": None}})

    def names_it(said, name):
        return f"configmaps/{place}/{name} (example.com/hold)" in said

    settings = ObjectKey("", "configmaps", place, "settings")
    async with bench.running():
        # Of this Namespace no placement tells.
        bench.want(config_map("settings", place, a="1"))
        await bench.settled()
        await kubectl(server, "-n", place, "create", "configmap", "kept")
        await kubectl(server, "-n", place, "patch", "configmap", "kept", "-p", held)
        # Someone deletes it there.
        await kubectl(server, "delete", "namespace", place, "--wait=false")
        await bench.until(lambda: names_it(bench.said[settings].error, "kept"))
        bench.want(namespace(place), config_map("settings", place, a="1"))
        await bench.until(lambda: key in bench.said and names_it(bench.said[key].error, "kept"))
        await kubectl(server, "-n", place, "patch", "configmap", "kept", "-p", free)
        # It is made anew, and now we do.
        await bench.until(lambda: (it := bench.done.of(key)) is not None and it.made)
        ours = config_map("ours", place, b="2")
        ours["metadata"]["finalizers"] = ["example.com/hold"]
        bench.want(namespace(place), ours)
        await bench.settled()
        bench.want()
        await bench.until(lambda: names_it(bench.said[key].error, "ours"))
        await kubectl(server, "-n", place, "patch", "configmap", "ours", "-p", free)
        await eventually(lambda: not bench.done.held, lambda: f"still held: {bench.done.held}")


async def test_rules_that_a_cluster_gathers_stay_and_what_is_wanted_later_comes(
    server, place, bench
):
    def role(name, labels, rules, **more):
        metadata = {"name": f"{place}-{name}", "labels": labels}
        version = "rbac.authorization.k8s.io/v1"
        return {"apiVersion": version, "kind": "ClusterRole", "metadata": metadata} | {
            "rules": rules,
            **more,
        }

    def gathering(**labels):
        selector = {"clusterRoleSelectors": [{"matchLabels": {"to": place}}]}
        return role("admin", labels, [], aggregationRule=selector)

    read = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    write = {**read, "verbs": ["update"]}
    key = ObjectKey("rbac.authorization.k8s.io", "clusterroles", "", f"{place}-admin")
    seen = []

    async def gathered(*rules):
        live = await bench.space.get(key)
        seen.append(live["rules"] or [])
        return seen[-1] == list(rules)

    async with bench.running():
        bench.want(gathering(), role("view", {"to": place}, [read]))
        await bench.settled()
        await eventually(lambda: gathered(read), lambda: f"{seen[-3:]}")
        await bench.settled()
        # Another part, and another label of the whole: neither takes the rights that were there.
        bench.want(gathering(of="a"), role("view", {"to": place}, [read, write]))
        await eventually(lambda: gathered(read, write), lambda: f"{seen[-3:]}")
        await bench.settled()
        assert (await bench.space.get(key))["metadata"]["labels"]["of"] == "a"
        assert not bench.said[key].error
        log = (done for done in bench.done.log if done is not None)
        repaired = [done.repaired for done in log if done.key == key]
    assert repaired
    assert not any(repaired)
    assert [] not in seen[seen.index([read]) :]
