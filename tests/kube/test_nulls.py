"""Nulls of custom resources on a real API server, beside what kubectl makes of them."""

import asyncio
import json
import uuid

import pytest

from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.kubernetes.kubeconfig import Kubeconfig
from relay.adapters.kubernetes.space import KubernetesSpace
from relay.objects.serving import Serving
from relay.space_errors import SpaceError
from schemas.objects.objects import ObjectKey
from tests.awaiting import eventually
from tests.contract.syncing import Bench

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(120)]

TEXT, NUMBER, MAP = {"type": "string"}, {"type": "integer"}, {"type": "object"}
SPEC = {
    "type": "object",
    "properties": {
        "text": TEXT,
        "number": {**NUMBER, "minimum": 1},
        "either": {"x-kubernetes-int-or-string": True},
        "mode": {"type": "string", "enum": ["on", "off"]},
        "usual": {"type": "string", "default": "a"},
        "maybe": {"type": "string", "nullable": True},
        "maybeUsual": {"type": "string", "nullable": True, "default": "a"},
        "map": {"type": "object", "properties": {"deep": MAP, "kept": TEXT}},
        "labels": {"type": "object", "additionalProperties": TEXT},
        "list": {"type": "array", "items": TEXT},
        "set": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
        "nodes": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": TEXT, "config": MAP}},
        },
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": TEXT, "config": MAP},
            },
        },
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "free": {"x-kubernetes-preserve-unknown-fields": True},
    },
}
SAID = {
    "text": None,
    "number": None,
    "either": None,
    "mode": None,
    "usual": None,
    "maybe": None,
    "maybeUsual": None,
    "map": {"deep": None, "kept": "a"},
    "labels": {"a.b/c": None, "d": "e"},
    "list": None,
    "set": None,
    "nodes": [{"name": "a", "config": None}, {"name": "b"}],
    "ports": [{"name": "a", "config": None}],
    "any": {"x": None, "y": 1},
    "free": None,
}


@pytest.fixture
def place(module_server):
    name = f"t-{uuid.uuid4().hex[:8]}"
    module_server.kubectl("create", "namespace", name)
    return name


@pytest.fixture
async def space(module_server):
    source = Kubeconfig(str(module_server.kubeconfig))
    made = KubernetesSpace(source, SystemClock(), SystemDice())
    yield made
    await made.kinds()
    await made.close()


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "yaks.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Yak", "plural": "yaks"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}}},
            }
        ],
    },
}


def yak(name, place, spec):
    kind = {"apiVersion": "example.com/v1", "kind": "Yak"}
    return {**kind, "metadata": {"name": name, "namespace": place}, "spec": spec}


YAKS = ("example.com", "yaks")


async def kubectl(server, *arguments, stdin=""):
    return await asyncio.to_thread(server.kubectl, *arguments, stdin=stdin)


@pytest.fixture
async def served(space):
    """The space, once it serves yaks."""
    await space.apply(DEFINITION, "me")
    await eventually(lambda: _serves(space), "yaks are not served")
    return space


async def _serves(space):
    return YAKS in {kind.group_resource for kind in await space.kinds()}


async def test_nulls_are_taken_as_kubectl_sends_them(served, module_server, place):
    """Where a field may be null, and where nobody knows it, a null stays: kubectl sends none."""
    said = json.dumps(yak("theirs", place, SAID))
    await kubectl(module_server, "apply", "-f", "-", stdin=said)
    theirs = (await served.get(ObjectKey(*YAKS, place, "theirs")))["spec"]
    ours = (await served.apply(yak("ours", place, SAID), "me"))["spec"]
    assert ours == {**theirs, "maybe": None, "maybeUsual": None, "any": {"x": None, "y": 1}}
    # So it is in a space without a server.
    serving, key = Serving().extended_by([DEFINITION]), ObjectKey(*YAKS, place, "ours")
    alike = serving.made_whole(key, serving.wished(yak("ours", place, SAID)))["spec"]
    assert ours == alike
    again = await served.apply(yak("ours", place, SAID), "me", dry_run=True)
    assert again["spec"] == ours
    with pytest.raises(SpaceError, match=r"\.spec\.number: expected numeric"):
        await served.apply(yak("ours", place, {"number": "x", "text": None}), "me")
    with pytest.raises(SpaceError, match=r"spec\.list\[0\] in body must be of type string"):
        await served.apply(yak("ours", place, {"list": [None], "text": None}), "me")


async def test_an_edge_takes_nulls_once_and_sees_no_drift(served, module_server, place):
    key = ObjectKey(*YAKS, place, "one")
    bench = Bench(served, SystemClock(), SystemDice())
    for _ in range(2):
        async with bench.running():
            bench.want_keyed({key: yak("one", place, SAID)})
            await bench.until(lambda: key in bench.said and bench.said[key].address)
            await bench.settled()
            assert not bench.said[key].error
    assert bench.space.applied == ["one"]
    many = {"labels": {f"n{at:03}": None for at in range(200)}, "text": None}
    async with bench.running():
        bench.want_keyed({key: yak("one", place, many)})
        await bench.settled()
        assert not (await served.get(key)).get("spec", {}).get("labels")
        await kubectl(module_server, "-n", place, "label", "yak", "one", "leafcast.io/tree-")
        await eventually(lambda: _is_labelled(served, key), "not put back")
        await bench.settled()
        live = await served.get(key)
        assert live["spec"] == {"labels": {}, "usual": "a", "maybeUsual": "a"}
    assert bench.said[key].error == ""
    assert len(bench.space.applied) < 6


async def _is_labelled(space, key):
    return "leafcast.io/tree" in ((await space.get(key))["metadata"].get("labels") or {})
