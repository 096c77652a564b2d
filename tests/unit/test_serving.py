"""What a space serves: kinds, versions, custom ones by their definitions; as an API server says."""

import pytest

from relay.objects.serving import Serving, needs_namespace, without_string_data
from relay.objects.stored_object import INVALID
from relay.space_errors import NOT_FOUND, SpaceError
from schemas.objects.objects import ObjectKey

SIZE = {"type": "integer", "minimum": 1, "maximum": 9}
SPEC = {
    "type": "object",
    "required": ["size", "mode"],
    "properties": {
        "size": SIZE,
        "mode": {"type": "string", "enum": ["on", "off"], "default": "on"},
        "port": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "limit": {"x-kubernetes-int-or-string": True},
        "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 3},
        "parts": {"type": "array", "maxItems": 2, "items": {"type": "object", "properties": {}}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "pod": {"type": "object", "x-kubernetes-embedded-resource": True},
        "one": {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"},
    },
}
SPEC["properties"]["one"]["properties"] = {"a": {"type": "string"}, "b": {"type": "string"}}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": SPEC}}},
            },
            {"name": "v1alpha1", "served": False},
        ],
    },
}
SERVING = Serving().extended_by([DEFINITION])
KEY = ObjectKey("example.com", "widgets", "default", "w")


def obj(version, kind, **more):
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "w"}, **more}


def widget(**spec):
    return obj("example.com/v1", "Widget", spec=spec)


def kept(**spec):
    return SERVING.made_whole(KEY, SERVING.wished(widget(**spec)))["spec"]


@pytest.mark.parametrize(
    ("version", "kind", "said"),
    [
        ("apps/v1", "Deploymnet", 'kind "Deploymnet" in version "apps/v1"; did you mean "Deplo'),
        ("extensions/v1beta1", "Deployment", 'in version "extensions/v1beta1"; write apps/v1'),
        ("extensions/v1beta1", "Ingress", "; write networking.k8s.io/v1"),
        ("batch/v1beta1", "CronJob", "; write batch/v1"),
        ("v2", "Pod", 'no matches for kind "Pod" in version "v2"; write v1'),
        ("policy/v1beta1", "PodSecurityPolicy", "CustomResourceDefinition is applied first"),
        ("autoscaling/v2beta2", "HorizontalPodAutoscaler", "; write autoscaling/v2"),
        ("example.com/v1alpha1", "Widget", "; write example.com/v1"),
        ("example.com/v1", "Gadget", 'no matches for kind "Gadget" in version "example.com/v1"'),
        ("edge.kubestellar.io/v1beta1", "EdgePlacement", "; write edge.kubestellar.io/v2alpha1"),
        ("edge.kubestellar.io/v1alpha1", "Location", "; write edge.kubestellar.io/v2alpha1"),
        ("edge.kubestellar.io/v1alpha1", "Customizer", "; write edge.kubestellar.io/v2alpha1"),
    ],
)
def test_what_is_not_served_is_refused_in_kubectls_words(version, kind, said):
    with pytest.raises(SpaceError) as refused:
        SERVING.admitted(obj(version, kind))
    assert refused.value.reason == NOT_FOUND
    assert said in refused.value.message


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("v1", "ConfigMap"),
        ("apps/v1", "Deployment"),
        ("autoscaling/v1", "HorizontalPodAutoscaler"),
        ("autoscaling/v2", "HorizontalPodAutoscaler"),
        ("resource.k8s.io/v1", "DeviceClass"),
        ("edge.kubestellar.io/v2alpha1", "EdgePlacement"),
        ("example.com/v1", "Widget"),
    ],
)
def test_what_is_served_has_a_key(version, kind):
    assert SERVING.admitted(obj(version, kind)).name == "w"


def test_a_custom_kind_is_served_by_its_definition_alone():
    with pytest.raises(SpaceError, match="ensure its CustomResourceDefinition is applied first"):
        Serving().admitted(widget())
    bare = {**DEFINITION, "spec": {**DEFINITION["spec"], "versions": []}}
    with pytest.raises(SpaceError, match=r"serves no version: add one to spec\.versions"):
        Serving().extended_by([bare]).admitted(widget())


