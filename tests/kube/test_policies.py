"""On an API server: BindingPolicy, EdgePlacement v1alpha1 and CustomTransform, by kubectl."""

import json

import pytest

from controllers.workloads.finalizers import FINALIZER
from schemas.records.placements import placement_key, result_key
from schemas.reports.reports import Summary
from tests.awaiting import until_gone, until_object
from tests.kube.test_placement_finalizer import HubCentre, centre
from tests.unit.centre_world import config, deployment, target
from tests.unit.test_policies import (
    POLICY,
    control,
    custom_transform,
    delta,
    holds,
    policy,
    says,
    sent,
    transform_key,
)

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]

__all__ = ["HubCentre", "centre"]

OLDER = {
    "apiVersion": "edge.kubestellar.io/v1alpha1",
    "kind": "EdgePlacement",
    "metadata": {"name": "shop"},
    "spec": {
        "locationSelectors": [{}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "shop"}},
        "nonNamespacedObjects": [
            {"apiGroup": "", "resources": ["namespaces"], "resourceNames": ["shop"]}
        ],
    },
}


async def refused(centre, obj):
    code, out, err = await centre.kubectl("apply", "-f", "-", stdin=json.dumps(obj), check=False)
    assert code, out
    return err


async def test_a_policy_by_kubectl_goes_out_says_where_and_ends(centre):
    await centre.inventory.apply(target("s1", "/emea/s1"), "user")
    key = placement_key(POLICY)
    async with centre.running():
        await centre.apply_all(config("a"), policy(clause={"resources": ["configmaps"]}))
        await centre.relay.until(holds(POLICY, "a"))
        everywhere = Summary(states={"synced": 1}, health={"healthy": 1})
        await centre.relay.report(delta(centre.relay, POLICY).source.key, everywhere)
        await until_object(
            centre.wds, key, lambda obj: FINALIZER in obj["metadata"].get("finalizers", ())
        )
        await centre.kubectl("wait", "bp/shop", "--for=condition=Ready", "--timeout=20s")
        found = await until_object(centre.wds, result_key(POLICY), bool)
        assert found["spec"]["destinations"] == [{"clusterId": "s1"}]
        [bound] = found["spec"]["workload"]["namespaceScope"]
        assert (bound["version"], bound["resource"], bound["name"]) == ("v1", "configmaps", "a")
        assert "shop" in await centre.kubectl("get", "bdg,bp")
        await centre.kubectl("delete", "bp", "shop", "--timeout=60s")
        assert delta(centre.relay, POLICY) is None
        await until_gone(centre.wds, result_key(POLICY))


async def test_what_v1alpha1_says_is_kept_by_the_server_and_goes_out(centre):
    async with centre.running():
        await centre.apply_all(config("a"), OLDER)
        await centre.relay.until(holds("shop", "a", "shop"))
    shown = json.loads(
        await centre.kubectl(
            "get", "edgeplacements.v1alpha1.edge.kubestellar.io", "shop", "-o", "json"
        )
    )
    # The server adds what holds without a word.
    assert shown["spec"] == {**OLDER["spec"], "cleaning": "AsWritten"}


async def test_a_transform_by_kubectl_takes_off_and_says_what_is_wrong(centre):
    template = {
        "metadata": {"labels": {"app": "d"}},
        "spec": {"containers": [{"name": "main", "image": "web:1"}]},
    }
    made = deployment("d")
    made["spec"] |= {"selector": {"matchLabels": {"app": "d"}}, "template": template}
    async with centre.running():
        await centre.apply_all(
            made, policy(clause={"apiGroup": "apps"}), custom_transform("t", "$.spec.replicas")
        )

        async def without(relay):
            head = delta(relay, POLICY)
            return head and "replicas" not in (await sent(relay, POLICY, "d"))["spec"]

        await centre.relay.until(without)
        # A server cannot tell a JSONPath: the status does.
        await centre.apply_all(custom_transform("t", "$.spec["))
        key = transform_key("t")
        found = await until_object(centre.wds, key, lambda it: it.get("status", {}).get("errors"))
        assert "spec.remove[0]" in found["status"]["errors"][0]
        said = says("ObjectsRefused", "customtransform/t", "deployments.apps/shop/d")
        await until_object(centre.wds, placement_key(POLICY), said)
        assert await without(centre.relay)


async def test_the_server_refuses_what_the_program_refuses_of_these_kinds(centre):
    long = policy("x" * 64)
    assert "shorten it to at most 63 characters" in await refused(centre, long)
    wide = policy(clause={"objectSelectors": [{}]})
    assert "no field tells objects apart" in await refused(centre, wide)
    mixed = policy(clause={"labelSelectors": [{"matchLabels": {"a": "b"}}]})
    assert "unknown field" in await refused(centre, mixed)
    whole = custom_transform("t", "$")
    assert "spec.remove[0]" in await refused(centre, whole)
    nameless = control("CustomTransform", "t", {"resource": "deployments"})
    assert "spec.apiGroup: Required value" in await refused(centre, nameless)
