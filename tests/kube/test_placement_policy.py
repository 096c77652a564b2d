"""The admission policy of deploy/: people place what lies in the Namespaces that they name."""

import json
from pathlib import Path

import pytest

from schemas.crds.definitions import custom_resource_definitions
from tests.awaiting import until

pytestmark = [pytest.mark.kube, pytest.mark.slow, pytest.mark.timeout(180)]

POLICY = Path(__file__).parents[2] / "deploy" / "placement-policy.yaml"
ALICE = ("--as=alice", "--as-group=developers")
BOB = ("--as=bob", "--as-group=platform")
RIGHTS = [
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "placing"},
        "rules": [
            {
                "apiGroups": ["edge.kubestellar.io", "control.kubestellar.io", "leafcast.io"],
                "resources": ["*"],
                "verbs": ["*"],
            }
        ],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "placing"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "placing",
        },
        "subjects": [
            {"kind": "Group", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
            for name in ("developers", "platform")
        ],
    },
]
UPSYNC = {"resources": ["secrets"], "namespaces": ["*"], "names": ["*"]}


def placement(name, **spec):
    form = {"apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgePlacement"}
    return {**form, "metadata": {"name": name}, "spec": spec}


def policy(name, *clauses):
    form = {"apiVersion": "control.kubestellar.io/v1alpha1", "kind": "BindingPolicy"}
    return {**form, "metadata": {"name": name}, "spec": {"downsync": list(clauses)}}


NARROW = placement("shop", downsync=[{"namespaces": ["shop"]}])
DENATURED = {
    "apiVersion": "leafcast.io/v1alpha1",
    "kind": "Denatured",
    "metadata": {"name": "admin"},
    "spec": {
        "template": {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "all"},
            "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}],
        }
    },
}


def collector(name, **spec):
    form = {"apiVersion": "control.kubestellar.io/v1alpha1", "kind": "StatusCollector"}
    columns = [{"name": "x", "def": "returned.data"}]
    return {**form, "metadata": {"name": name}, "spec": {"select": columns, **spec}}


STEALING = collector("steal", source={"upsync": UPSYNC})
WIDE = [
    placement("wide", downsync=[{"apiGroup": "rbac.authorization.k8s.io"}]),
    placement("wide", downsync=[{"namespaces": ["*"], "resources": ["secrets"]}]),
    placement("wide", downsync=[{"namespaces": ["shop"]}, {"namespaces": ["kube-system"]}]),
    placement("wide", downsync=[{"resources": ["roles"], "namespaces": []}]),
    placement("wide", upsync=[UPSYNC]),
    policy("wide", {"resources": ["clusterroles"], "objectNames": ["admin"]}),
    STEALING,
    DENATURED,
]


def test_people_place_what_lies_in_the_namespaces_that_they_name(module_server):
    def applied(obj, *who):
        code, out, err = module_server.kubectl(
            "apply", *who, "--dry-run=server", "-f", "-", check=False, stdin=json.dumps(obj)
        )
        return "" if code == 0 else out + err

    everything = [*custom_resource_definitions(), *RIGHTS]
    listed = {"apiVersion": "v1", "kind": "List", "items": everything}
    module_server.kubectl("apply", "-f", "-", stdin=json.dumps(listed))
    module_server.await_definitions()
    assert not applied(WIDE[0], *ALICE)
    module_server.kubectl("apply", "-f", str(POLICY))
    until(lambda: "names its namespaces" in applied(WIDE[0], *ALICE), seconds=60)
    for obj in WIDE:
        said = applied(obj, *ALICE)
        assert "ValidatingAdmissionPolicy 'leafcast-" in said, (obj, said)
        assert not applied(obj, *BOB), obj
    assert not applied(NARROW, *ALICE)
    assert not applied(policy("shop", {"namespaces": ["shop"]}), *ALICE)
    assert not applied(collector("fine"), *ALICE)
