"""Objects are named, checked and ordered as Kubernetes does."""

import pytest

from schemas.objects.objects import (
    BUILT_IN_KINDS,
    KindEntry,
    ObjectKey,
    apply_order,
    plural,
    validate_object,
)
from schemas.values.faults import InvalidObject


def an_object(kind="ConfigMap", version="v1", name="web", **metadata):
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}}


def crd(group, kind, resource, scope):
    spec = {"group": group, "scope": scope, "names": {"kind": kind, "plural": resource}}
    name = f"{resource}.{group}"
    return {**an_object("CustomResourceDefinition", "apiextensions.k8s.io/v1", name), "spec": spec}


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (ObjectKey("apps", "deployments", "shop", "web"), "deployments.apps/shop/web"),
        (ObjectKey("", "services", "shop", "web"), "services/shop/web"),
        (ObjectKey("", "namespaces", "", "shop"), "namespaces/shop"),
    ],
)
def test_a_key_reads_as_kubectl_names_it(key, text):
    assert str(key) == text


def test_keys_are_ordered_field_by_field():
    first, second = ObjectKey("", "pods", "b", "a"), ObjectKey("apps", "deployments", "a", "a")
    assert sorted([second, first]) == [first, second]


@pytest.mark.parametrize(
    ("kind", "version", "expected"),
    [
        ("Deployment", "apps/v1", KindEntry("deployments", namespaced=True)),
        ("Endpoints", "v1", KindEntry("endpoints", namespaced=True)),
        ("Ingress", "networking.k8s.io/v1", KindEntry("ingresses", namespaced=True)),
        ("NetworkPolicy", "networking.k8s.io/v1", KindEntry("networkpolicies", namespaced=True)),
        ("StorageClass", "storage.k8s.io/v1", KindEntry("storageclasses", namespaced=False)),
        ("CSIStorageCapacity", "storage.k8s.io/v1", KindEntry("csistoragecapacities", True)),
        ("ClusterRole", "rbac.authorization.k8s.io/v1", KindEntry("clusterroles", False)),
        ("Namespace", "v1", KindEntry("namespaces", namespaced=False)),
        ("EdgePlacement", "edge.kubestellar.io/v2alpha1", KindEntry("edgeplacements", False)),
    ],
)
def test_built_in_kinds_are_known(kind, version, expected):
    assert BUILT_IN_KINDS.lookup(version.rpartition("/")[0], kind) == expected


def test_a_namespaced_object_without_a_namespace_is_in_the_default_one():
    assert BUILT_IN_KINDS.key_of(an_object()).namespace == "default"
    assert BUILT_IN_KINDS.key_of(an_object(), namespace="shop").namespace == "shop"
    assert BUILT_IN_KINDS.key_of(an_object(namespace="own"), namespace="shop").namespace == "own"


def test_a_cluster_scoped_object_has_no_namespace_even_if_it_gives_one():
    assert BUILT_IN_KINDS.key_of(an_object("Namespace", namespace="x")).namespace == ""


def test_an_unknown_kind_is_guessed_until_its_definition_is_seen():
    fleet = an_object("Fleet", "example.com/v1", namespace="shop")
    loose = an_object("Fleet", "example.com/v1")
    taught = BUILT_IN_KINDS.extended_by([crd("example.com", "Fleet", "fleetz", "Cluster"), fleet])

    assert str(BUILT_IN_KINDS.key_of(fleet)) == "fleets.example.com/shop/web"
    assert str(BUILT_IN_KINDS.key_of(loose)) == "fleets.example.com/web"
    assert str(taught.key_of(fleet)) == "fleetz.example.com/web"
    assert BUILT_IN_KINDS.lookup("example.com", "Fleet") is None


def test_a_namespaced_definition_puts_its_objects_in_the_default_namespace():
    taught = BUILT_IN_KINDS.extended_by([crd("example.com", "Fleet", "fleets", "Namespaced")])
    loose = an_object("Fleet", "example.com/v1")
    assert str(taught.key_of(loose)) == "fleets.example.com/default/web"


def test_a_definition_that_says_nothing_teaches_nothing():
    empty = an_object("CustomResourceDefinition", "apiextensions.k8s.io/v1")
    taught = BUILT_IN_KINDS.extended_by([empty, {**empty, "spec": {"group": 3}}])
    assert taught.lookup("", "ConfigMap") == BUILT_IN_KINDS.lookup("", "ConfigMap")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("Policy", "policies"),
        ("Gateway", "gateways"),
        ("Box", "boxes"),
        ("Mesh", "meshes"),
        ("Prometheus", "prometheuses"),
        ("CronTab", "crontabs"),
    ],
)
def test_the_guessed_resource_is_the_english_plural(kind, expected):
    assert plural(kind) == expected


