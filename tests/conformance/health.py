"""Vectors of health: how well an object is, whether it is done, and what it counts for."""

from __future__ import annotations

from typing import Any

from relay.core.destination.claims import DesiredObject
from relay.core.destination.object_outcome import judge
from relay.core.events import ObjectObserved
from relay.syncer.observed import look_at
from relay.syncer.ownership import ManagedFields, marks
from schemas.content.blobs import Reference
from schemas.content.manifest import CREATE_ONLY
from schemas.objects.objects import ObjectKey
from schemas.records.health_rules import HealthProgram
from schemas.values import codec
from schemas.values.wire import convert
from tests.conformance.forms import Case, Json, fields_of, from_json
from tests.conformance.health_workloads import workloads
from tests.conformance.objects import ADDRESS, CRD, THREE, WIDGET, condition, conditions, obj, of

ABOUT = (
    "An object as it lies in its cluster (`object`), the fields that the edge applied in it "
    "(`applied`; null if the server tells of no managers) and a HealthProgram (`rule`): its "
    "health, whether it came to a good end, and what it waits for that may never come. Or "
    "(`outcome`) what an object counts for in a placement."
)
GIVEN: dict[str, Json] = {"applied": None, "rule": None}


def cases() -> list[Case]:
    """All vectors, in the order of the file."""
    return [
        *workloads(),
        *_claims(),
        *_plain_kinds(),
        *_addresses(),
        *_definitions(),
        *_by_conditions(),
        *_by_other_conditions(),
        *_said(),
        *_ruled(),
        *_done(),
        *_outcomes(),
    ]


def _claims() -> list[Case]:
    return [
        of(
            "claim that is bound", "healthy", obj("PersistentVolumeClaim", "v1", {"phase": "Bound"})
        ),
        of(
            "claim that waits",
            "progressing",
            obj("PersistentVolumeClaim", "v1", {"phase": "Pending"}, {"storageClassName": "late"}),
        ),
        of(
            "claim that waits, a node chosen",
            "progressing",
            obj(
                "PersistentVolumeClaim",
                "v1",
                {"phase": "Pending"},
                {"storageClassName": "late"},
                annotations={"volume.kubernetes.io/selected-node": "n"},
            ),
        ),
        of(
            "claim of no class",
            "progressing",
            obj("PersistentVolumeClaim", "v1", {"phase": "Pending"}, {"storageClassName": ""}),
        ),
        of(
            "claim whose volume is lost",
            "degraded",
            obj("PersistentVolumeClaim", "v1", {"phase": "Lost"}),
        ),
    ]


def _plain_kinds() -> list[Case]:
    return [
        of("ConfigMap", "healthy", obj("ConfigMap", "v1")),
        of("Namespace", "healthy", obj("Namespace", "v1", {"phase": "Active"})),
        of("Namespace that goes", "progressing", obj("Namespace", "v1", {"phase": "Terminating"})),
        of(
            "disruption budget that is met",
            "healthy",
            obj(
                "PodDisruptionBudget",
                "policy/v1",
                {
                    "observedGeneration": 2,
                    "currentHealthy": 2,
                    "desiredHealthy": 2,
                    "expectedPods": 3,
                },
            ),
        ),
        of(
            "disruption budget of fewer Pods than it wants",
            "healthy",
            obj(
                "PodDisruptionBudget",
                "policy/v1",
                {
                    "observedGeneration": 2,
                    "currentHealthy": 1,
                    "desiredHealthy": 2,
                    "expectedPods": 1,
                },
            ),
        ),
        of(
            "disruption budget that is not met",
            "progressing",
            obj(
                "PodDisruptionBudget",
                "policy/v1",
                {
                    "observedGeneration": 2,
                    "currentHealthy": 1,
                    "desiredHealthy": 2,
                    "expectedPods": 3,
                },
            ),
        ),
        of(
            "disruption budget that was not observed",
            "progressing",
            obj("PodDisruptionBudget", "policy/v1", {}),
        ),
    ]


