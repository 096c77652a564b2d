"""What outside an object its health waits for, and may wait for in vain.

A claim may wait for a Pod that its class wants first, an Ingress for an address that no controller
gives, an autoscaler for metrics that nobody measures, a custom resource for its operator.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from schemas.objects.objects import group_kind
from schemas.values.fields import conditions_of, mapping_at
from schemas.values.value import Value

What = Literal["consumer", "address", "metrics", "operator"]
DEFAULT_STORAGE_CLASS = "storageclass.kubernetes.io/is-default-class"
DEFAULT_INGRESS_CLASS = "ingressclass.kubernetes.io/is-default-class"
_INGRESS_CLASS = "kubernetes.io/ingress.class"
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_WAITS_FOR_CONSUMER = "WaitForFirstConsumer"
_METRICS = {
    "FailedGetContainerResourceMetric": "metrics.k8s.io",
    "FailedGetExternalMetric": "external.metrics.k8s.io",
    "FailedGetObjectMetric": "custom.metrics.k8s.io",
    "FailedGetPodsMetric": "custom.metrics.k8s.io",
    "FailedGetResourceMetric": "metrics.k8s.io",
}


class Awaited(Value, frozen=True):
    """What is waited for, and of which class or API group; "" is the cluster's default."""

    what: What
    of: str = ""
    # Since when, ms since 1970; 0 if nobody says.
    since_ms: int = 0


def awaited(obj: Mapping[str, Any]) -> Awaited | None:
    """What an object waits for that may never come; None if its own status tells all."""
    spec, status = mapping_at(obj, "spec"), mapping_at(obj, "status")
    match group_kind(obj):
        case "", "PersistentVolumeClaim":
            return _of_claim(obj, spec, status)
        case "", "Service":
            is_balanced = spec.get("type") == "LoadBalancer"
            return _of_address(obj, service_class(obj)) if is_balanced else None
        case "networking.k8s.io", "Ingress":
            return _of_address(obj, ingress_class(obj))
        case "autoscaling", "HorizontalPodAutoscaler":
            return _of_metrics(status)
        case group, _:
            stops = any(spec.get(word) is True for word in ("suspend", "paused"))
            silent = "." in group and not status and not stops
            return Awaited("operator", "", created_ms(obj)) if silent else None


def ingress_class(ingress: Mapping[str, Any]) -> str:
    """The class that an Ingress names; "" is the default one."""
    annotations = mapping_at(ingress, "metadata", "annotations")
    named = mapping_at(ingress, "spec").get("ingressClassName") or annotations.get(_INGRESS_CLASS)
    return f"ingress/{named or ''}"


def service_class(service: Mapping[str, Any]) -> str:
    """The class that a Service of type LoadBalancer names; "" is the default one."""
    return f"service/{mapping_at(service, 'spec').get('loadBalancerClass') or ''}"


def has_address(obj: Mapping[str, Any]) -> bool:
    """Whether some controller gave a Service or an Ingress an address."""
    return bool(mapping_at(obj, "status", "loadBalancer").get("ingress"))


def default_class(classes: Iterable[Mapping[str, Any]], annotation: str) -> str:
    """The name of the class that the cluster takes where none is named; "" if there is none."""
    return next(
        (
            str(one["metadata"].get("name", ""))
            for one in classes
            if mapping_at(one, "metadata", "annotations").get(annotation) == "true"
        ),
        "",
    )


def late_classes(classes: Collection[Mapping[str, Any]]) -> frozenset[str]:
    """The StorageClasses of which a claim is bound once a Pod needs it; "" if the default is."""
    late = {
        str(one["metadata"].get("name", ""))
        for one in classes
        if one.get("volumeBindingMode") == _WAITS_FOR_CONSUMER
    }
    by_default = default_class(classes, DEFAULT_STORAGE_CLASS)
    return frozenset(late | ({""} if by_default in late else set()))


def says_it_waits(event: Mapping[str, Any], uid: str) -> bool:
    """Whether an event tells that a claim waits for its first consumer."""
    about = mapping_at(event, "involvedObject")
    return about.get("uid") == uid and event.get("reason") == _WAITS_FOR_CONSUMER


def created_ms(obj: Mapping[str, Any]) -> int:
    """When an object was made, ms since 1970; 0 if it does not say."""
    return _moment_ms(mapping_at(obj, "metadata").get("creationTimestamp"))


def _of_claim(
    obj: Mapping[str, Any], spec: Mapping[str, Any], status: Mapping[str, Any]
) -> Awaited | None:
    annotations = mapping_at(obj, "metadata", "annotations")
    named = spec.get("storageClassName")
    # A Pod is there, or the class is none: it waits for its volume itself.
    at_work = annotations.get(_SELECTED_NODE) or spec.get("volumeName") or named == ""
    if status.get("phase", "Pending") != "Pending" or at_work:
        return None
    return Awaited("consumer", str(named or ""))


def _of_address(obj: Mapping[str, Any], of: str) -> Awaited | None:
    # Whoever is to give it an address has set a mark already.
    is_promised = bool(mapping_at(obj, "metadata").get("finalizers"))
    return None if is_promised or has_address(obj) else Awaited("address", of, created_ms(obj))


def _of_metrics(status: Mapping[str, Any]) -> Awaited | None:
    active = conditions_of(status).get("ScalingActive", {})
    group = _METRICS.get(str(active.get("reason", "")))
    if active.get("status") != "False" or group is None:
        return None
    return Awaited("metrics", group, _moment_ms(active.get("lastTransitionTime")))


def _moment_ms(said: object) -> int:
    try:
        moment = datetime.fromisoformat(str(said))
    except ValueError:
        return 0
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return max(int(moment.timestamp() * 1000), 0)
