"""What is taken off an object before it goes out, and what stays."""

import copy

import pytest

from controllers.core.workloads.clean_copies import clean, taken_off
from schemas.api.placement import AS_WRITTEN, KUBESTELLAR
from schemas.objects.objects import ObjectKey

CONFIG = ObjectKey("", "configmaps", "shop", "settings")
SERVICE = ObjectKey("", "services", "shop", "web")
JOB = ObjectKey("batch", "jobs", "shop", "tick")
CLAIM = ObjectKey("", "persistentvolumeclaims", "shop", "data")
VOLUME = ObjectKey("", "persistentvolumes", "", "v")
UID_LABELS = {"controller-uid": "u", "batch.kubernetes.io/controller-uid": "u", "app": "tick"}
RULES = pytest.mark.parametrize("cleaning", [AS_WRITTEN, KUBESTELLAR])


@RULES
def test_what_belongs_to_the_space_is_taken_off(cleaning):
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "settings",
            "namespace": "shop",
            "labels": {"app": "shop", "kubestellar.io/executing-count": "1"},
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
                "kubestellar.io/executing-count": "1",
                "deprecated.daemonset.template.generation": "4",
                "note": "kept",
            },
            "managedFields": [],
            "generation": 3,
            "ownerReferences": [],
            "selfLink": "/",
            "resourceVersion": "7",
            "uid": "u",
            "generateName": "s-",
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "data": {"key": "value"},
        "status": {"seen": True},
    }
    before = copy.deepcopy(obj)
    assert clean(CONFIG, obj, cleaning) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "settings",
            "namespace": "shop",
            "labels": {"app": "shop"},
            "annotations": {"note": "kept"},
        },
        "data": {"key": "value"},
    }
    assert obj == before


def test_an_annotation_map_that_is_left_empty_goes_with_its_last_entry():
    key = "kubectl.kubernetes.io/last-applied-configuration"
    cleaned = clean(CONFIG, {"metadata": {"name": "a", "annotations": {key: "{}"}}})
    assert cleaned == {"metadata": {"name": "a"}}


def test_each_field_that_is_taken_off_is_named_with_the_reason():
    obj = managed(
        {"metadata": {"name": "web", "uid": "u"}, "spec": {"clusterIP": "10.0.0.1"}, "status": {}},
        {"f:spec": {"f:type": {}}},
    )
    told = dict(taken_off(SERVICE, obj))
    assert told.keys() == {"metadata.managedFields", "metadata.uid", "status", "spec.clusterIP"}
    assert told["spec.clusterIP"] == "no manager owns it, so this server handed it out"
    assert taken_off(SERVICE, service(ports=[{"nodePort": 1}])) == []
    by_rule = taken_off(SERVICE, service(ports=[{"nodePort": 1}]), KUBESTELLAR)
    assert [path for path, _ in by_rule] == ["spec.ports[0].nodePort"]


# As it is written.

WRITTEN = {
    SERVICE: {
        "kind": "Service",
        "metadata": {"name": "web", "finalizers": ["example.com/x"]},
        "spec": {
            "type": "LoadBalancer",
            "externalTrafficPolicy": "Local",
            "internalTrafficPolicy": "Local",
            "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 30}},
            "ports": [{"port": 80, "nodePort": 30080}],
            "ipFamilies": ["IPv6"],
            "ipFamilyPolicy": "PreferDualStack",
            "clusterIP": "10.0.0.9",
            "clusterIPs": ["10.0.0.9"],
            "healthCheckNodePort": 31000,
        },
    },
    JOB: {
        "kind": "Job",
        "metadata": {"name": "tick", "labels": UID_LABELS, "finalizers": ["example.com/x"]},
        "spec": {
            "suspend": True,
            "manualSelector": True,
            "selector": {"matchLabels": {"app": "tick"}},
            "template": {"metadata": {"labels": UID_LABELS}},
        },
    },
    CLAIM: {"kind": "PersistentVolumeClaim", "metadata": {}, "spec": {"volumeName": "v"}},
}


@pytest.mark.parametrize("key", WRITTEN, ids=lambda key: key.resource)
def test_what_nobody_but_a_person_can_have_written_goes_out_as_it_is(key):
    assert clean(key, WRITTEN[key]) == WRITTEN[key]


