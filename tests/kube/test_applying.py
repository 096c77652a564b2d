"""The syncer on real API servers: what they make of a wish, what others do, what they refuse."""

import asyncio
import json

import pytest

from relay.syncer.pending import BEGUN_MAX, REQUESTS_MAX
from schemas.objects.objects import ObjectKey
from tests.awaiting import eventually, soon
from tests.contract.spaces import config_map, definition, deployment
from tests.contract.syncing import TREE
from tests.kube.bed import kubectl

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(120)]


def web_key(place):
    return ObjectKey("apps", "deployments", place, "web")


def settings_key(place):
    return ObjectKey("", "configmaps", place, "settings")


def with_limits(place, **spec):
    obj = deployment(namespace=place, **spec)
    limits = {"limits": {"cpu": "1000m", "memory": "1024Mi"}}
    obj["spec"]["template"]["spec"]["containers"][0]["resources"] = limits
    return obj


def asking(obj, **annotations):
    names = {name.replace("_", "-"): value for name, value in annotations.items()}
    said = {f"leafcast.io/{name}": value for name, value in names.items()}
    return {**obj, "metadata": {**obj["metadata"], "annotations": said}}


async def failing(bench, key, word):
    await bench.until(lambda: key in bench.said and word in bench.said[key].error)
    return bench.said[key].error


async def test_what_a_server_says_in_its_own_words_is_no_drift(bench, place):
    async with bench.running():
        bench.want(with_limits(place))
        await bench.settled()
        live = await bench.space.get(web_key(place))
        resources = live["spec"]["template"]["spec"]["containers"][0]["resources"]
        assert resources["limits"]["cpu"] == "1"
        assert live["metadata"]["labels"]["leafcast.io/tree"] == TREE
        await bench.space.set_status(web_key(place), {"observedGeneration": 1, "replicas": 2})
        await bench.until(lambda: bench.said[web_key(place)].status is not None)
    async with bench.running():
        bench.want(with_limits(place))
        await bench.settled()
    assert bench.space.applied == ["web"]


WHOLE = {
    "emoji": "ok \U0001f600\U0001f510",
    "last": "\U0010ffff and \U0001fffe",
    "written": "\\ud83d\\ude00 \\\U0001f600",
    "others": "nel\x85 ls\u2028 del\x7f no\ufffe bel\x07 nul\x00 bom\ufeff \u6f22",
}
"""Characters that JSON says by a pair of escapes, and others that YAML has no room for."""