def test_a_custom_resource_is_pruned_and_gets_its_defaults():
    said = kept(size=1, parts=[{"x": 1}], labels={"a": "b"}, any={"x": 1}, more=2)
    assert said == {
        "size": 1,
        "mode": "on",
        "parts": [{}],
        "labels": {"a": "b"},
        "any": {"x": 1},
    }
    pod = obj("v1", "Pod", spec={"x": 1})
    assert kept(size=1, pod=pod)["pod"] == {name: pod[name] for name in pod if name != "spec"}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({}, "spec.size: Required value"),
        (
            {"size": "x"},
            'spec.size: Invalid value: "string": spec.size in body must be of type integer: "str',
        ),
        ({"size": True}, 'spec.size in body must be of type integer: "boolean"'),
        (
            {"size": 12},
            "spec.size: Invalid value: 12: spec.size in body should be less than or equal to 9",
        ),
        (
            {"size": 1, "mode": "up"},
            'spec.mode: Unsupported value: "up": supported values: "on", "off"',
        ),
        ({"size": 1, "name": "A"}, "spec.name in body should match '^[a-z]+$'"),
        ({"size": 1, "name": "abcd"}, "spec.name in body should be at most 3 chars long"),
        ({"size": 1, "parts": [{}, {}, {}]}, "spec.parts in body should have at most 2 items"),
        ({"size": 1, "parts": ["x"]}, 'spec.parts[0]: Invalid value: "string": spec.parts[0] in'),
        ({"size": 1, "labels": {"a": 1}}, "spec.labels.a in body must be of type string"),
        ({"size": 1, "limit": [1]}, "spec.limit in body must be of type integer,string"),
        ({"size": 1, "port": 1.5}, '"spec.port" must validate at least one schema (anyOf)'),
        ({"size": 1, "one": {}}, '"spec.one" must validate one and only one schema (oneOf)'),
    ],
)
def test_a_custom_resource_that_its_schema_does_not_allow_is_refused(spec, said):
    with pytest.raises(SpaceError) as refused:
        kept(**spec)
    assert refused.value.reason == INVALID
    assert refused.value.message.startswith(f"{KEY}: ")
    assert said in refused.value.message


def test_all_faults_are_told_at_once_and_a_status_is_not_looked_at():
    with pytest.raises(SpaceError, match=r"spec\.size: .*; spec\.name: "):
        kept(size=0, name="A")
    told = {**widget(size=1, limit="10%", port=80), "status": {"whatever": 1}}
    assert SERVING.made_whole(KEY, told)["status"] == {"whatever": 1}


def test_string_data_becomes_data():
    secret = obj("v1", "Secret", data={"a": "YQ==", "b": "Yg=="}, stringData={"b": "x", "c": "é"})
    made = without_string_data(secret)
    assert made["data"] == {"a": "YQ==", "b": "eA==", "c": "w6k="}
    assert "stringData" not in made
    assert without_string_data(obj("v1", "ConfigMap", stringData={})) == obj(
        "v1", "ConfigMap", stringData={}
    )


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"data": {"a": "="}}, r"data\.a: illegal base64 data .*write it as stringData"),
        ({"stringData": {"a": 1}}, "stringData: it is not a mapping of strings; quote its values"),
    ],
)
def test_a_secret_whose_data_cannot_be_read_is_refused(fields, said):
    with pytest.raises(SpaceError, match=said):
        without_string_data(obj("v1", "Secret", **fields))


def test_namespaces_of_every_cluster_need_not_be_made():
    assert needs_namespace(ObjectKey("", "configmaps", "default", "a")) is None
    assert needs_namespace(ObjectKey("", "nodes", "", "a")) is None
    assert needs_namespace(ObjectKey("", "pods", "shop", "a")) == ObjectKey(
        "", "namespaces", "", "shop"
    )