def _addresses() -> list[Case]:
    hpa, later = "autoscaling/v2", {"creationTimestamp": "2026-01-01T00:00:00Z"}
    able = condition("AbleToScale", "True")
    unmeasured = {
        **condition("ScalingActive", "False", "FailedGetResourceMetric"),
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    return [
        of("Service", "healthy", obj("Service", "v1", {}, {"type": "ClusterIP"})),
        of(
            "Service with an address",
            "healthy",
            obj("Service", "v1", ADDRESS, {"type": "LoadBalancer"}),
        ),
        of(
            "Service that waits for an address",
            "progressing",
            obj("Service", "v1", {"loadBalancer": {}}, {"type": "LoadBalancer"}, **later),
        ),
        of(
            "Service to which a controller promised one",
            "progressing",
            obj("Service", "v1", {}, {"type": "LoadBalancer"}, finalizers=["lb"]),
        ),
        of("Ingress with an address", "healthy", obj("Ingress", "networking.k8s.io/v1", ADDRESS)),
        of(
            "Ingress that waits for an address",
            "progressing",
            obj("Ingress", "networking.k8s.io/v1", {}, {"ingressClassName": "web"}, **later),
        ),
        of(
            "autoscaler",
            "healthy",
            obj(
                "HorizontalPodAutoscaler", hpa, conditions(able, condition("ScalingActive", "True"))
            ),
        ),
        of(
            "autoscaler of none",
            "healthy",
            obj(
                "HorizontalPodAutoscaler",
                hpa,
                conditions(able, condition("ScalingActive", "False", "ScalingDisabled")),
            ),
        ),
        of(
            "autoscaler that measures nothing",
            "degraded",
            obj("HorizontalPodAutoscaler", hpa, conditions(able, unmeasured)),
        ),
        of("autoscaler without status", "progressing", obj("HorizontalPodAutoscaler", hpa)),
    ]


def _definitions() -> list[Case]:
    return [
        of(
            "definition that is served",
            "healthy",
            obj(
                "CustomResourceDefinition",
                CRD,
                conditions(condition("NamesAccepted", "True"), condition("Established", "True")),
            ),
        ),
        of(
            "definition that is not served yet", "progressing", obj("CustomResourceDefinition", CRD)
        ),
        of(
            "definition whose names are taken",
            "degraded",
            obj(
                "CustomResourceDefinition",
                CRD,
                conditions(
                    condition("NamesAccepted", "False", "ListKindConflict"),
                    condition("Established", "True"),
                ),
            ),
        ),
        of(
            "APIService that answers",
            "healthy",
            obj(
                "APIService",
                "apiregistration.k8s.io/v1",
                conditions(condition("Available", "True")),
            ),
        ),
        of(
            "APIService that does not",
            "progressing",
            obj(
                "APIService",
                "apiregistration.k8s.io/v1",
                conditions(condition("Available", "False", "MissingEndpoints")),
            ),
        ),
    ]


def _by_conditions() -> list[Case]:
    ready, no = condition("Ready", "True"), condition("Ready", "False", "Broken", "it broke")
    return [
        of("custom resource that is ready", "healthy", obj("Widget", WIDGET, conditions(ready))),
        of("custom resource that is not ready", "degraded", obj("Widget", WIDGET, conditions(no))),
        of(
            "custom resource of which it is not known",
            "progressing",
            obj("Widget", WIDGET, conditions(condition("Ready", "Unknown"))),
        ),
        of(
            "custom resource that is available",
            "healthy",
            obj("Widget", WIDGET, conditions(condition("Available", "True"))),
        ),
        of(
            "Ready goes before Available",
            "degraded",
            obj("Widget", WIDGET, conditions(condition("Available", "True"), no)),
        ),
        of(
            "custom resource that is stalled",
            "degraded",
            obj("Widget", WIDGET, conditions(ready, condition("Stalled", "True"))),
        ),
        of(
            "custom resource that reconciles",
            "progressing",
            obj("Widget", WIDGET, conditions(ready, condition("Reconciling", "True"))),
        ),
    ]


def _by_other_conditions() -> list[Case]:
    ready, no = condition("Ready", "True"), condition("Ready", "False", "Broken", "it broke")
    return [
        of(
            "custom resource without such a condition",
            "healthy",
            obj("Widget", WIDGET, conditions(condition("Warm", "False"))),
        ),
        of(
            "custom resource whose status is behind",
            "progressing",
            obj("Widget", WIDGET, conditions(ready, observedGeneration=1)),
        ),
        of(
            "custom resource without status",
            "healthy",
            obj("Widget", WIDGET, None, creationTimestamp="2026-01-01T00:00:00Z"),
        ),
        of(
            "of two conditions of one type the last counts",
            "degraded",
            obj("Widget", WIDGET, conditions(ready, no)),
        ),
        of(
            "conditions that are no list",
            "healthy",
            obj("Widget", WIDGET, {"conditions": {"type": "Ready"}}),
        ),
        of("a Deployment of another group", "healthy", obj("Deployment", WIDGET, None, THREE)),
        of(
            "a Deployment of another version",
            "progressing",
            obj("Deployment", "apps/v9", None, THREE),
        ),
    ]


def _said() -> list[Case]:
    def says(text: str, status: Json = None, **metadata: Json) -> dict[str, Json]:
        return obj("Widget", WIDGET, status, annotations={"leafcast.io/health": text}, **metadata)

    running, failed = {"phase": "Running"}, {"phase": "Failed", "message": " it burnt "}
    gone = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    secret = {
        **obj("Secret", "v1", annotations={"leafcast.io/health": "obj.data.key == ''"}),
        "data": {"key": "c2VjcmV0"},
    }
    return [
        of("it says ignore", "healthy", says("ignore", conditions(condition("Ready", "False")))),
        of("it says ignore, and is being deleted", "healthy", says("ignore", None, **gone)),
        of("its expression is true", "healthy", says("obj.status.phase == 'Running'", running)),
        of("its expression is false", "progressing", says("obj.status.phase == 'Running'", failed)),
        of("its expression fails", "progressing", says("obj.status.phase == 'Running'")),
        of("its expression is none", "progressing", says("obj.status.phase ==", running)),
        of("its expression gives a number", "progressing", says("1", running)),
        of(
            "its expression gives degraded and a reason",
            "degraded",
            says("'degraded: ' + returned.status.phase", failed),
        ),
        of("its expression gives healthy", "healthy", says("'healthy'")),
        of("its expression gives progressing", "progressing", says("'progressing: soon'")),
        of("its expression gives another text", "progressing", says("'fine'")),
        of(
            "its expression is true, and it is being deleted",
            "progressing",
            says("true == true", running, **gone),
        ),
        of("its expression sees no value of a Secret", "healthy", secret),
    ]


def _ruled() -> list[Case]:
    def says(text: str, status: Json = None, **metadata: Json) -> dict[str, Json]:
        return obj("Widget", WIDGET, status, annotations={"leafcast.io/health": text}, **metadata)

    def ruled(name: str, health: str, said: Json, **fields: Any) -> Case:
        rule = HealthProgram("widgets", "example.com", "widgets", **fields)
        return of(name, health, said, rule=fields_of(rule))

    running, failed = {"phase": "Running"}, {"phase": "Failed", "message": " it burnt "}
    plain = obj("Widget", WIDGET, running)
    return [
        ruled("a rule: healthy", "healthy", plain, healthy="obj.status.phase == 'Running'"),
        ruled(
            "a rule: not healthy",
            "progressing",
            obj("Widget", WIDGET, failed),
            healthy="obj.status.phase == 'Running'",
            message="obj.status.message",
        ),
        ruled(
            "a rule: degraded comes first",
            "degraded",
            obj("Widget", WIDGET, failed),
            healthy="true == true",
            degraded="obj.status.phase == 'Failed'",
            message="obj.status.message",
        ),
        ruled(
            "a rule without healthy",
            "degraded",
            obj("Widget", WIDGET, conditions(condition("Ready", "False"))),
            degraded="obj.status.phase == 'Failed'",
        ),
        ruled(
            "a rule that only says what is done",
            "healthy",
            plain,
            done="obj.status.phase == 'Running'",
        ),
        ruled(
            "a rule that ignores",
            "healthy",
            obj("Widget", WIDGET, conditions(condition("Ready", "False"))),
            ignore=True,
        ),
        ruled(
            "an annotation goes before a rule",
            "healthy",
            says("ignore", failed),
            degraded="obj.status.phase == 'Failed'",
        ),
    ]


_COMPLETE = condition("Complete", "True")
_DONE: list[tuple[str, bool, Json]] = [
    ("Job that is complete", True, obj("Job", "batch/v1", conditions(_COMPLETE))),
    (
        "Job that is complete and failed",
        False,
        obj("Job", "batch/v1", conditions(_COMPLETE, condition("Failed", "True"))),
    ),
    ("Pod that succeeded", True, obj("Pod", "v1", {"phase": "Succeeded"})),
    (
        "Deployment that says complete",
        False,
        obj("Deployment", "apps/v1", {"phase": "Complete"}, THREE),
    ),
    ("run whose phase is Succeeded", True, obj("Run", WIDGET, {"phase": "Succeeded"})),
    ("run whose state is COMPLETED", True, obj("Run", WIDGET, {"state": "COMPLETED"})),
    (
        "run of which its application says so",
        True,
        obj("Run", WIDGET, {"applicationState": {"state": "COMPLETED"}}),
    ),
    (
        "run whose phase is Running, and that is Complete",
        False,
        obj("Run", WIDGET, conditions(_COMPLETE, phase="Running")),
    ),
    ("run that says no phase, and is Complete", True, obj("Run", WIDGET, conditions(_COMPLETE))),
    (
        "run that succeeded and failed",
        False,
        obj("Run", WIDGET, conditions(condition("Failed", "True"), phase="Succeeded")),
    ),
    (
        "run whose status is behind",
        False,
        obj("Run", WIDGET, {"phase": "Succeeded", "observedGeneration": 1}),
    ),
    (
        "operator that calls itself succeeded",
        False,
        obj("ClusterServiceVersion", "operators.coreos.com/v1alpha1", {"phase": "Succeeded"}),
    ),
    (
        "order of a certificate",
        True,
        obj("Order", "acme.cert-manager.io/v1", {"state": "valid"}),
    ),
    (
        "request of a certificate",
        True,
        obj("CertificateRequest", "cert-manager.io/v1", conditions(condition("Ready", "True"))),
    ),
    (
        "signing request with its certificate",
        True,
        obj("CertificateSigningRequest", "certificates.k8s.io/v1", {"certificate": "MII"}),
    ),
    (
        "signing request without one",
        False,
        obj("CertificateSigningRequest", "certificates.k8s.io/v1", {}),
    ),
]


def _done() -> list[Case]:
    return [
        Case(f"done: {name}", "B6", {"object": said}, {"done": done}) for name, done, said in _DONE
    ]


_THERE = {
    "present": True,
    "same": True,
    "ours": True,
    "health": "healthy",
    "reason": "",
    "error": "",
    "waits": "",
    "once": False,
    "winner": "",
}
_OUTCOMES: list[tuple[str, Json, tuple[str, str, int | None]]] = [
    ("there and healthy", {}, ("synced", "healthy", None)),
    (
        "there and degraded",
        {"health": "degraded", "reason": "Failed: x"},
        ("synced", "degraded", 2),
    ),
    (
        "there and at work for long",
        {"health": "progressing", "reason": "1 of 2"},
        ("synced", "progressing", 3),
    ),
    ("there and at work", {"health": "progressing"}, ("synced", "progressing", None)),
    ("not looked at yet", None, ("pending", "progressing", None)),
    ("in a former form, healthy", {"same": False}, ("pending", "progressing", None)),
    (
        "in a former form, degraded",
        {"same": False, "health": "degraded"},
        ("pending", "degraded", None),
    ),
    (
        "in a former form, waiting",
        {"same": False, "waits": "the placement platform"},
        ("pending", "progressing", 3),
    ),
    (
        "somebody else's, degraded",
        {"same": False, "ours": False, "health": "degraded"},
        ("pending", "progressing", None),
    ),
    ("refused", {"same": False, "error": "Forbidden: no"}, ("failing", "unknown", 0)),
    (
        "refused, and the former form is degraded",
        {"same": False, "error": "Forbidden: no", "health": "degraded"},
        ("failing", "degraded", 0),
    ),
    (
        "made once, and another content is wanted",
        {"same": False, "once": True},
        ("synced", "healthy", None),
    ),
    ("another placement's", {"winner": "shop/other"}, ("failing", "unknown", 1)),
    (
        "gone",
        {"present": False, "same": False, "ours": False, "health": "unknown"},
        ("pending", "progressing", None),
    ),
]


def _outcomes() -> list[Case]:
    return [
        Case(
            f"outcome: {name}",
            "U16",
            {"outcome": None if said is None else {**_THERE, **said}},
            dict(zip(("state", "health", "severity"), expected, strict=True)),
        )
        for name, said, expected in _OUTCOMES
    ]


def answer(given: Json) -> Json:
    """What our program makes of one case."""
    if "outcome" in given:
        return _outcome(given["outcome"])
    rule = given["rule"]
    program = None if rule is None else convert(HealthProgram, from_json(rule), "rule")
    applied = given["applied"]
    hold = None if applied is None else ManagedFields("", marks(applied))
    seen = look_at(given["object"], hold, program)
    awaits = seen.awaits
    waits = (
        None
        if awaits is None
        else {"what": awaits.what, "of": awaits.of, "since_ms": awaits.since_ms}
    )
    return {"health": seen.health, "reason": seen.reason, "done": seen.ended, "waits_for": waits}


def _outcome(said: Json) -> Json:
    key = ObjectKey("", "configmaps", "shop", "a")
    wanted_at, former = codec.address("object", b"wanted"), codec.address("object", b"former")
    flags = CREATE_ONLY if said and said["once"] else 0
    wanted = DesiredObject(key, Reference("object", wanted_at, 6), 0, flags, ("p",))
    if said is None:
        state, health, sample = judge(key, None, wanted, "", "/emea/s1")
        return {
            "state": state,
            "health": health,
            "severity": None if sample is None else sample.severity,
        }
    address = (wanted_at if said["same"] else former) if said["ours"] else ""
    seen = ObjectObserved(
        key,
        present=said["present"],
        address=address,
        error=said["error"],
        health=said["health"],
        status=None,
        reason=said["reason"],
        waits=said["waits"],
    )
    state, health, sample = judge(key, seen, wanted, said["winner"], "/emea/s1")
    return {
        "state": state,
        "health": health,
        "severity": None if sample is None else sample.severity,
    }
