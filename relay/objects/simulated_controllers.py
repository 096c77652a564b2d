"""What a cluster's controllers would write into an object's status, sooner or later.

Two stages: as soon as it is seen (`starting`), and when it is up or its deadline passed (`ended`).
An object with an image whose tag is `broken` never becomes ready.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from relay.objects.merge import same
from schemas.values.fields import mapping_at

Fields = dict[str, Any]
Stage = Literal["starting", "ended"]

BROKEN_TAG = ":broken"
NODES = 1
_SETTLED_AT_ONCE = frozenset(
    {"Namespace", "CustomResourceDefinition", "PodDisruptionBudget", "APIService"}
)
_WORKLOADS = frozenset({"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job", "Pod"})
_OTHERS = frozenset({"Service", "Ingress", "PersistentVolumeClaim", "HorizontalPodAutoscaler"})


def is_simulated(obj: Mapping[str, Any]) -> bool:
    """Whether a controller would write into this object's status."""
    kind = obj.get("kind")
    if kind == "Service":
        return bool(mapping_at(obj, "spec").get("type") == "LoadBalancer")
    return kind in _WORKLOADS | _OTHERS | _SETTLED_AT_ONCE


def settles_at_once(obj: Mapping[str, Any]) -> bool:
    """Whether the object is ready without anything having to start."""
    return obj.get("kind") in _SETTLED_AT_ONCE


def is_broken(obj: Mapping[str, Any]) -> bool:
    """Whether one of the object's containers has an image with the tag `broken`."""
    spec = mapping_at(obj, "spec")
    pod = spec if obj.get("kind") == "Pod" else mapping_at(spec, "template", "spec")
    containers = [*pod.get("initContainers", ()), *pod.get("containers", ())]
    return any(str(one.get("image", "")).endswith(BROKEN_TAG) for one in containers)


def status_at(obj: Mapping[str, Any], stage: Stage, moment: str, address: str) -> Fields:
    """The whole status at a stage; `moment` is Kubernetes' form of now, `address` a free IP."""
    if settles_at_once(obj):
        return _settled(obj, moment)
    ready = stage == "ended" and not is_broken(obj)
    match obj.get("kind"):
        case "Deployment":
            return _deployment(obj, stage, moment, ready=ready)
        case "StatefulSet" | "ReplicaSet":
            return _replicas(obj, ready=ready)
        case "DaemonSet":
            return _daemon_set(obj, ready=ready)
        case "Job":
            return _job(obj, stage, moment, ready=ready)
        case "Pod":
            return _pod(stage, moment, address, ready=ready)
        case "Service" | "Ingress":
            return {"loadBalancer": {"ingress": [{"ip": address}]} if ready else {}}
        case "PersistentVolumeClaim":
            return _claim(obj, ready=ready)
        case "HorizontalPodAutoscaler":
            return _autoscaler(obj, stage, moment)
        case _:
            return {}


def _settled(obj: Mapping[str, Any], moment: str) -> Fields:
    match obj.get("kind"):
        case "CustomResourceDefinition":
            return _definition(obj, moment)
        case "PodDisruptionBudget":
            return _disruption_budget(obj)
        case "APIService":
            passed = _condition("Available", "True", "Passed", "all checks passed", moment)
            return {"conditions": [passed]}
        case _:
            return {"phase": "Active"}


def is_settled(obj: Mapping[str, Any]) -> bool:
    """Whether the object's status is that of its end, times and addresses aside."""
    held = obj.get("status")
    wanted = status_at(obj, "ended", "", "")
    return isinstance(held, Mapping) and same(_timeless(held), _timeless(wanted))


def _timeless(value: Any) -> Any:
    passing = ("lastTransitionTime", "lastUpdateTime", "startTime", "completionTime", "ip", "podIP")
    if isinstance(value, Mapping):
        return {name: _timeless(item) for name, item in value.items() if name not in passing}
    return [_timeless(item) for item in value] if isinstance(value, (list, tuple)) else value


def _condition(kind: str, status: str, reason: str, message: str, moment: str) -> Fields:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": moment,
    }


def _generation(obj: Mapping[str, Any]) -> int:
    generation = mapping_at(obj, "metadata").get("generation", 1)
    return int(generation)


def _wanted(obj: Mapping[str, Any]) -> int:
    replicas = mapping_at(obj, "spec").get("replicas", 1)
    return replicas if isinstance(replicas, int) else 1


