"""How well an object is, by its kind and status, in the words and by the rules users know.

The rules follow kstatus and Argo CD: a status that is behind the spec (`observedGeneration`) means
progressing, a Deployment past its progress deadline is degraded, a kind that only holds data is
healthy by existing. A kind not known here goes by its own conditions: Stalled=True is degraded,
Reconciling=True progressing, then Ready (else Available) decides: True healthy, False degraded,
Unknown progressing. Without such a condition it is healthy: no status is expected of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from schemas.objects.objects import group_kind
from schemas.reports.reports import Health
from schemas.values.fields import conditions_of, holds, list_at, mapping_at, mappings_at

Assessment = tuple[Health, str]
_Fields = Mapping[str, Any]

_HEALTHY: Assessment = ("healthy", "")
_CRASHING = "CrashLoopBackOff"
# The name of a Pod that was refused ends by chance: without that end it is the same everywhere.
_GENERATED = re.compile(r'(^FailedCreate: pods "[^"]*-)[a-z0-9]{5}(?=")')


def assess(
    obj: Mapping[str, Any], is_wished: Callable[[str], bool] = lambda _path: True
) -> Assessment:
    """The object's health and, unless it is healthy, a line that says why.

    `is_wished` says of a field whether who applied the object wrote it: what its author stops is
    as it shall be.
    """
    if under_way := terminating(obj) or behind(obj):
        return "progressing", under_way
    kind, spec, status = group_kind(obj), mapping_at(obj, "spec"), mapping_at(obj, "status")
    stop = _STOPS.get(kind)
    if stop is not None and spec.get(stop[0]) is True:
        return _stopped(stop, kind, (spec, status), is_wished=is_wished(f"spec.{stop[0]}"))
    return _RULES.get(kind, _by_conditions)(spec, status)


def terminating(obj: Mapping[str, Any]) -> str:
    """Since when an object is being deleted, and what that waits for; "" if it is not."""
    metadata = mapping_at(obj, "metadata")
    since = metadata.get("deletionTimestamp")
    if not since:
        return ""
    # Namespaces have some in their spec.
    names = (*list_at(metadata, "finalizers"), *list_at(obj, "spec", "finalizers"))
    return f"terminating since {since}, finalizers: {', '.join(map(str, names)) or 'none'}"


def behind(obj: Mapping[str, Any]) -> str:
    """How far the status of an object is behind its spec; "" if it is not."""
    observed = mapping_at(obj, "status").get("observedGeneration")
    generation = mapping_at(obj, "metadata").get("generation")
    if isinstance(observed, int) and isinstance(generation, int) and observed < generation:
        return f"observed generation {observed} of {generation}"
    return ""


def _why(condition: _Fields) -> str:
    reason, message = condition.get("reason", ""), condition.get("message", "")
    said = ": ".join(str(part) for part in (reason, message) if part)
    # It becomes part of a sentence.
    return said.removesuffix(".") or "no reason given"


def _reached(count: int, wanted: int, what: str) -> Assessment:
    return _HEALTHY if count >= wanted else ("progressing", f"{count} of {wanted} {what}")


def _once(status: _Fields, condition: str, until: str) -> Assessment:
    return _HEALTHY if holds(status, condition) else ("progressing", until)


def _count(fields: _Fields, name: str, default: int = 0) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) else default


def _stopped(
    stop: tuple[str, str], kind: tuple[str, str], said: tuple[_Fields, _Fields], *, is_wished: bool
) -> Assessment:
    """How well a stopped object is: well as it is if its author stopped it, and nothing fails."""
    health, reason = _RULES[kind](*said)
    if health == "degraded" or (kind == ("batch", "Job") and health == "healthy"):
        return health, reason
    if not is_wished:
        return "progressing", stop[1]
    spec, status = said
    there = min(_count(status, "replicas"), _count(spec, "replicas", 1))
    return _reached(_count(status, "availableReplicas"), there, "replicas available")


def _deployment(spec: _Fields, status: _Fields) -> Assessment:
    progressing = conditions_of(status).get("Progressing", {})
    if progressing.get("reason") == "ProgressDeadlineExceeded":
        return "degraded", _why(progressing)
    if holds(status, "ReplicaFailure"):
        return _replica_failure(status)
    if "observedGeneration" not in status:
        return "progressing", "not observed by its controller yet"
    wanted, updated = _count(spec, "replicas", 1), _count(status, "updatedReplicas")
    if updated < wanted:
        return "progressing", f"{updated} of {wanted} replicas updated"
    if _count(status, "replicas") > updated:
        return "progressing", f"{_count(status, 'replicas') - updated} old replicas to go"
    return _reached(_count(status, "availableReplicas"), wanted, "replicas available")


def _stateful_set(spec: _Fields, status: _Fields) -> Assessment:
    if "observedGeneration" not in status:
        return "progressing", "not observed by its controller yet"
    wanted, ready = _count(spec, "replicas", 1), _count(status, "readyReplicas")
    if ready < wanted:
        return "progressing", f"{ready} of {wanted} replicas ready"
    if mapping_at(spec, "updateStrategy").get("type") == "OnDelete":
        return _HEALTHY
    partition = _count(mapping_at(spec, "updateStrategy", "rollingUpdate"), "partition")
    updated = _count(status, "updatedReplicas")
    if partition:
        return _reached(updated, wanted - partition, "replicas updated")
    if status.get("updateRevision") != status.get("currentRevision"):
        return "progressing", f"{updated} of {wanted} replicas updated"
    return _HEALTHY


def _daemon_set(spec: _Fields, status: _Fields) -> Assessment:
    if "observedGeneration" not in status:
        return "progressing", "not observed by its controller yet"
    wanted = _count(status, "desiredNumberScheduled")
    on_delete = mapping_at(spec, "updateStrategy").get("type") == "OnDelete"
    updated = _count(status, "updatedNumberScheduled")
    if updated < wanted and not on_delete:
        return "progressing", f"{updated} of {wanted} nodes updated"
    available = _count(status, "numberAvailable")
    if available < wanted:
        return "progressing", f"available on {available} of {wanted} nodes"
    return _HEALTHY


def _replica_failure(status: _Fields) -> Assessment:
    return "degraded", _GENERATED.sub(r"\1…", _why(conditions_of(status)["ReplicaFailure"]))


def _replica_set(spec: _Fields, status: _Fields) -> Assessment:
    if holds(status, "ReplicaFailure"):
        return _replica_failure(status)
    wanted, available = _count(spec, "replicas", 1), _count(status, "availableReplicas")
    return _reached(available, wanted, "replicas available")


def _job(_spec: _Fields, status: _Fields) -> Assessment:
    if holds(status, "Failed"):
        return "degraded", _why(conditions_of(status)["Failed"])
    return _once(status, "Complete", "not complete")


def _pod(spec: _Fields, status: _Fields) -> Assessment:
    waiting = _container_trouble(status)
    match status.get("phase"):
        case "Succeeded":
            return _HEALTHY
        case "Failed":
            return "degraded", _why(status)
        case "Running" if spec.get("restartPolicy", "Always") != "Always":
            return "progressing", "running to its end"
        case "Running" if waiting:
            return "degraded", waiting
        case "Running":
            return _once(status, "Ready", "not ready")
        case _ if waiting:
            return "degraded", waiting
        case "Unknown":
            return "unknown", _why(status)
        case _:
            return "progressing", _unscheduled(status) or "pending"


def pod_trouble(pod: Mapping[str, Any]) -> str:
    """What keeps a Pod from running, in words that are the same for Pods alike; "" if nothing."""
    status = mapping_at(pod, "status")
    return _container_trouble(status) or _unscheduled(status)


def _unscheduled(status: _Fields) -> str:
    scheduled = conditions_of(status).get("PodScheduled", {})
    return _why(scheduled) if scheduled.get("status") == "False" else ""


def _container_trouble(status: _Fields) -> str:
    for name in ("initContainerStatuses", "containerStatuses"):
        for container in mappings_at(status, name):
            waiting = mapping_at(container, "state", "waiting")
            reason = str(waiting.get("reason", ""))
            if reason == _CRASHING:
                # Its message names the Pod, which no other has.
                return f"{reason}: container {container.get('name', '')} ends again and again"
            if reason.endswith(("BackOff", "Error")) or reason.startswith(("Err", "Invalid")):
                return _why(waiting)
    return ""


def _service(spec: _Fields, status: _Fields) -> Assessment:
    if spec.get("type") != "LoadBalancer" or mapping_at(status, "loadBalancer").get("ingress"):
        return _HEALTHY
    return "progressing", "waiting for the load balancer's address"


def _ingress(_spec: _Fields, status: _Fields) -> Assessment:
    if mapping_at(status, "loadBalancer").get("ingress"):
        return _HEALTHY
    return "progressing", "waiting for an address"


def _claim(_spec: _Fields, status: _Fields) -> Assessment:
    match status.get("phase"):
        case "Bound":
            return _HEALTHY
        case "Lost":
            return "degraded", "the volume is lost"
        case _:
            return "progressing", "not bound to a volume"


def _namespace(_spec: _Fields, status: _Fields) -> Assessment:
    if status.get("phase") == "Terminating":
        return "progressing", "terminating"
    return _HEALTHY


def _definition(_spec: _Fields, status: _Fields) -> Assessment:
    refused = conditions_of(status).get("NamesAccepted", {})
    if refused.get("status") == "False":
        return "degraded", _why(refused)
    return _once(status, "Established", "not established")


def _api_service(_spec: _Fields, status: _Fields) -> Assessment:
    available = conditions_of(status).get("Available")
    return _once(status, "Available", "not checked yet" if available is None else _why(available))


def _autoscaler(_spec: _Fields, status: _Fields) -> Assessment:
    for name in ("AbleToScale", "ScalingActive"):
        condition = conditions_of(status).get(name, {})
        idle = condition.get("reason") == "ScalingDisabled"
        if condition.get("status") == "False" and not idle:
            return "degraded", _why(condition)
    return _once(status, "AbleToScale", "waiting to autoscale")


def _disruption_budget(_spec: _Fields, status: _Fields) -> Assessment:
    if "observedGeneration" not in status:
        return "progressing", "not observed by its controller yet"
    healthy, wanted = _count(status, "currentHealthy"), _count(status, "desiredHealthy")
    # A budget that selects fewer Pods than it wants, or none, gets no more.
    return _reached(healthy, min(wanted, _count(status, "expectedPods", wanted)), "pods healthy")


def _by_conditions(_spec: _Fields, status: _Fields) -> Assessment:
    conditions = conditions_of(status)
    if holds(status, "Stalled"):
        return "degraded", _why(conditions["Stalled"])
    if holds(status, "Reconciling"):
        return "progressing", _why(conditions["Reconciling"])
    deciding = conditions.get("Ready") or conditions.get("Available")
    if deciding is None or deciding.get("status") == "True":
        return _HEALTHY
    return "degraded" if deciding.get("status") == "False" else "progressing", _why(deciding)


_STOPS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("apps", "Deployment"): ("paused", "paused there"),
    ("batch", "Job"): ("suspend", "suspended there"),
}
_RULES: Mapping[tuple[str, str], Callable[[_Fields, _Fields], Assessment]] = {
    ("", "Namespace"): _namespace,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "Pod"): _pod,
    ("", "Service"): _service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
    ("apiregistration.k8s.io", "APIService"): _api_service,
    ("apps", "DaemonSet"): _daemon_set,
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("autoscaling", "HorizontalPodAutoscaler"): _autoscaler,
    ("batch", "Job"): _job,
    ("networking.k8s.io", "Ingress"): _ingress,
    ("policy", "PodDisruptionBudget"): _disruption_budget,
}