async def test_any_character_arrives_as_a_server_side_apply_of_it_does(bench, server, place):
    annotations = {"example.com/banner": WHOLE["emoji"]}
    wanted = config_map("whole", place, **WHOLE)
    wanted["metadata"]["annotations"] = annotations
    async with bench.running():
        bench.want(wanted)
        await bench.settled()
    live = await bench.space.get(ObjectKey("", "configmaps", place, "whole"))
    assert live["data"] == WHOLE
    assert annotations.items() <= live["metadata"]["annotations"].items()
    direct = config_map("direct", place, **{name: WHOLE[name] for name in list(WHOLE)[:3]})
    said = json.dumps(direct, ensure_ascii=False)
    await kubectl(server, "apply", "--server-side", "-f", "-", stdin=said)
    other = await bench.space.get(ObjectKey("", "configmaps", place, "direct"))
    assert other["data"].items() <= live["data"].items()
    web = deployment(namespace=place)
    web["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "\U0001f512"}]
    async with bench.running():
        bench.want(wanted, web)
        await bench.settled()
    live = await bench.space.get(web_key(place))
    assert live["spec"]["template"]["spec"]["containers"][0]["env"][0]["value"] == "\U0001f512"
    status = {
        "conditions": [{"type": "A", "status": "True", "reason": "B", "message": "\U0001f680"}]
    }
    told = await bench.space.set_status(web_key(place), status)
    assert told["status"]["conditions"][0]["message"] == "\U0001f680"


async def test_what_a_person_changes_is_put_back_soon(bench, server, place):
    key = web_key(place)
    async with bench.running():
        bench.want(with_limits(place))
        await bench.settled()
        with soon(4.0):
            await kubectl(server, "-n", place, "set", "image", "deploy/web", "main=web:2")
            await eventually(lambda: _has_image(bench, key, "web:1"), "not repaired", every=0.05)
        await bench.until(lambda: bench.said[key].repaired)
        told = bench.said[key].repaired
        image = 'spec.template.spec.containers[name="main"].image'
        assert (told.count, told.field, told.manager) == (1, image, "kubectl-set")
        await kubectl(server, "-n", place, "scale", "deploy/web", "--replicas=7")
        await eventually(lambda: _has_replicas(bench, key, 2), "not scaled back")
        await kubectl(server, "-n", place, "label", "deploy/web", "leafcast.io/tree-")
        await eventually(lambda: _is_labelled(bench, key), "no longer ours")
        await kubectl(server, "-n", place, "delete", "deploy/web")
        await eventually(lambda: bench.space.get(key), "not made again")
        await bench.settled()
        assert bench.done.of(key).made
        await bench.until(lambda: bench.said[key].repaired.count == 4)
        assert bench.said[key].repaired.field == ""


async def _has_image(bench, key, image):
    live = await bench.space.get(key)
    return live["spec"]["template"]["spec"]["containers"][0]["image"] == image


async def _has_replicas(bench, key, count):
    return (await bench.space.get(key))["spec"]["replicas"] == count


async def _is_labelled(bench, key):
    return TREE in (await bench.space.get(key))["metadata"].get("labels", {}).values()


async def test_what_an_autoscaler_sets_is_left_to_it(bench, server, place):
    key = web_key(place)
    path = f"/apis/apps/v1/namespaces/{place}/deployments/web/scale"
    async with bench.running():
        bench.want(with_limits(place))
        await bench.settled()
        for count in (5, 6):
            body = {
                "apiVersion": "autoscaling/v1",
                "kind": "Scale",
                "metadata": {"name": "web", "namespace": place},
                "spec": {"replicas": count},
            }
            query = "?fieldManager=keda-operator"
            status, answer = await asyncio.to_thread(server.request, "PUT", path + query, body)
            assert status == 200, answer
            await bench.settled()
        bench.want(with_limits(place, minReadySeconds=3))
        await bench.until(lambda: bench.said[key].address == bench.address(key))
        live = await bench.space.get(key)
        assert live["spec"]["replicas"] == 6
        assert live["spec"]["minReadySeconds"] == 3
        assert bench.said[key].error == ""
        assert len(bench.space.applied) < 6


async def test_fields_of_another_manager_are_named_and_taken_only_on_request(bench, server, place):
    key = web_key(place)
    there = deployment(namespace=place, replicas=4)
    await kubectl(server, "apply", "-f", "-", stdin=json.dumps(there))
    async with bench.running():
        bench.want(deployment(namespace=place, replicas=2))
        said = await failing(bench, key, "Conflict")
        assert "kubectl-client-side-apply owns spec.replicas" in said
        assert "leafcast.io/conflicts: force" in said
        assert await _has_replicas(bench, key, 4)
        bench.want(asking(deployment(namespace=place, replicas=2), conflicts="force"))
        await bench.settled()
        assert await _has_replicas(bench, key, 2)
        bench.want()
        await bench.settled()
        live = await bench.space.get(key)
        assert "leafcast.io/tree" not in live["metadata"].get("labels", {})


async def test_a_field_that_cannot_change_is_said_in_the_servers_words(bench, place):
    key = web_key(place)
    changed = deployment(namespace=place)
    changed["spec"]["selector"] = {"matchLabels": {"app": "web", "tier": "front"}}
    changed["spec"]["template"]["metadata"]["labels"]["tier"] = "front"
    async with bench.running():
        bench.want(deployment(namespace=place))
        await bench.settled()
        uid = bench.done.of(key).uid
        bench.want(changed)
        said = await failing(bench, key, "field is immutable")
        assert "leafcast.io/on-immutable: recreate" in said
        assert (await bench.space.get(key))["metadata"]["uid"] == uid
        bench.want(asking(changed, on_immutable="recreate"))
        await bench.settled()
        assert bench.done.of(key).made
        assert bench.done.of(key).uid != uid


def role_binding(place, role):
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "mine", "namespace": place},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "me"}],
    }


def priority_class(place, name):
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": place}, "value": {"one": 1, "other": 2}[name]}


def settings_for_ever(place, value):
    return {**config_map(namespace=place, value=value), "immutable": True}


@pytest.mark.parametrize("made", [role_binding, priority_class, settings_for_ever])
async def test_in_whatever_words_a_field_cannot_change_it_is_made_anew_on_request(
    bench, place, made
):
    async with bench.running():
        bench.want(made(place, "one"))
        (key,) = bench.wanted
        await bench.settled()
        uid = bench.done.of(key).uid
        bench.want(made(place, "other"))
        await failing(bench, key, "leafcast.io/on-immutable: recreate")
        bench.want(asking(made(place, "other"), on_immutable="recreate"))
        await bench.settled()
        assert bench.done.of(key).uid != uid


