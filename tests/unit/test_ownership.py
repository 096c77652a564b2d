"""What managedFields say of one manager, in objects as real servers write them."""

import copy

import pytest

from relay.syncer.ownership import (
    NOTHING,
    hold_of,
    is_marked,
    is_newborn,
    is_shared,
    marks,
    scaled_by,
    scales,
    taken,
)

OURS = {
    "f:metadata": {"f:labels": {"f:app.kubernetes.io/name": {}}},
    "f:spec": {
        "f:replicas": {},
        "f:template": {
            "f:spec": {
                "f:containers": {
                    'k:{"name":"main"}': {".": {}, "f:image": {}, "f:name": {}, "f:resources": {}},
                }
            }
        },
        "f:finalizers": {'v:"a/b"': {}},
    },
}


def entry(manager, fields, operation="Apply", subresource=None):
    named = {"manager": manager, "operation": operation, "apiVersion": "apps/v1"}
    more = {"subresource": subresource} if subresource else {}
    return {**named, **more, "fieldsType": "FieldsV1", "fieldsV1": fields}


@pytest.fixture
def live():
    main = {"name": "main", "image": "web:1", "resources": {"limits": {"cpu": "1"}}}
    other = {"name": "side", "image": "x"}
    return {
        "metadata": {
            "name": "web",
            "labels": {"app.kubernetes.io/name": "web", "theirs": "1"},
            "managedFields": [
                entry("leafcast", copy.deepcopy(OURS)),
                entry("kubectl-edit", {}, "Update"),
            ],
        },
        "spec": {
            "replicas": 2,
            "template": {"spec": {"containers": [other, main]}},
            "finalizers": ["a/b"],
        },
    }


def digest(live):
    return hold_of(live, "leafcast").digest


def test_an_object_without_managed_fields_does_not_say_who_holds_what():
    assert hold_of({"metadata": {"name": "a"}}, "leafcast") is None
    assert hold_of({"metadata": {"name": "a", "managedFields": []}}, "leafcast") == NOTHING


@pytest.mark.parametrize(
    "change",
    [
        lambda live: live["metadata"]["labels"].update(theirs="2"),
        lambda live: live["spec"].update(paused=True),
        lambda live: live["spec"]["template"]["spec"]["containers"][1].update(tty=True),
        lambda live: live["spec"]["template"]["spec"]["containers"].reverse(),
        lambda live: live["metadata"]["managedFields"][0].update(time="2026-01-01T00:00:00Z"),
        lambda live: live["metadata"]["managedFields"][1].update(fieldsV1={"f:spec": {}}),
        lambda live: live.update(status={"replicas": 1}),
    ],
)
def test_what_others_hold_changes_nothing(live, change):
    before = digest(live)
    change(live)
    assert digest(live) == before


@pytest.mark.parametrize(
    "change",
    [
        lambda live: live["metadata"]["labels"].clear(),
        lambda live: live["spec"].update(replicas=3),
        lambda live: live["spec"]["template"]["spec"]["containers"][1].update(image="web:2"),
        lambda live: live["spec"]["template"]["spec"]["containers"][1]["resources"].clear(),
        lambda live: live["spec"]["template"]["spec"]["containers"].pop(),
        lambda live: live["spec"]["finalizers"].clear(),
        lambda live: live["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"].pop("f:replicas"),
        lambda live: live["metadata"]["managedFields"].pop(0),
    ],
)
def test_what_we_hold_is_missed(live, change):
    before = digest(live)
    change(live)
    assert digest(live) != before


def test_the_same_fields_under_another_operation_are_not_ours(live):
    live["metadata"]["managedFields"][0]["operation"] = "Update"
    assert hold_of(live, "leafcast") == NOTHING


def test_who_took_a_field_is_named(live):
    fields = hold_of(live, "leafcast").fields
    entries = live["metadata"]["managedFields"]
    before = copy.deepcopy(entries[0]["fieldsV1"])
    del entries[0]["fieldsV1"]["f:spec"]["f:replicas"]
    entries[1]["fieldsV1"] = {"f:spec": {"f:replicas": {}, "f:paused": {}}}
    assert taken(live, "leafcast", fields) == {"spec.replicas": "kubectl-edit"}
    entries[0]["fieldsV1"] = before
    assert taken(live, "leafcast", fields) == {}


def test_fields_are_known_again_as_servers_name_them(live):
    fields = hold_of(live, "leafcast").fields
    for path in (
        ".spec.replicas",
        "spec.replicas",
        '.spec.template.spec.containers[name="main"].image',
        ".metadata.labels.app.kubernetes.io/name",
        '.spec.finalizers[="a/b"]',
    ):
        assert is_marked(path, fields)
    assert not is_marked(".spec.paused", fields)
    assert not is_marked(".spec.replicas", b"")


def test_what_is_kept_of_fields_is_bounded():
    assert len(marks(f"data.k{at}" for at in range(5000))) == 4096


def test_a_controller_that_scales_is_known_and_a_person_is_not(live):
    entries = live["metadata"]["managedFields"]
    scale = {"f:spec": {"f:replicas": {}}}
    assert scaled_by(live) == ""
    entries.append(entry("kubectl", scale, "Update", "scale"))
    assert scaled_by(live) == ""
    entries.append(entry("kube-controller-manager", scale, "Update", "scale"))
    assert scaled_by(live) == "kube-controller-manager"


@pytest.mark.parametrize("fields", [None, [], {"k:{": {"f:a": 1}, "": {}, "v:x": {}, "i:9": {}}])
def test_fields_that_make_no_sense_are_harmless(live, fields):
    live["metadata"]["managedFields"][0]["fieldsV1"] = fields
    assert hold_of(live, "leafcast") is not None
    assert taken(live, "other", b"") == {}


def test_an_object_that_no_one_else_wrote_is_new(live):
    entries = live["metadata"]["managedFields"]
    assert not is_newborn(live, "leafcast")
    assert is_shared(live, "leafcast")
    entries[1] = entry("leafcast", {}, "Update")
    entries.append(entry("kube-controller-manager", {}, "Update", "status"))
    assert is_newborn(live, "leafcast")
    assert not is_shared(live, "leafcast")
    assert not is_newborn({"metadata": {"managedFields": []}}, "leafcast")
    assert not is_shared({"metadata": {}}, "leafcast")


def test_an_autoscaler_scales_what_it_names():
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    autoscaler = {"spec": {"scaleTargetRef": target}}
    assert scales(autoscaler, "apps", "web")
    assert not scales(autoscaler, "apps", "cart")
    assert not scales(autoscaler, "example.com", "web")
    assert not scales({"spec": {}}, "apps", "web")
