"""What KubeStellar takes off, whoever said it: made for a hub whose server fills such fields in."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import Any

from controllers.core.workloads.allocated_fields import (
    HEADLESS,
    JOB_LABELS,
    JOB_TRACKING,
    preserves_node_ports,
)
from schemas.objects.objects import ObjectKey
from schemas.values.fields import Steps

_SERVICE_SPEC = (
    "ipFamilies",
    "externalTrafficPolicy",
    "internalTrafficPolicy",
    "ipFamilyPolicy",
    "sessionAffinity",
    # Set by a server for those above, and refused by the next one without them.
    "healthCheckNodePort",
    "sessionAffinityConfig",
)

Fields = MutableMapping[str, Any]


def take_off_as_kubestellar(key: ObjectKey, obj: Fields) -> Iterator[Steps]:
    """Take off, in place, what KubeStellar does; yields what went."""
    yield from taken(obj, ("metadata",), "finalizers")
    match key.group, key.resource:
        case "", "services":
            yield from _of_service(obj)
        case "batch", "jobs":
            yield from _of_job(obj)
        case _:
            pass


def taken(obj: Fields, above: Steps, *names: str) -> Iterator[Steps]:
    """Take these fields off a part, and the part itself if it is left empty below a section."""
    holders: list[Any] = [obj]
    for step in above:
        inner = holders[-1].get(step)
        if not isinstance(inner, MutableMapping):
            return
        holders.append(inner)
    part = holders[-1]
    for name in names:
        if name in part:
            del part[name]
            yield (*above, name)
            if not part and len(above) > 1:
                del holders[-2][above[-1]]


def _of_service(service: Fields) -> Iterator[Steps]:
    yield from taken(service, ("spec",), *_SERVICE_SPEC)
    spec = service.get("spec")
    if not isinstance(spec, MutableMapping):
        return
    if spec.get("clusterIP") != HEADLESS:
        yield from taken(service, ("spec",), "clusterIP")
    addresses = spec.pop("clusterIPs", None)
    if headless := [item for item in _items(addresses) if item == HEADLESS]:
        spec["clusterIPs"] = headless
    if addresses != spec.get("clusterIPs"):
        yield "spec", "clusterIPs"
    if preserves_node_ports(service):
        return
    for at, port in enumerate(_items(spec.get("ports"))):
        if isinstance(port, MutableMapping) and port.pop("nodePort", None) is not None:
            yield "spec", "ports", at, "nodePort"


def _items(value: Any) -> Sequence[Any]:
    """The items of a list; nothing of what a person wrote in its place."""
    return value if isinstance(value, list | tuple) else ()


def _of_job(job: Fields) -> Iterator[Steps]:
    yield from taken(job, ("spec",), "selector", "suspend")
    yield from taken(job, ("metadata", "annotations"), JOB_TRACKING)
    yield from taken(job, ("metadata", "labels"), *JOB_LABELS)
    yield from taken(job, ("spec", "template", "metadata", "labels"), *JOB_LABELS)
