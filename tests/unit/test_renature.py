"""A Denatured is to placements what it holds: under that object's key, with that one's labels."""

import pytest

from controllers.core.workloads.clean_copies import clean
from controllers.core.workloads.renature import Renatured, renature
from schemas.objects.objects import BUILT_IN_KINDS, ObjectKey
from schemas.values.faults import InvalidObject

RBAC = "rbac.authorization.k8s.io"
READER = ObjectKey(RBAC, "clusterroles", "", "reader")


def role(name="reader", *verbs, kind="ClusterRole", **metadata):
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": list(verbs or ("get",))}]
    metadata = {"name": name, **metadata}
    return {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": metadata, "rules": rules}


def denatured(name, template, version="1", **metadata):
    return {
        "apiVersion": "leafcast.io/v1alpha1",
        "kind": "Denatured",
        "metadata": {"name": name, "uid": f"u-{name}", "resourceVersion": version, **metadata},
        "spec": {"template": template},
    }


def put(held, obj, shown=None):
    return held.put(obj["metadata"]["name"], obj, BUILT_IN_KINDS, shown or {})


def test_destinations_get_the_plain_object():
    created = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    key, inner = renature(denatured("d", role(labels={"app": "shop"}), **created), BUILT_IN_KINDS)
    assert key == READER
    assert inner["metadata"]["uid"] == "u-d"
    assert inner["metadata"]["creationTimestamp"] == created["creationTimestamp"]
    assert clean(key, inner) == role(labels={"app": "shop"})


def test_a_namespaced_object_without_namespace_goes_to_the_default_one():
    key, inner = renature(denatured("d", role(kind="Role")), BUILT_IN_KINDS)
    assert (key.namespace, inner["metadata"]["namespace"]) == ("default", "default")


def test_a_namespace_on_a_cluster_scoped_object_is_ignored():
    key, inner = renature(denatured("d", role(namespace="shop")), BUILT_IN_KINDS)
    assert key == READER
    assert "namespace" not in inner["metadata"]


@pytest.mark.parametrize(
    "template",
    [
        "text",
        {"kind": "ClusterRole", "metadata": {"name": "x"}},
        role("x", labels={"a": "b c"}),
        denatured("inner", role()),
        {"apiVersion": "edge.kubestellar.io/v2alpha1", "kind": "EdgePlacement", "metadata": {}},
    ],
)
def test_a_template_that_is_no_object_to_deliver_is_refused_by_its_field(template):
    with pytest.raises(InvalidObject) as refused:
        renature(denatured("d", template), BUILT_IN_KINDS)
    assert all(fault.path.startswith("spec.template") for fault in refused.value.faults)


def test_an_invalid_denatured_goes_on_holding_what_it_held():
    held = Renatured()
    put(held, denatured("d", role()))
    assert put(held, denatured("d", "text")) == {}
    assert held.holds(READER)
    assert "spec.template" in held.invalid["d"][0]


def test_a_template_that_names_another_object_lets_the_first_go():
    held = Renatured()
    put(held, denatured("d", role()))
    changed = put(held, denatured("d", role("writer")))
    writer = ObjectKey(RBAC, "clusterroles", "", "writer")
    assert changed[READER] is None
    assert changed[writer]["metadata"]["name"] == "writer"


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_of_two_that_hold_the_same_object_the_first_by_name_counts(order):
    held = Renatured()
    for name in order:
        changed = put(held, denatured(name, role("reader", "get" if name == "a" else "list")))
    assert changed[READER]["rules"][0]["verbs"] == ["get"]
    (fault,) = held.faults([READER])
    assert "denatured/a counts, and not denatured/b" in str(fault)
    assert held.remove("a")[READER]["rules"][0]["verbs"] == ["list"]
    assert held.faults([READER]) == ()


def test_a_plain_object_is_hidden_and_counts_again_afterwards():
    held, plain = Renatured(), role("reader", "watch")
    assert put(held, denatured("d", role()), {READER: plain})[READER]["rules"] != plain["rules"]
    newer = role("reader", "list")
    assert held.hide(READER, newer)
    assert held.faults([READER])
    assert held.remove("d") == {READER: newer}
    assert not held.hide(READER, plain)


def test_a_plain_object_that_went_while_it_was_hidden_does_not_come_back():
    held = Renatured()
    put(held, denatured("d", role()), {READER: role()})
    held.hide(READER, None)
    assert held.remove("d") == {READER: None}


def test_a_denatured_that_is_being_deleted_counts_as_gone():
    held = Renatured()
    put(held, denatured("d", role()))
    gone = denatured("d", role(), deletionTimestamp="2026-01-01T00:00:00Z")
    assert put(held, gone) == {READER: None}
