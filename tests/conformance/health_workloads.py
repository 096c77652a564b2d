"""Vectors of the health of what runs: Deployments and the like, Jobs, Pods."""

from __future__ import annotations

from tests.conformance.forms import Case
from tests.conformance.objects import (
    NODES,
    PAUSED,
    READY,
    SET,
    THREE,
    condition,
    conditions,
    obj,
    of,
    waiting,
)


def workloads() -> list[Case]:
    """All of them, in the order of the file."""
    return [
        *_deployments(),
        *_deployments_that_stay(),
        *_paused_deployments(),
        *_late_deployments(),
        *_sets(),
        *_daemons(),
        *_jobs(),
        *_running_pods(),
        *_ended_pods(),
    ]


def _deployments() -> list[Case]:
    late = condition("Progressing", "False", "ProgressDeadlineExceeded", "timed out.")
    return [
        of("Deployment", "healthy", obj("Deployment", "apps/v1", READY, THREE)),
        of("Deployment without status", "progressing", obj("Deployment", "apps/v1", None, THREE)),
        of(
            "Deployment whose status is behind",
            "progressing",
            obj("Deployment", "apps/v1", {**READY, "observedGeneration": 1}, THREE),
        ),
        of(
            "Deployment, one not available",
            "progressing",
            obj("Deployment", "apps/v1", {**READY, "availableReplicas": 2}, THREE),
        ),
        of(
            "Deployment, one not updated",
            "progressing",
            obj("Deployment", "apps/v1", {**READY, "updatedReplicas": 2}, THREE),
        ),
        of(
            "Deployment, an old replica to go",
            "progressing",
            obj("Deployment", "apps/v1", {**READY, "replicas": 4}, THREE),
        ),
        of(
            "Deployment past its deadline",
            "degraded",
            obj("Deployment", "apps/v1", conditions(late, **READY), THREE),
        ),
    ]


def _deployments_that_stay() -> list[Case]:
    late = condition("Progressing", "False", "ProgressDeadlineExceeded", "timed out.")
    refused = condition(
        "ReplicaFailure", "True", "FailedCreate", 'pods "web-5d4f8-abcde" is forbidden'
    )
    return [
        of(
            "Deployment whose Pods are refused",
            "degraded",
            obj("Deployment", "apps/v1", conditions(refused, **READY), THREE),
        ),
        of(
            "Deployment past its deadline, its status behind",
            "progressing",
            obj(
                "Deployment",
                "apps/v1",
                conditions(late, **{**READY, "observedGeneration": 1}),
                THREE,
            ),
        ),
        of(
            "Deployment without spec.replicas wants one",
            "progressing",
            obj("Deployment", "apps/v1", {"observedGeneration": 2}, {}),
        ),
    ]


def _paused_deployments() -> list[Case]:
    late = condition("Progressing", "False", "ProgressDeadlineExceeded", "timed out.")
    owned = {"applied": ["spec.paused", "spec.replicas"]}
    return [
        of(
            "Deployment of no replicas",
            "healthy",
            obj("Deployment", "apps/v1", {"observedGeneration": 2}, {"replicas": 0}),
        ),
        of(
            "Deployment, paused by its author",
            "healthy",
            obj("Deployment", "apps/v1", {**READY, "updatedReplicas": 0}, PAUSED),
            **owned,
        ),
        of(
            "Deployment, paused by somebody there",
            "progressing",
            obj("Deployment", "apps/v1", READY, PAUSED),
            applied=["spec.replicas"],
        ),
        of(
            "Deployment, paused, where no managers are told",
            "healthy",
            obj("Deployment", "apps/v1", READY, PAUSED),
        ),
        of(
            "Deployment, paused, with fewer than are there",
            "progressing",
            obj("Deployment", "apps/v1", {**READY, "availableReplicas": 2}, PAUSED),
            **owned,
        ),
        of(
            "Deployment, paused, past its deadline",
            "degraded",
            obj("Deployment", "apps/v1", conditions(late, **READY), PAUSED),
            **owned,
        ),
        of(
            "Deployment that is being deleted",
            "progressing",
            obj(
                "Deployment",
                "apps/v1",
                READY,
                THREE,
                deletionTimestamp="2026-01-01T00:00:00Z",
                finalizers=["x/y"],
            ),
        ),
    ]


def _late_deployments() -> list[Case]:
    return []


def _sets() -> list[Case]:
    return [
        of("StatefulSet", "healthy", obj("StatefulSet", "apps/v1", SET, THREE)),
        of("StatefulSet, not observed", "progressing", obj("StatefulSet", "apps/v1", {}, THREE)),
        of(
            "StatefulSet, one not ready",
            "progressing",
            obj("StatefulSet", "apps/v1", {**SET, "readyReplicas": 2}, THREE),
        ),
        of(
            "StatefulSet, another revision to come",
            "progressing",
            obj(
                "StatefulSet",
                "apps/v1",
                {**SET, "updateRevision": "b", "currentRevision": "a"},
                THREE,
            ),
        ),
        of(
            "StatefulSet OnDelete, another revision",
            "healthy",
            obj(
                "StatefulSet",
                "apps/v1",
                {**SET, "updateRevision": "b", "currentRevision": "a"},
                {**THREE, "updateStrategy": {"type": "OnDelete"}},
            ),
        ),
        of(
            "StatefulSet, updated up to its partition",
            "healthy",
            obj(
                "StatefulSet",
                "apps/v1",
                {**SET, "updatedReplicas": 1, "updateRevision": "b", "currentRevision": "a"},
                {**THREE, "updateStrategy": {"rollingUpdate": {"partition": 2}}},
            ),
        ),
        of(
            "StatefulSet, not updated up to its partition",
            "progressing",
            obj(
                "StatefulSet",
                "apps/v1",
                {**SET, "updatedReplicas": 0},
                {**THREE, "updateStrategy": {"rollingUpdate": {"partition": 2}}},
            ),
        ),
    ]