# Of an API server.


def managed(obj, *owned, manager="kubectl-create"):
    """The object as a server shows it, where managers own these fields."""
    entries = [{"manager": manager, "operation": "Update", "fieldsV1": fields} for fields in owned]
    return {**obj, "metadata": {**obj["metadata"], "managedFields": entries}}


def test_what_a_server_handed_out_stays_there_and_what_it_defaulted_does_not():
    obj = managed(WRITTEN[SERVICE], {"f:spec": {"f:type": {}}})
    assert clean(SERVICE, obj) == {
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {
            "type": "LoadBalancer",
            "externalTrafficPolicy": "Local",
            "internalTrafficPolicy": "Local",
            "sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 30}},
            "ports": [{"port": 80}],
        },
    }
    job = clean(JOB, managed(WRITTEN[JOB], {"f:spec": {"f:suspend": {}}}))
    assert job == {
        "kind": "Job",
        "metadata": {"name": "tick", "labels": {"app": "tick"}},
        "spec": {
            "suspend": True,
            "manualSelector": True,
            "template": {"metadata": {"labels": {"app": "tick"}}},
        },
    }


def test_what_a_manager_owns_goes_out_though_servers_hand_it_out():
    port = 'k:{"port":80}'
    owned = {
        "f:metadata": {"f:finalizers": {'v:"example.com/x"': {}}},
        "f:spec": {
            **{
                f"f:{name}": {}
                for name in (
                    "clusterIP",
                    "clusterIPs",
                    "ipFamilies",
                    "ipFamilyPolicy",
                    "healthCheckNodePort",
                )
            },
            "f:ports": {port: {"f:nodePort": {}, "f:port": {}}},
        },
    }
    assert clean(SERVICE, managed(WRITTEN[SERVICE], owned)) == WRITTEN[SERVICE]
    labels = {f"f:{name}": {} for name in UID_LABELS}
    whole = {
        "f:metadata": {"f:labels": labels, "f:finalizers": {'v:"example.com/x"': {}}},
        "f:spec": {
            "f:selector": {},
            "f:template": {"f:metadata": {"f:labels": {".": {}, **labels}}},
        },
    }
    assert clean(JOB, managed(WRITTEN[JOB], whole)) == WRITTEN[JOB]


def test_of_each_port_and_finalizer_it_is_told_apart_who_said_it():
    obj = service(
        ports=[{"port": 80, "nodePort": 30080}, {"port": 443, "nodePort": 31234}],
    )
    obj["metadata"]["finalizers"] = ["kubernetes.io/added", "example.com/said"]
    owned = {
        "f:metadata": {"f:finalizers": {".": {}, 'v:"example.com/said"': {}}},
        "f:spec": {"f:ports": {'k:{"port":80}': {"f:nodePort": {}}, 'k:{"port":443}': {".": {}}}},
    }
    cleaned = clean(SERVICE, managed(obj, owned))
    assert cleaned["spec"]["ports"] == [{"port": 80, "nodePort": 30080}, {"port": 443}]
    assert cleaned["metadata"]["finalizers"] == ["example.com/said"]


@pytest.mark.parametrize("manager", ["kube-controller-manager", "before-first-apply"])
def test_what_only_the_control_plane_owns_no_person_said(manager):
    claim = {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"volumeName": "v", "accessModes": ["ReadWriteOnce"]},
    }
    owned = {
        "f:metadata": {"f:annotations": {"f:pv.kubernetes.io/bind-completed": {}}},
        "f:spec": {"f:volumeName": {}},
    }
    cleaned = clean(CLAIM, managed(claim, owned, manager=manager))
    assert cleaned["metadata"] == {"name": "data"}
    assert cleaned["spec"] == {"accessModes": ["ReadWriteOnce"]}
    assert clean(CLAIM, managed(claim, owned, manager="person")) == claim


