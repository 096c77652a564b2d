"""What is applied of an object: the marks that make it ours, and what its annotations ask for."""

import pytest

from relay.objects.health import terminating
from relay.objects.policies import PolicyUnknown, policies_of
from relay.syncer.object_marks import (
    is_adopted,
    is_ours,
    is_unchangeable,
    marked,
    ours,
    without_replicas,
)
from schemas.objects.objects import ObjectKey

KEY = ObjectKey("apps", "deployments", "shop", "web")
CLAIM = ObjectKey("", "persistentvolumeclaims", "shop", "disk")


def web(**metadata):
    return {"metadata": {"name": "web", "namespace": "shop", **metadata}, "spec": {"replicas": 2}}


def test_marks_make_an_object_ours_and_leave_what_it_said():
    obj = marked(web(labels={"a": "1"}, annotations={"b": "2"}), KEY, "t1", adopted=False)
    assert is_ours(obj, KEY, "t1")
    assert not is_ours(obj, KEY, "t2")
    assert not is_adopted(obj)
    assert obj["metadata"]["labels"]["a"] == "1"
    assert obj["metadata"]["annotations"]["b"] == "2"
    assert ours("t1").matches(obj["metadata"]["labels"])
    assert is_adopted(marked(web(), KEY, "t1", adopted=True))


@pytest.mark.parametrize("resource", ["jobs", "replicationcontrollers"])
def test_what_says_no_label_has_those_of_its_pods_as_a_server_gives_them_to_what_is_unmarked(
    resource,
):
    key = ObjectKey("batch" if resource == "jobs" else "", resource, "shop", "once")
    pods = {"template": {"metadata": {"labels": {"app": "once"}}}}
    bare = {"metadata": {"name": "once", "namespace": "shop"}, "spec": pods}
    assert marked(bare, key, "t1", adopted=False)["metadata"]["labels"]["app"] == "once"
    said = {**bare, "metadata": {**bare["metadata"], "labels": {"a": "1"}}}
    assert "app" not in marked(said, key, "t1", adopted=False)["metadata"]["labels"]
    assert "app" not in marked(bare, KEY, "t1", adopted=False)["metadata"]["labels"]
    for spec in (None, {}, {"template": None}, {"template": {"metadata": None}}):
        assert (
            len(marked({**bare, "spec": spec}, key, "t1", adopted=False)["metadata"]["labels"]) == 1
        )


def test_marks_that_a_controller_copied_to_another_object_make_it_none_of_ours():
    obj = marked(web(labels=None), KEY, "t1", adopted=False)
    assert not is_ours(obj, ObjectKey("apps", "replicasets", "shop", "web"), "t1")


def test_policies_are_read_and_a_misspelt_one_is_refused_with_the_choices():
    assert policies_of(KEY, web()).overwrite
    said = policies_of(KEY, web(annotations={"leafcast.io/on-immutable": "recreate"}))
    assert said.recreate
    assert not policies_of(
        CLAIM, web(annotations={"leafcast.io/on-immutable": "recreate"})
    ).recreate
    with pytest.raises(
        PolicyUnknown,
        match=r"^metadata.annotations\[leafcast.io/existing\]: 'adpt': use adopt, refuse or leave",
    ):
        policies_of(KEY, web(annotations={"leafcast.io/existing": "adpt"}))


def test_what_an_autoscaler_sets_can_be_left_out():
    assert without_replicas(web())["spec"] == {}
    assert without_replicas({"metadata": {}}) == {"metadata": {}}


@pytest.mark.parametrize(
    ("reason", "message", "unchangeable"),
    [
        ("Invalid", 'Service "a" is invalid: spec.clusterIP: field is immutable', True),
        ("Invalid", "spec: Forbidden: updates to statefulset spec for fields other than", True),
        ("Invalid", "roleRef: Invalid value: …: cannot change roleRef", True),
        ("Invalid", "value: Forbidden: may not be changed in an update.", True),
        ("Invalid", "spec: Forbidden: pod updates may not change fields other than `a`", True),
        ("Invalid", "spec.x: Forbidden: field may not change once set", True),
        ("Invalid", "spec: Invalid value: size cannot be changed", True),
        ("Invalid", "spec: Invalid value: it may not be modified after creation", True),
        ("Invalid", "spec.class: Invalid value: changing the class is not allowed", True),
        ("Invalid", "spec.class: Invalid value: Must not be updated", True),
        ("Invalid", "spec.size: Invalid value: may not be larger than 3", False),
        ("Invalid", "spec.strategy: must be Recreate where updates need downtime", False),
        ("Invalid", "spec.replicas: must be greater than or equal to 0", False),
        ("NotFound", "field is immutable", False),
        ("Forbidden", 'admission webhook "a" denied the request: tags are immutable', False),
        ("Invalid", "ValidatingAdmissionPolicy 'a' denied request: tags are immutable", False),
    ],
)
def test_what_cannot_be_changed_is_told_from_what_is_wrong(reason, message, unchangeable):
    assert is_unchangeable(reason, message) == unchangeable


def test_a_stuck_termination_says_since_when_and_what_for():
    assert terminating(web()) == ""
    said = terminating(web(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["a/b", "c/d"]))
    assert said == "terminating since 2026-01-01T00:00:00Z, finalizers: a/b, c/d"