def _deployment(obj: Mapping[str, Any], stage: Stage, moment: str, *, ready: bool) -> Fields:
    wanted, name = _wanted(obj), mapping_at(obj, "metadata").get("name", "")
    status: Fields = {
        "observedGeneration": _generation(obj),
        "replicas": wanted,
        "updatedReplicas": wanted,
    }
    enough = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    lacking = (
        "False",
        "MinimumReplicasUnavailable",
        "Deployment does not have minimum availability.",
    )
    if ready:
        status |= {"readyReplicas": wanted, "availableReplicas": wanted}
        progress = ("True", "NewReplicaSetAvailable", f'ReplicaSet "{name}" has progressed.')
    elif stage == "ended":
        status["unavailableReplicas"] = wanted
        said = f'ReplicaSet "{name}" has timed out progressing.'
        progress = ("False", "ProgressDeadlineExceeded", said)
    else:
        status["unavailableReplicas"] = wanted
        progress = ("True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.')
    available = enough if ready or not wanted else lacking
    status["conditions"] = [
        _condition("Available", *available, moment),
        _condition("Progressing", *progress, moment),
    ]
    return status


def _replicas(obj: Mapping[str, Any], *, ready: bool) -> Fields:
    wanted = _wanted(obj)
    up = wanted if ready else 0
    status: Fields = {
        "observedGeneration": _generation(obj),
        "replicas": wanted,
        "readyReplicas": up,
        "availableReplicas": up,
    }
    if obj.get("kind") == "StatefulSet":
        revision = f"{mapping_at(obj, 'metadata').get('name', '')}-{_generation(obj)}"
        revisions = {"currentRevision": revision, "updateRevision": revision}
        status |= {"currentReplicas": wanted, "updatedReplicas": wanted, **revisions}
    return status


def _daemon_set(obj: Mapping[str, Any], *, ready: bool) -> Fields:
    up = NODES if ready else 0
    return {
        "observedGeneration": _generation(obj),
        "currentNumberScheduled": NODES,
        "desiredNumberScheduled": NODES,
        "numberMisscheduled": 0,
        "updatedNumberScheduled": NODES,
        "numberReady": up,
        "numberAvailable": up,
        "numberUnavailable": NODES - up,
    }


def _job(obj: Mapping[str, Any], stage: Stage, moment: str, *, ready: bool) -> Fields:
    if stage == "starting":
        return {"active": 1, "ready": 0, "startTime": moment}
    if ready:
        completions = mapping_at(obj, "spec").get("completions", 1)
        done = _condition("Complete", "True", "CompletionsReached", "Job completed.", moment)
        return {"succeeded": completions, "completionTime": moment, "conditions": [done]}
    said = "Job has reached the specified backoff limit"
    failed = _condition("Failed", "True", "BackoffLimitExceeded", said, moment)
    return {"failed": 1, "conditions": [failed]}


def _pod(stage: Stage, moment: str, address: str, *, ready: bool) -> Fields:
    if ready:
        up = _condition("Ready", "True", "", "", moment)
        return {"phase": "Running", "podIP": address, "startTime": moment, "conditions": [up]}
    reason = "ImagePullBackOff" if stage == "ended" else "ContainerCreating"
    down = _condition("Ready", "False", "ContainersNotReady", "containers are not ready", moment)
    waiting = {"name": "main", "ready": False, "state": {"waiting": {"reason": reason}}}
    return {"phase": "Pending", "conditions": [down], "containerStatuses": [waiting]}


def _claim(obj: Mapping[str, Any], *, ready: bool) -> Fields:
    if not ready:
        return {"phase": "Pending"}
    spec = mapping_at(obj, "spec")
    requests = mapping_at(spec, "resources", "requests")
    return {
        "phase": "Bound",
        "accessModes": spec.get("accessModes", []),
        "capacity": {"storage": requests.get("storage", "1Gi")},
    }


def _disruption_budget(obj: Mapping[str, Any]) -> Fields:
    """As where no Pod is matched: what is wanted of none, none lack."""
    counts = dict.fromkeys(
        ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"), 0
    )
    return {"observedGeneration": _generation(obj), **counts}


def _autoscaler(obj: Mapping[str, Any], stage: Stage, moment: str) -> Fields:
    wanted = mapping_at(obj, "spec").get("minReplicas", 1)
    status: Fields = {"currentReplicas": wanted, "desiredReplicas": wanted}
    if stage == "ended":
        said = "recommended size matches current size"
        able = _condition("AbleToScale", "True", "ReadyForNewScale", said, moment)
        status["conditions"] = [able]
    return status


def _definition(obj: Mapping[str, Any], moment: str) -> Fields:
    accepted = _condition("NamesAccepted", "True", "NoConflicts", "no conflicts found", moment)
    said = "the initial names have been accepted"
    established = _condition("Established", "True", "InitialNamesAccepted", said, moment)
    return {
        "acceptedNames": mapping_at(obj, "spec").get("names", {}),
        "conditions": [accepted, established],
    }