async def test_a_claim_is_never_made_anew(bench, server, place):
    def claim(mode):
        spec = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}
        metadata = {"name": "data", "namespace": place}
        kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        return asking({**kind, "metadata": metadata, "spec": spec}, on_immutable="recreate")

    key = ObjectKey("", "persistentvolumeclaims", place, "data")
    async with bench.running():
        bench.want(claim("ReadWriteOnce"))
        await bench.settled()
        bench.want(claim("ReadWriteMany"))
        said = await failing(bench, key, "never recreated: undo the change")
        assert "spec is immutable after creation" in said
        assert (await bench.space.get(key))["metadata"]["uid"] == bench.done.of(key).uid
    # No controller runs here that would let it go.
    unprotected = json.dumps({"metadata": {"finalizers": None}})
    await kubectl(server, "-n", place, "patch", "pvc", "data", "--type=merge", "-p", unprotected)


async def test_a_definition_and_its_objects_come_together(bench, server, place):
    oxen = f"oxen{place[2:6]}"
    made = definition(oxen, f"Ox{place[2:6]}")
    one = {
        "apiVersion": "example.com/v1",
        "kind": f"Ox{place[2:6]}",
        "metadata": {"name": "one", "namespace": place},
        "spec": {"a": 1},
    }
    key = ObjectKey("example.com", oxen, place, "one")
    async with bench.running():
        bench.want_keyed({key: one}, made)
        await bench.until(lambda: key in bench.said and bench.said[key].address)
        before = await bench.space.get(key)
        assert before["spec"] == {"a": 1}
        # The definition goes, and the objects with it: both come back.
        await kubectl(server, "delete", "crd", made["metadata"]["name"])
        await eventually(lambda: _is_another(bench, key, before), "not made again")
        await bench.until(lambda: bench.said[key].address and not bench.said[key].error)
        assert bench.done.of(key).made
        assert {"one", made["metadata"]["name"]}.isdisjoint(bench.space.deleted)


async def _is_another(bench, key, before):
    live = await bench.space.get(key)
    return live is not None and live["metadata"]["uid"] != before["metadata"]["uid"]


async def test_a_version_that_is_not_served_is_said(bench, place):
    key = ObjectKey("autoscaling", "horizontalpodautoscalers", place, "web")
    old = {
        "apiVersion": "autoscaling/v2beta2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": place},
    }
    async with bench.running():
        bench.want_keyed({key: old}, config_map(namespace=place))
        said = await failing(bench, key, "no matches for kind")
        assert '"HorizontalPodAutoscaler" in version "autoscaling/v2beta2"' in said
        await bench.until(lambda: settings_key(place) in bench.said)
        await bench.until(lambda: bench.said[settings_key(place)].address)


async def test_a_termination_that_hangs_is_said_and_what_is_wanted_comes_after(
    bench, server, place
):
    key = settings_key(place)
    async with bench.running():
        bench.want(config_map(namespace=place, a="1"))
        await bench.settled()
        held = '{"metadata":{"finalizers":["example.com/hold"]}}'
        await kubectl(server, "-n", place, "patch", "cm", "settings", "-p", held)
        bench.want()
        said = await failing(bench, key, "Terminating")
        assert "finalizers: example.com/hold" in said
        assert bench.done.of(key)
        bench.want(config_map(namespace=place, a="2"))
        await failing(bench, key, "Terminating")
        free = '{"metadata":{"finalizers":null}}'
        await kubectl(server, "-n", place, "patch", "cm", "settings", "-p", free)
        await bench.settled()
        assert (await bench.space.get(key))["data"] == {"a": "2"}
        assert bench.said[key].error == ""
        # We took it ourselves: that it is made again is no repair.
        assert bench.done.of(key).repaired is None


async def test_a_lost_record_is_found_again(bench, server, place):
    key, other = settings_key(place), ObjectKey("", "configmaps", place, "other")
    theirs = json.dumps(config_map("other", place, theirs="1"))
    await kubectl(server, "apply", "-f", "-", stdin=theirs)
    async with bench.running():
        bench.want(config_map(namespace=place), config_map("other", place, ours="1"))
        await bench.settled()
    bench.done.held.clear()
    async with bench.running():
        bench.want()
        await bench.settled()
        assert await bench.space.get(key) is None
        assert (await bench.space.get(other))["data"] == {"theirs": "1"}