@pytest.mark.parametrize(
    "obj",
    [
        an_object(),
        an_object(name="a.b-c.d"),
        an_object("ClusterRole", "rbac.authorization.k8s.io/v1", "system:node"),
        an_object("CertificateSigningRequest", "certificates.k8s.io/v1", "Node:a"),
        an_object("Service", name="web"),
        an_object(labels={"app.kubernetes.io/name": "", "a": "X_y.z"}),
        an_object(labels=None, annotations=None, namespace=None),
        an_object(annotations={"Example.com/UPPER": "any\ntext / at all"}),
    ],
)
def test_valid_objects_are_admitted(obj):
    validate_object(obj)


@pytest.mark.parametrize(
    ("obj", "path", "said"),
    [
        ({"kind": "Pod", "metadata": {"name": "a"}}, "apiVersion", "missing"),
        (an_object(version="V1"), "apiVersion", '"V1" is not an API version'),
        (an_object(version="a/b/v1"), "apiVersion", "is not an API version"),
        ({"apiVersion": "v1", "metadata": {"name": "a"}}, "kind", "missing"),
        (an_object(kind="Config Map"), "kind", '"Config Map" is not a kind'),
        ({"apiVersion": "v1", "kind": "Pod"}, "metadata", "missing"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": []}, "metadata", "missing"),
        (an_object(name=""), "metadata.name", "missing"),
        (an_object(name="", generateName="a-"), "metadata.name", "generateName"),
        (an_object(name=3), "metadata.name", "3 is not a string"),
        (an_object(name="Web"), "metadata.name", '"Web" is not a DNS subdomain'),
        (an_object(name="a..b"), "metadata.name", "is not a DNS subdomain"),
        (an_object(name="a" * 254), "metadata.name", "is not a DNS subdomain"),
        (an_object("Service", name="a.b"), "metadata.name", "is not a DNS label"),
        (an_object("Namespace", name="a" * 64), "metadata.name", "is not a DNS label"),
        (
            an_object("Role", "rbac.authorization.k8s.io/v1", "a/b"),
            "metadata.name",
            "is not a path segment",
        ),
        (an_object(namespace="A"), "metadata.namespace", '"A" is not a DNS label'),
        (an_object(namespace=7), "metadata.namespace", "7 is not a string"),
        (an_object(labels={"a": True}), "metadata.labels[a]", "true is not a string"),
        (an_object(labels={"a": None}), "metadata.labels[a]", "null is not a string"),
        (an_object(labels={"a": "b/c"}), "metadata.labels[a]", "is not a label value"),
        (an_object(labels={"a b": "c"}), "metadata.labels[a b]", "is not a label key"),
        (an_object(labels=["a"]), "metadata.labels", "not a mapping"),
        (an_object(annotations={"a": {}}), "metadata.annotations[a]", "a mapping is not a string"),
        (an_object(annotations={"/a": ""}), "metadata.annotations[/a]", "not a DNS subdomain"),
    ],
)
def test_an_invalid_object_is_refused_with_field_and_remedy(obj, path, said):
    with pytest.raises(InvalidObject) as refused:
        validate_object(obj)

    (fault,) = refused.value.faults
    assert fault.path == path
    assert said in str(fault)
    assert fault.remedy


def test_a_refusal_names_the_object():
    with pytest.raises(InvalidObject) as refused:
        validate_object(an_object("Deployment", "apps/v1", "web", labels={"a": 1, "b": 2}))

    assert (refused.value.kind, refused.value.name) == ("Deployment", "web")
    assert str(refused.value).splitlines() == [
        'Deployment "web": metadata.labels[a]: 1 is not a string; quote it',
        'Deployment "web": metadata.labels[b]: 2 is not a string; quote it',
    ]


def test_what_others_lean_on_is_applied_first():
    order = [
        ("", "namespaces"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("storage.k8s.io", "storageclasses"),
        ("", "serviceaccounts"),
        ("", "configmaps"),
        ("rbac.authorization.k8s.io", "clusterroles"),
        ("rbac.authorization.k8s.io", "clusterrolebindings"),
        ("", "services"),
        ("apps", "deployments"),
        ("monitoring.coreos.com", "servicemonitors"),
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ]
    ranks = [apply_order(group, resource) for group, resource in order]
    assert ranks == sorted(set(ranks))


def test_kinds_without_a_place_of_their_own_go_with_the_workloads():
    workloads = apply_order("apps", "deployments")
    for group, resource in (("", "pods"), ("batch", "jobs"), ("networking.k8s.io", "ingresses")):
        assert apply_order(group, resource) == workloads