def _daemons() -> list[Case]:
    refused = condition(
        "ReplicaFailure", "True", "FailedCreate", 'pods "web-5d4f8-abcde" is forbidden'
    )
    return [
        of("DaemonSet", "healthy", obj("DaemonSet", "apps/v1", NODES)),
        of(
            "DaemonSet, one not available",
            "progressing",
            obj("DaemonSet", "apps/v1", {**NODES, "numberAvailable": 1}),
        ),
        of(
            "DaemonSet, one not updated",
            "progressing",
            obj("DaemonSet", "apps/v1", {**NODES, "updatedNumberScheduled": 1}),
        ),
        of(
            "DaemonSet OnDelete, one not updated",
            "healthy",
            obj(
                "DaemonSet",
                "apps/v1",
                {**NODES, "updatedNumberScheduled": 1},
                {"updateStrategy": {"type": "OnDelete"}},
            ),
        ),
        of("ReplicaSet", "healthy", obj("ReplicaSet", "apps/v1", {"availableReplicas": 3}, THREE)),
        of(
            "ReplicaSet whose Pods are refused",
            "degraded",
            obj("ReplicaSet", "apps/v1", conditions(refused), THREE),
        ),
        of("ReplicaSet without status", "progressing", obj("ReplicaSet", "apps/v1", None, THREE)),
    ]


def _jobs() -> list[Case]:
    return [
        of("Job under way", "progressing", obj("Job", "batch/v1", {"active": 1})),
        of(
            "Job that is complete",
            "healthy",
            obj("Job", "batch/v1", conditions(condition("Complete", "True"))),
        ),
        of(
            "Job that failed",
            "degraded",
            obj("Job", "batch/v1", conditions(condition("Failed", "True", "BackoffLimitExceeded"))),
        ),
        of(
            "Job, suspended by its author",
            "healthy",
            obj("Job", "batch/v1", {}, {"suspend": True}),
            applied=["spec.suspend"],
        ),
        of(
            "Job, suspended by somebody there",
            "progressing",
            obj("Job", "batch/v1", {}, {"suspend": True}),
            applied=[],
        ),
        of(
            "Job, suspended, that failed",
            "degraded",
            obj("Job", "batch/v1", conditions(condition("Failed", "True")), {"suspend": True}),
        ),
    ]


def _running_pods() -> list[Case]:
    return [
        of(
            "Pod, running and ready",
            "healthy",
            obj("Pod", "v1", conditions(condition("Ready", "True"), phase="Running")),
        ),
        of(
            "Pod, running and not ready",
            "progressing",
            obj("Pod", "v1", conditions(condition("Ready", "False"), phase="Running")),
        ),
        of(
            "Pod that runs to its end",
            "progressing",
            obj(
                "Pod",
                "v1",
                conditions(condition("Ready", "True"), phase="Running"),
                {"restartPolicy": "Never"},
            ),
        ),
        of("Pod of which its node says nothing", "unknown", obj("Pod", "v1", {"phase": "Unknown"})),
        of(
            "Pod that finds no node",
            "progressing",
            obj(
                "Pod",
                "v1",
                conditions(
                    condition("PodScheduled", "False", "Unschedulable", "0/3 nodes"),
                    phase="Pending",
                ),
            ),
        ),
    ]


def _ended_pods() -> list[Case]:
    return [
        of(
            "Pod whose container crashes",
            "degraded",
            obj(
                "Pod", "v1", {"phase": "Running", "containerStatuses": waiting("CrashLoopBackOff")}
            ),
        ),
        of(
            "Pod whose image cannot be had",
            "degraded",
            obj("Pod", "v1", {"phase": "Pending", "containerStatuses": waiting("ErrImagePull")}),
        ),
        of(
            "Pod whose init container fails",
            "degraded",
            obj(
                "Pod",
                "v1",
                {
                    "phase": "Pending",
                    "initContainerStatuses": waiting("CreateContainerConfigError"),
                },
            ),
        ),
        of(
            "Pod whose container is made",
            "progressing",
            obj(
                "Pod", "v1", {"phase": "Pending", "containerStatuses": waiting("ContainerCreating")}
            ),
        ),
        of("Pod that succeeded", "healthy", obj("Pod", "v1", {"phase": "Succeeded"})),
        of(
            "Pod that failed",
            "degraded",
            obj("Pod", "v1", {"phase": "Failed", "reason": "Evicted"}),
        ),
    ]
