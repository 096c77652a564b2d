"""Health by kind, as users of kstatus and Argo CD expect it."""

import pytest

from relay.objects.health import assess, pod_trouble


def obj(kind, api, status=None, spec=None, **metadata):
    made = {"apiVersion": api, "kind": kind, "metadata": {"name": "x", "generation": 2, **metadata}}
    return made | ({"status": status} if status is not None else {}) | {"spec": spec or {}}


def condition(kind, status, reason="", message=""):
    return {"type": kind, "status": status, "reason": reason, "message": message}


READY = {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}
LATE = condition("Progressing", "False", "ProgressDeadlineExceeded", "timed out")
CRASH = [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
PULL = [{"state": {"waiting": {"reason": "ErrImagePull"}}}]
START = [{"state": {"waiting": {"reason": "ContainerCreating"}}}]
SET = {"observedGeneration": 2, "readyReplicas": 3, "updatedReplicas": 3}
THREE = {"replicas": 3}
LB = {"type": "LoadBalancer"}
ADDRESS = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
CRD = "apiextensions.k8s.io/v1"
NODES = {"observedGeneration": 2, "desiredNumberScheduled": 2, "updatedNumberScheduled": 2}

CASES = [
    ("healthy", obj("Deployment", "apps/v1", READY, THREE)),
    ("progressing", obj("Deployment", "apps/v1", None, THREE)),
    ("progressing", obj("Deployment", "apps/v1", {**READY, "observedGeneration": 1}, THREE)),
    ("progressing", obj("Deployment", "apps/v1", {**READY, "availableReplicas": 2}, THREE)),
    ("progressing", obj("Deployment", "apps/v1", {**READY, "updatedReplicas": 1}, THREE)),
    ("progressing", obj("Deployment", "apps/v1", {**READY, "replicas": 4}, THREE)),
    ("degraded", obj("Deployment", "apps/v1", {**READY, "conditions": [LATE]}, THREE)),
    ("healthy", obj("Deployment", "apps/v1", {"observedGeneration": 2}, {"replicas": 0})),
    ("healthy", obj("StatefulSet", "apps/v1", SET, THREE)),
    ("progressing", obj("StatefulSet", "apps/v1", {**SET, "readyReplicas": 1}, THREE)),
    ("progressing", obj("StatefulSet", "apps/v1", {**SET, "updateRevision": "b"}, THREE)),
    ("progressing", obj("StatefulSet", "apps/v1", None, THREE)),
    ("healthy", obj("DaemonSet", "apps/v1", {**NODES, "numberAvailable": 2})),
    ("progressing", obj("DaemonSet", "apps/v1", {**NODES, "numberAvailable": 1})),
    ("healthy", obj("ReplicaSet", "apps/v1", {"availableReplicas": 3}, THREE)),
    ("progressing", obj("ReplicaSet", "apps/v1", {}, THREE)),
    ("healthy", obj("Job", "batch/v1", {"conditions": [condition("Complete", "True")]})),
    ("degraded", obj("Job", "batch/v1", {"conditions": [condition("Failed", "True")]})),
    ("progressing", obj("Job", "batch/v1", {"active": 1})),
    ("healthy", obj("Job", "batch/v1", {}, {"suspend": True})),
    (
        "degraded",
        obj("Job", "batch/v1", {"conditions": [condition("Failed", "True")]}, {"suspend": True}),
    ),
    ("healthy", obj("Deployment", "apps/v1", {"observedGeneration": 2}, {**THREE, "paused": True})),
    (
        "healthy",
        obj("Deployment", "apps/v1", {**READY, "updatedReplicas": 0}, {**THREE, "paused": True}),
    ),
    (
        "progressing",
        obj("Deployment", "apps/v1", {**READY, "availableReplicas": 1}, {**THREE, "paused": True}),
    ),
    ("healthy", obj("Pod", "v1", {"phase": "Succeeded"})),
    ("healthy", obj("Pod", "v1", {"phase": "Running", "conditions": [condition("Ready", "True")]})),
    ("progressing", obj("Pod", "v1", {"phase": "Running"})),
    ("degraded", obj("Pod", "v1", {"phase": "Running", "containerStatuses": CRASH})),
    ("degraded", obj("Pod", "v1", {"phase": "Pending", "containerStatuses": PULL})),
    ("progressing", obj("Pod", "v1", {"phase": "Pending", "containerStatuses": START})),
    ("degraded", obj("Pod", "v1", {"phase": "Failed"})),
    ("unknown", obj("Pod", "v1", {"phase": "Unknown"})),
    ("healthy", obj("Service", "v1")),
    ("progressing", obj("Service", "v1", {}, LB)),
    ("healthy", obj("Service", "v1", ADDRESS, LB)),
    ("healthy", obj("Ingress", "networking.k8s.io/v1", ADDRESS)),
    ("progressing", obj("Ingress", "networking.k8s.io/v1")),
    ("healthy", obj("PersistentVolumeClaim", "v1", {"phase": "Bound"})),
    ("progressing", obj("PersistentVolumeClaim", "v1", {"phase": "Pending"})),
    ("degraded", obj("PersistentVolumeClaim", "v1", {"phase": "Lost"})),
    ("healthy", obj("Namespace", "v1", {"phase": "Active"})),
    ("progressing", obj("Namespace", "v1", {"phase": "Terminating"})),
    ("progressing", obj("CustomResourceDefinition", CRD)),
    (
        "healthy",
        obj("CustomResourceDefinition", CRD, {"conditions": [condition("Established", "True")]}),
    ),
    (
        "degraded",
        obj("CustomResourceDefinition", CRD, {"conditions": [condition("NamesAccepted", "False")]}),
    ),
    ("progressing", obj("APIService", "apiregistration.k8s.io/v1")),
    (
        "healthy",
        obj(
            "APIService",
            "apiregistration.k8s.io/v1",
            {"conditions": [condition("Available", "True")]},
        ),
    ),
    ("progressing", obj("HorizontalPodAutoscaler", "autoscaling/v2")),
    (
        "degraded",
        obj(
            "HorizontalPodAutoscaler",
            "autoscaling/v2",
            {"conditions": [condition("ScalingActive", "False", "FailedGetResourceMetric")]},
        ),
    ),
    (
        "healthy",
        obj(
            "HorizontalPodAutoscaler",
            "autoscaling/v2",
            {"conditions": [condition("AbleToScale", "True")]},
        ),
    ),
    (
        "healthy",
        obj(
            "PodDisruptionBudget",
            "policy/v1",
            {"observedGeneration": 2, "currentHealthy": 2, "desiredHealthy": 1},
        ),
    ),
    (
        "progressing",
        obj(
            "PodDisruptionBudget",
            "policy/v1",
            {"observedGeneration": 2, "currentHealthy": 0, "desiredHealthy": 1},
        ),
    ),
    # No Pod is there that could become healthy.
    (
        "healthy",
        obj(
            "PodDisruptionBudget",
            "policy/v1",
            {
                "observedGeneration": 2,
                "currentHealthy": 0,
                "desiredHealthy": 1,
                "expectedPods": 0,
            },
        ),
    ),
    ("healthy", obj("ConfigMap", "v1")),
    ("healthy", obj("Secret", "v1")),
    ("healthy", obj("Widget", "example.com/v1")),
    ("healthy", obj("Widget", "example.com/v1", {"conditions": [condition("Ready", "True")]})),
    ("degraded", obj("Widget", "example.com/v1", {"conditions": [condition("Ready", "False")]})),
    (
        "progressing",
        obj("Widget", "example.com/v1", {"conditions": [condition("Ready", "Unknown")]}),
    ),
    (
        "degraded",
        obj("Widget", "example.com/v1", {"conditions": [condition("Available", "False")]}),
    ),
    ("degraded", obj("Widget", "example.com/v1", {"conditions": [condition("Stalled", "True")]})),
    ("progressing", obj("Widget", "example.com/v1", {"observedGeneration": 1})),
    ("progressing", obj("ConfigMap", "v1", deletionTimestamp="2026-01-01T00:00:00Z")),
]


@pytest.mark.parametrize(("health", "subject"), CASES)
def test_health_is_what_the_kind_and_its_status_say(health, subject):
    assert assess(subject)[0] == health


@pytest.mark.parametrize(("health", "subject"), CASES)
def test_whatever_is_not_healthy_says_why_in_one_line(health, subject):
    reason = assess(subject)[1]
    assert bool(reason) == (health != "healthy")
    assert "\n" not in reason


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({"phase": "Running"}, ""),
        (
            {"conditions": [condition("PodScheduled", "False", "Unschedulable")]},
            "Unschedulable",
        ),
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]},
            "ErrImagePull",
        ),
        (
            {
                "containerStatuses": [
                    {
                        "name": "main",
                        "state": {
                            "waiting": {"reason": "CrashLoopBackOff", "message": "pod=web-1_x"}
                        },
                    }
                ]
            },
            "CrashLoopBackOff: container main ends again and again",
        ),
    ],
)
def test_what_keeps_a_pod_is_said_in_words_that_fit_its_siblings(status, said):
    assert pod_trouble(obj("Pod", "v1", status)).startswith(said)
    assert bool(pod_trouble(obj("Pod", "v1", status))) == bool(said)


def test_a_missed_deadline_is_named():
    subject = obj("Deployment", "apps/v1", {**READY, "conditions": [LATE]}, THREE)
    assert assess(subject) == ("degraded", "ProgressDeadlineExceeded: timed out")


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
def test_a_pod_that_is_refused_is_said_in_words_that_are_the_same_everywhere(kind):
    refused = 'pods "web-7866ccff64-cjncx" is forbidden: exceeded quota: limit'
    failure = condition("ReplicaFailure", "True", "FailedCreate", refused)
    subject = obj(kind, "apps/v1", {"conditions": [failure], "observedGeneration": 2}, THREE)
    assert assess(subject) == (
        "degraded",
        'FailedCreate: pods "web-7866ccff64-…" is forbidden: exceeded quota: limit',
    )


@pytest.mark.parametrize("status", [[], "x", {"conditions": "x"}, {"conditions": [1, None]}])
def test_a_malformed_status_is_no_error(status):
    assert assess(obj("Deployment", "apps/v1", status))[0] == "progressing"
