"""Statuses of what is read at the centre alone: what is wrong with it, and whether it counts."""

import pytest

from controllers.core.workloads.own_statuses import concerned, of_served_kinds, own_status
from controllers.core.workloads.space import Workloads
from leafcast.show.object_tables import columns_of
from leafcast.show.printer_columns import printer_columns
from schemas.api.parsing import parse_kind
from schemas.crds.definitions import custom_resource_definitions
from schemas.objects.objects import ObjectKey

NOW_MS = 1_800_000_000_000
CONTROL, OWN = "control.kubestellar.io", "leafcast.io"
ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "reader"},
}
GOOD = {
    "CustomTransform": {"spec": {"apiGroup": "apps", "resource": "deployments"}},
    "StatusCollector": {"spec": {"combinedFields": [{"name": "n", "type": "COUNT"}]}},
    "Customizer": {"replacements": [{"path": "$.spec.replicas", "value": "2"}]},
    "Denatured": {"spec": {"template": ROLE}},
    "HealthRule": {"spec": {"apiGroup": "", "resource": "configmaps", "ignore": True}},
}
BAD = {
    "CustomTransform": {
        "spec": {"apiGroup": "apps", "resource": "deployments", "remove": ["$.spec["]}
    },
    "StatusCollector": {"spec": {"filter": "1 +", "combinedFields": []}},
    "Customizer": {"replacements": [{"path": "no", "value": "2"}]},
    "Denatured": {"spec": {"template": {"kind": "ClusterRole"}}},
    "HealthRule": {"spec": {"apiGroup": "", "resource": "configmaps", "healthy": "status.x"}},
}
WHERE = {
    "CustomTransform": (f"{CONTROL}/v1alpha1", CONTROL, "customtransforms", ""),
    "StatusCollector": (f"{CONTROL}/v1alpha1", CONTROL, "statuscollectors", ""),
    "Customizer": ("edge.kubestellar.io/v2alpha1", "edge.kubestellar.io", "customizers", "shop"),
    "Denatured": (f"{OWN}/v1alpha1", OWN, "denatureds", ""),
    "HealthRule": (f"{OWN}/v1alpha1", OWN, "healthrules", ""),
}


def put(workloads, kind, said, generation=1, before=None):
    """Take an object of a kind, and give what its status is to say."""
    version, group, resource, namespace = WHERE[kind]
    metadata = {"name": "one", "generation": generation, "resourceVersion": str(generation)}
    metadata |= {"namespace": namespace} if namespace else {}
    status = {"status": before} if before else {}
    obj = {"apiVersion": version, "kind": kind, "metadata": metadata, **said, **status}
    key = ObjectKey(group, resource, namespace, "one")
    workloads.put(key, obj)
    assert concerned(workloads, [key]) == {key}
    found, told = own_status(workloads, key, NOW_MS)
    assert found == obj
    parse_kind({**obj, **GOOD[kind], "status": told})
    return told


def standing(status):
    return {item["type"]: (item["status"], item["reason"]) for item in status["conditions"]}


@pytest.mark.parametrize("kind", GOOD)
def test_one_that_can_be_read_is_ready_and_one_that_cannot_is_stalled(kind):
    workloads = Workloads()
    good = put(workloads, kind, GOOD[kind])
    assert standing(good) == {"Ready": ("True", "Valid")}
    assert "errors" not in good
    assert good["observedGeneration"] == 1
    bad = put(workloads, kind, BAD[kind], 2, good)
    assert standing(bad) == {"Ready": ("False", "Invalid"), "Stalled": ("True", "Invalid")}
    assert bad["observedGeneration"] == 2
    assert bad["errors"]
    assert bad["conditions"][0]["message"].startswith(bad["errors"][0][:20])
    again = put(workloads, kind, GOOD[kind], 3, bad)
    assert standing(again) == {"Ready": ("True", "Valid")}


@pytest.mark.parametrize("kind", GOOD)
def test_tables_show_all_that_is_wrong_and_not_the_first_fault_alone(kind):
    told = put(Workloads(), kind, BAD[kind])
    obj = {"spec": {}, "metadata": {}, "status": told}
    version, group, resource, _ = WHERE[kind]
    served = {each["spec"]["names"]["kind"]: each for each in custom_resource_definitions()}[kind]
    columns = {each.header: each for each in printer_columns(served, version.rpartition("/")[2])}
    column = columns["ERROR" if kind == "CustomTransform" else "PROBLEM"]
    assert column.read(obj, NOW_MS) == "; ".join(told["errors"])
    own = {each.header: each for each in columns_of(group, resource, wide=False)}
    if kind != "CustomTransform":
        assert own["PROBLEM"].read(obj, NOW_MS) == "; ".join(told["errors"])


def test_of_many_faults_of_a_denatured_three_are_named_and_the_others_counted():
    template = {"metadata": {"name": "UPPER", "labels": {"no label": "x"}}}
    told = put(Workloads(), "Denatured", {"spec": {"template": template}})
    *named, _ = told["errors"]
    assert told["conditions"][-1]["message"] == "; ".join(named) + " and 1 more"


@pytest.mark.parametrize("kind", GOOD)
def test_a_status_that_is_written_is_no_news(kind):
    workloads = Workloads()
    said = put(workloads, kind, GOOD[kind])
    assert put(workloads, kind, GOOD[kind], before=said) == said


@pytest.mark.parametrize("kind", GOOD)
def test_of_one_that_is_gone_nothing_is_said(kind):
    workloads = Workloads()
    put(workloads, kind, GOOD[kind])
    _, group, resource, namespace = WHERE[kind]
    key = ObjectKey(group, resource, namespace, "one")
    workloads.deleted(key)
    assert own_status(workloads, key, NOW_MS) is None


def test_custom_transforms_of_one_kind_name_each_other():
    workloads = Workloads()
    put(workloads, "CustomTransform", GOOD["CustomTransform"])
    other = ObjectKey(CONTROL, "customtransforms", "", "two")
    workloads.put(
        other,
        {
            "apiVersion": f"{CONTROL}/v1alpha1",
            "kind": "CustomTransform",
            "metadata": {"name": "two", "generation": 1},
            **GOOD["CustomTransform"],
        },
    )
    both = {other, ObjectKey(CONTROL, "customtransforms", "", "one")}
    assert concerned(workloads, [other]) == both
    _, told = own_status(workloads, other, NOW_MS)
    assert told["warnings"] == [
        "customtransform/one: there for deployments.apps, too; all of them apply"
    ]
    assert standing(told) == {"Ready": ("True", "Valid")}


def test_a_denatured_of_a_kind_that_is_not_served_is_not_done_until_it_is():
    workloads = Workloads()
    workloads.missing.serve([("apps", "deployments")])
    said = put(workloads, "Denatured", GOOD["Denatured"])
    assert standing(said) == {
        "Ready": ("False", "UnknownKind"),
        "Reconciling": ("True", "UnknownKind"),
    }
    key = ObjectKey(OWN, "denatureds", "", "one")
    assert key in of_served_kinds(workloads)
    workloads.missing.serve([("rbac.authorization.k8s.io", "clusterroles")])
    _, said = own_status(workloads, key, NOW_MS)
    assert standing(said) == {"Ready": ("True", "Valid")}
