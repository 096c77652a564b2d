"""Objects with their statuses, as vectors of health have them."""

from __future__ import annotations

from tests.conformance.forms import Case, Json


def obj(
    kind: str, api: str, status: Json = None, spec: Json = None, **metadata: Json
) -> dict[str, Json]:
    made = {"apiVersion": api, "kind": kind, "metadata": {"name": "x", "generation": 2, **metadata}}
    return made | ({"status": status} if status is not None else {}) | {"spec": spec or {}}


def condition(kind: str, status: str, reason: str = "", message: str = "") -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def conditions(*listed: dict[str, str], **status: Json) -> dict[str, Json]:
    return {**status, "conditions": list(listed)}


def waiting(reason: str) -> list[Json]:
    return [{"name": "main", "state": {"waiting": {"reason": reason, "message": "why"}}}]


def of(name: str, health: str, said: Json, **given: Json) -> Case:
    return Case(name, "U16", {"object": said, **given}, {"health": health})


READY = {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3}
THREE = {"replicas": 3}
SET = {"observedGeneration": 2, "readyReplicas": 3, "updatedReplicas": 3}
NODES = {
    "observedGeneration": 2,
    "desiredNumberScheduled": 2,
    "updatedNumberScheduled": 2,
    "numberAvailable": 2,
}
PAUSED = {**THREE, "paused": True}
ADDRESS = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
CRD, WIDGET = "apiextensions.k8s.io/v1", "example.com/v1"