async def test_what_is_adopted_is_known_without_a_look_before(bench, server, place):
    made = [config_map(f"c{at}", place, ours="1") for at in range(6)]
    for at in (2, 4):
        theirs = json.dumps(config_map(f"c{at}", place, theirs="1"))
        await kubectl(server, "apply", "-f", "-", stdin=theirs)
    async with bench.running():
        bench.want(*made)
        await bench.settled()
        assert len(bench.space.looked) < len(made)
        bench.want()
        await bench.settled()
        left = (await bench.space.list("", "configmaps", namespace=place)).objects
        held = {obj["metadata"]["name"]: obj["data"] for obj in left}
        assert held == {"c2": {"theirs": "1"}, "c4": {"theirs": "1"}}


async def test_intents_of_more_objects_are_kept_than_are_applied_at_once(bench, place):
    first, *others = [config_map(f"c{number}", namespace=place) for number in range(BEGUN_MAX + 1)]
    bench.space.gates = {obj["metadata"]["name"]: asyncio.Event() for obj in others}
    async with bench.running():
        bench.want(first)
        await bench.settled()
        bench.want(first, *others)
        await bench.until(lambda: len(bench.done.held) > BEGUN_MAX)
        await bench.until(lambda: len(bench.space.applied) == 1 + REQUESTS_MAX)
        assert all(
            not bench.done.of(key).uid for key in bench.wanted if key.name in bench.space.gates
        )
        for gate in bench.space.gates.values():
            gate.set()
        await bench.settled()
        assert all(bench.done.of(key).uid for key in bench.wanted)


async def test_who_takes_a_field_back_each_time_is_named_and_no_war_is_waged(bench, server, place):
    key = web_key(place)
    image = ("-n", place, "set", "image", "deploy/web", "--field-manager=another-tool")
    async with bench.running():
        bench.want(with_limits(place))
        await bench.settled()
        for at in range(5):
            await kubectl(server, *image, f"main=other:{at}")
            await eventually(lambda: _has_image(bench, key, "web:1"), "not repaired")
            await bench.settled()
        await kubectl(server, *image, "main=other:9")
        said = await failing(bench, key, "Contended")
        assert "manager another-tool over spec.template.spec.containers[name=" in said
        assert await _has_image(bench, key, "other:9")
        tries = len(bench.space.applied)
        await kubectl(server, *image, "main=other:10")
        await eventually(lambda: _has_image(bench, key, "other:10"), "not taken")
        assert len(bench.space.applied) == tries
        bench.want(with_limits(place, minReadySeconds=1))
        await eventually(lambda: _has_image(bench, key, "web:1"), "not applied")


async def deny_without_team(server, place, said):
    """Have the server refuse ConfigMaps of the namespace that name no team."""
    only = {"kubernetes.io/metadata.name": place}
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": place},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": only},
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": ["configmaps"],
                    }
                ],
            },
            "validations": [{"expression": "'team' in object.data", "message": said}],
        },
    }
    binding = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": place},
        "spec": {"policyName": place, "validationActions": ["Deny"]},
    }
    for obj in (policy, binding):
        await kubectl(server, "apply", "-f", "-", stdin=json.dumps(obj))
    probe = json.dumps(config_map("probe", place))

    async def refuses():
        arguments = ("apply", "--dry-run=server", "-f", "-")
        code, _, _ = await asyncio.to_thread(server.kubectl, *arguments, stdin=probe, check=False)
        return code

    await eventually(refuses, "the policy does not act", every=0.2)


async def test_what_admission_refuses_is_said_in_its_words_and_tried_again(bench, server, place):
    key = settings_key(place)
    await deny_without_team(server, place, "name the team")
    async with bench.running():
        bench.want(config_map(namespace=place, a="1"), with_limits(place))
        said = await failing(bench, key, "name the team")
        assert said.startswith(("Invalid: ", "Forbidden: "))
        await bench.until(
            lambda: web_key(place) in bench.said and bench.said[web_key(place)].address
        )
        await kubectl(server, "delete", "validatingadmissionpolicybinding", place)
        await bench.until(lambda: bench.said[key].address)
        assert bench.said[key].error == ""


async def test_what_a_policy_denies_is_never_made_anew_for_it(bench, server, place):
    key = settings_key(place)
    await deny_without_team(server, place, "the team is immutable")
    async with bench.running():
        bench.want(asking(config_map(namespace=place, team="a"), on_immutable="recreate"))
        await bench.settled()
        uid = bench.done.of(key).uid
        bench.want(asking(config_map(namespace=place, other="a"), on_immutable="recreate"))
        await failing(bench, key, "the team is immutable")
        assert (await bench.space.get(key))["metadata"]["uid"] == uid