def test_a_pod_takes_no_place_of_its_cluster_along():
    said = {"containers": [{"name": "m"}], "priorityClassName": "high"}
    handed_out = {"nodeName": "n1", "priority": 7, "preemptionPolicy": "Never"}
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {**said, **handed_out}}
    key = ObjectKey("", "pods", "shop", "p")
    owned = {"f:spec": {"f:containers": {}, "f:priorityClassName": {}}}
    assert clean(key, managed(pod, owned))["spec"] == said
    assert clean(key, pod) == pod


def test_a_volume_keeps_of_its_claim_what_a_person_said():
    ref = {"name": "data", "namespace": "shop", "uid": "u", "resourceVersion": "7"}
    volume = {"kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {"claimRef": ref}}
    owned = {"f:spec": {"f:claimRef": {"f:name": {}, "f:namespace": {}}}}
    cleaned = clean(VOLUME, managed(volume, owned))
    assert cleaned["spec"]["claimRef"] == {"name": "data", "namespace": "shop"}
    assert clean(VOLUME, managed(volume, {"f:spec": {"f:capacity": {}}}))["spec"] == {}


@pytest.mark.parametrize("owned", [{}, {"f:spec": {"f:clusterIP": {}, "f:clusterIPs": {}}}])
def test_a_headless_service_of_a_server_stays_headless(owned):
    obj = service(clusterIP="None", clusterIPs=["None"])
    assert clean(SERVICE, managed(obj, owned))["spec"] == obj["spec"]


@RULES
def test_a_service_keeps_node_ports_if_it_says_so(cleaning):
    obj = service({"control.kubestellar.io/preserve": "nodeport"}, ports=[{"nodePort": 30080}])
    cleaned = clean(SERVICE, managed(obj, {"f:spec": {"f:type": {}}}), cleaning)
    assert cleaned["spec"]["ports"] == [{"nodePort": 30080}]


# As KubeStellar does.


def service(annotations=None, **spec):
    metadata = {"name": "web", "annotations": annotations or {}}
    return {"kind": "Service", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("owned", [(), ({"f:spec": {}},)], ids=["embedded", "server"])
def test_by_kubestellars_rule_a_service_keeps_no_address_of_its_cluster(owned):
    obj = service(
        ipFamilies=["IPv4"],
        externalTrafficPolicy="Cluster",
        internalTrafficPolicy="Cluster",
        ipFamilyPolicy="SingleStack",
        sessionAffinity="None",
        clusterIP="10.0.0.1",
        clusterIPs=["10.0.0.1"],
        ports=[{"port": 80, "nodePort": 30080}],
        selector={"app": "web"},
    )
    left = {"ports": [{"port": 80}], "selector": {"app": "web"}}
    assert clean(SERVICE, managed(obj, *owned), KUBESTELLAR)["spec"] == left


def test_by_kubestellars_rule_a_headless_service_stays_headless():
    obj = service(clusterIP="None", clusterIPs=["None", "10.0.0.1"])
    left = {"clusterIP": "None", "clusterIPs": ["None"]}
    assert clean(SERVICE, obj, KUBESTELLAR)["spec"] == left


def test_by_kubestellars_rule_a_job_keeps_nothing_that_its_controller_wrote():
    obj = {
        "kind": "Job",
        "metadata": {
            "name": "tick",
            "labels": dict(UID_LABELS),
            "annotations": {"batch.kubernetes.io/job-tracking": ""},
            "finalizers": ["example.com/x"],
        },
        "spec": {
            "selector": {"matchLabels": {"controller-uid": "u"}},
            "suspend": False,
            "template": {"metadata": {"labels": dict(UID_LABELS)}},
        },
    }
    assert clean(JOB, obj, KUBESTELLAR) == {
        "kind": "Job",
        "metadata": {"name": "tick", "labels": {"app": "tick"}},
        "spec": {"template": {"metadata": {"labels": {"app": "tick"}}}},
    }


def test_by_kubestellars_rule_what_a_server_refuses_without_what_was_dropped_goes_with_it():
    kept = clean(
        SERVICE,
        service(
            type="LoadBalancer",
            externalTrafficPolicy="Local",
            healthCheckNodePort=31000,
            sessionAffinity="ClientIP",
            sessionAffinityConfig={"clientIP": {"timeoutSeconds": 10800}},
        ),
        KUBESTELLAR,
    )
    assert kept["spec"] == {"type": "LoadBalancer"}
