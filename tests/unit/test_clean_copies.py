"""What is taken off an object before it goes out, and what stays."""

import copy

from controllers.core.workloads.clean_copies import clean
from schemas.objects import ObjectKey

CONFIG = ObjectKey("", "configmaps", "shop", "settings")
SERVICE = ObjectKey("", "services", "shop", "web")
JOB = ObjectKey("batch", "jobs", "shop", "tick")


def test_what_belongs_to_the_space_is_taken_off():
    obj = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "settings",
            "namespace": "shop",
            "labels": {"app": "shop", "kubestellar.io/executing-count": "1"},
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
                "note": "kept",
            },
            "managedFields": [],
            "finalizers": ["x"],
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
    assert clean(CONFIG, obj) == {
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


def service(annotations=None, **spec):
    metadata = {"name": "web", "annotations": annotations or {}}
    return {"kind": "Service", "metadata": metadata, "spec": spec}


def test_a_service_keeps_no_address_of_its_cluster():
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
    assert clean(SERVICE, obj)["spec"] == {"ports": [{"port": 80}], "selector": {"app": "web"}}


def test_a_headless_service_stays_headless():
    obj = service(clusterIP="None", clusterIPs=["None", "10.0.0.1"])
    assert clean(SERVICE, obj)["spec"] == {"clusterIP": "None", "clusterIPs": ["None"]}


def test_a_service_keeps_node_ports_if_it_says_so():
    obj = service({"control.kubestellar.io/preserve": "nodeport"}, ports=[{"nodePort": 30080}])
    assert clean(SERVICE, obj)["spec"]["ports"] == [{"nodePort": 30080}]


def test_a_job_keeps_nothing_that_its_controller_wrote():
    labels = {"controller-uid": "u", "batch.kubernetes.io/controller-uid": "u", "app": "tick"}
    obj = {
        "kind": "Job",
        "metadata": {
            "name": "tick",
            "labels": dict(labels),
            "annotations": {"batch.kubernetes.io/job-tracking": ""},
        },
        "spec": {
            "selector": {"matchLabels": {"controller-uid": "u"}},
            "suspend": False,
            "template": {"metadata": {"labels": dict(labels)}},
        },
    }
    assert clean(JOB, obj) == {
        "kind": "Job",
        "metadata": {"name": "tick", "labels": {"app": "tick"}},
        "spec": {"template": {"metadata": {"labels": {"app": "tick"}}}},
    }


def test_what_a_server_refuses_without_what_was_dropped_goes_with_it():
    kept = clean(
        SERVICE,
        service(
            type="LoadBalancer",
            externalTrafficPolicy="Local",
            healthCheckNodePort=31000,
            sessionAffinity="ClientIP",
            sessionAffinityConfig={"clientIP": {"timeoutSeconds": 10800}},
        ),
    )
    assert kept["spec"] == {"type": "LoadBalancer"}
