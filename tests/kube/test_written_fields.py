"""What a person wrote, beside a direct apply of the same on a real API server."""

import json

import pytest

from controllers.core.workloads.clean_copies import clean
from schemas.objects.objects import BUILT_IN_KINDS, ObjectKey
from tests.awaiting import eventually
from tests.contract.spaces import definition, serve
from tests.kube.bed import kubectl
from tests.kube.test_applying import failing

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.fixture
def bench_tree(place):
    """A tree of its own: what another test leaves, some of it with finalizers, is not its."""
    return place


WRITTEN_SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "finalizers": ["example.com/held"]},
    "spec": {
        "type": "LoadBalancer",
        "externalTrafficPolicy": "Local",
        "internalTrafficPolicy": "Local",
        "sessionAffinity": "ClientIP",
        "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 30}},
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "PreferDualStack",
        "selector": {"app": "web"},
        "allocateLoadBalancerNodePorts": True,
    },
}
WRITTEN_JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "tick"},
    "spec": {
        "suspend": True,
        "manualSelector": True,
        "selector": {"matchLabels": {"app": "tick"}},
        "template": {
            "metadata": {"labels": {"app": "tick"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "m:1"}]},
        },
    },
}


def written(place, base, **spec):
    metadata = {**base["metadata"], "namespace": place}
    return {**base, "metadata": metadata, "spec": {**base["spec"], **spec}}


def addressed(place, last):
    """A Service whose address and ports a person chose, where a server does not by itself."""
    ports = [{"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30000 + last}]
    chosen = {"clusterIP": f"10.0.0.{last}", "healthCheckNodePort": 30040 + last, "ports": ports}
    return written(place, WRITTEN_SERVICE, **chosen)


async def test_what_is_written_arrives_as_by_a_direct_apply(bench, server, place):
    other = f"{place}-direct"
    await kubectl(server, "create", "namespace", other)
    pairs = [
        (addressed(place, 11), addressed(other, 12)),
        (written(place, WRITTEN_JOB), written(other, WRITTEN_JOB)),
    ]
    for sent, direct in pairs:
        text = json.dumps(direct)
        await kubectl(server, "apply", "--server-side", "-f", "-", stdin=text)
        assert clean(BUILT_IN_KINDS.key_of(sent), sent) == sent
    async with bench.running():
        bench.want(*(sent for sent, _ in pairs))
        await bench.settled()
        for sent, direct in pairs:
            key, beside = map(BUILT_IN_KINDS.key_of, (sent, direct))
            here, there = await bench.space.get(key), await bench.space.get(beside)
            chosen = {"clusterIP", "clusterIPs", "healthCheckNodePort", "ports"}
            for field in here["spec"].keys() | there["spec"].keys():
                if field not in chosen or key.resource == "jobs":
                    assert here["spec"].get(field) == there["spec"].get(field), field
            assert here["metadata"].get("finalizers") == there["metadata"].get("finalizers")
            for field in chosen & sent["spec"].keys() - {"ports"}:
                assert here["spec"][field] == sent["spec"][field]
            if ports := sent["spec"].get("ports"):
                assert here["spec"]["ports"][0].items() >= ports[0].items()
        taken = {**addressed(place, 12), "metadata": {"name": "taken", "namespace": place}}
        bench.want(*(sent for sent, _ in pairs), taken)
        key = BUILT_IN_KINDS.key_of(taken)
        said = await failing(bench, key, "already allocated")
        assert said.endswith("say `cleaning: KubeStellar` in the placement")


def gadgets(**properties):
    """The definition of Gadgets whose specs have these fields."""
    made = definition("gadgets", "Gadget")
    inner = {"type": "object", "properties": properties}
    schema = {"type": "object", "properties": {"spec": inner}}
    made["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": schema}
    return made


async def test_what_nobody_said_stays_out_while_the_server_does_not_know_it(
    bench, server, place, monkeypatch
):
    monkeypatch.setattr("relay.syncer.syncer.LEFT_LOOK_SECONDS", 0.3)
    size, parts = {"type": "integer"}, {"type": "array", "items": {"type": "object"}}
    parts["items"]["properties"] = {"name": {"type": "string"}}
    await serve(bench.space, gadgets(size=size, parts=parts))
    spec = {"size": 1, "mode": "fast", "parts": [{"name": "a", "weight": 1}]}
    metadata = {"name": "gadget", "namespace": place}
    gadget = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": metadata, "spec": spec}
    key = ObjectKey("example.com", "gadgets", place, "gadget")
    mode, weight = ("spec", "mode"), ("spec", "parts", 0, "weight")

    async def spec_is(wanted):
        return (await bench.space.get(key))["spec"] == wanted

    async with bench.running():
        # One that a person said stays an error, and is the only one that is named.
        bench.want_keyed({key: gadget}, unsaid={weight})
        assert await failing(bench, key, "field not declared") == (
            f"Invalid: failed to create typed patch object ({place}/gadget; example.com/v1, "
            "Kind=Gadget): .spec.mode: field not declared in schema"
        )
        bench.want_keyed({key: gadget}, unsaid={mode, weight})
        await bench.settled()
        assert await spec_is({"size": 1, "parts": [{"name": "a"}]})
        assert bench.said[key].address == bench.address(key)
    async with bench.running():
        # What is known of it outlives a restart: said by someone, it is no longer left out.
        bench.want_keyed({key: gadget}, unsaid={weight})
        await failing(bench, key, ".spec.mode: field not declared in schema")
        bench.want_keyed({key: gadget}, unsaid={mode, weight})
        await bench.settled()
        parts["items"]["properties"]["weight"] = size
        await bench.space.apply(gadgets(size=size, parts=parts, mode={"type": "string"}), "me")
        await eventually(lambda: spec_is(spec), "what is known by now was not applied")
        await bench.until(lambda: not bench.done.of(key).lesser)
