"""What a cluster hands out to an object: addresses, ports, selectors, volumes, marks of its own.

Another cluster would refuse it, or has handed it out to another object. So it goes out only where a
person said it: where a manager owns the field, and not only one of the cluster's own. KubeStellar
takes such fields off whoever said them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

from relay.objects.field_owners import Fields, fields_below, fields_of_item, unowned
from schemas.objects.objects import ObjectKey, texts_of
from schemas.values.fields import Steps

HEADLESS = "None"
JOB_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
JOB_TRACKING = "batch.kubernetes.io/job-tracking"
PRESERVE_ANNOTATION = "control.kubestellar.io/preserve"
_EACH, _NODE_PORT = "*", "nodePort"
_BY_KIND: dict[tuple[str, str], tuple[tuple[str, ...], ...]] = {
    ("", "services"): (
        ("spec", "clusterIP"),
        ("spec", "clusterIPs"),
        ("spec", "ipFamilies"),
        ("spec", "ipFamilyPolicy"),
        ("spec", "healthCheckNodePort"),
        ("spec", "ports", _EACH, _NODE_PORT),
    ),
    ("batch", "jobs"): (
        ("spec", "selector"),
        *(("metadata", "labels", name) for name in JOB_LABELS),
        *(("spec", "template", "metadata", "labels", name) for name in JOB_LABELS),
        ("metadata", "annotations", JOB_TRACKING),
    ),
    ("", "persistentvolumeclaims"): (
        ("spec", "volumeName"),
        ("metadata", "annotations", "pv.kubernetes.io/bind-completed"),
        ("metadata", "annotations", "pv.kubernetes.io/bound-by-controller"),
        ("metadata", "annotations", "volume.kubernetes.io/selected-node"),
        ("metadata", "annotations", "volume.kubernetes.io/storage-provisioner"),
        ("metadata", "annotations", "volume.beta.kubernetes.io/storage-provisioner"),
    ),
    ("", "persistentvolumes"): (
        ("spec", "claimRef"),
        ("metadata", "annotations", "pv.kubernetes.io/bound-by-controller"),
    ),
    # A class says another priority at each cluster.
    ("", "pods"): (("spec", "nodeName"), ("spec", "priority"), ("spec", "preemptionPolicy")),
    ("apps", "deployments"): (("metadata", "annotations", "deployment.kubernetes.io/revision"),),
}
_OF_ALL = (("metadata", "finalizers"),)


def preserves_node_ports(service: Mapping[str, Any]) -> bool:
    """Whether a Service asks for its node ports to go out, whoever chose them."""
    return bool(texts_of(service, "annotations").get(PRESERVE_ANNOTATION) == "nodeport")


def may_be_allocated(key: ObjectKey, obj: Mapping[str, Any]) -> bool:
    """Whether a cluster hands out anything of such an object."""
    metadata = obj.get("metadata")
    return key.group_resource in _BY_KIND or (
        isinstance(metadata, Mapping) and "finalizers" in metadata
    )


def take_off_allocated(
    key: ObjectKey, obj: MutableMapping[str, Any], persons: Fields
) -> Iterator[Steps]:
    """Take off, in place, what was handed out and `persons` do not own; yields what went."""
    keeps_ports = preserves_node_ports(obj)
    for path in (*_BY_KIND.get(key.group_resource, ()), *_OF_ALL):
        for steps, value, fields in list(_found(path, obj, persons, ())):
            if value in (HEADLESS, [HEADLESS]) or (path[-1] == _NODE_PORT and keeps_ports):
                continue
            # From behind, so that places in lists stay what they are.
            for gone in reversed(list(unowned(fields, value, steps))):
                _remove(obj, gone)
                yield gone


def _found(
    path: tuple[str, ...], value: Any, fields: Fields | None, above: Steps
) -> Iterator[tuple[Steps, Any, Fields | None]]:
    """Where a path leads: the way, what is there, and what is owned of it."""
    if not path:
        yield above, value, fields
    elif path[0] == _EACH:
        for at, item in enumerate(value if isinstance(value, MutableSequence) else ()):
            yield from _found(path[1:], item, fields_of_item(fields, at, item), (*above, at))
    elif isinstance(value, MutableMapping) and path[0] in value:
        name = path[0]
        yield from _found(path[1:], value[name], fields_below(fields, name), (*above, name))


def _remove(obj: MutableMapping[str, Any], steps: Steps) -> None:
    """Take a part off, and with it what it leaves empty; `spec` and `metadata` stay."""
    holders: list[Any] = [obj]
    for step in steps[:-1]:
        holders.append(holders[-1][step])
    for step, holder in zip(reversed(steps), reversed(holders), strict=True):
        del holder[step]
        if holder or holder is holders[1]:
            return


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

Part = MutableMapping[str, Any]


def take_off_as_kubestellar(key: ObjectKey, obj: Part) -> Iterator[Steps]:
    """Take off, in place, what KubeStellar does; yields what went."""
    yield from taken(obj, ("metadata",), "finalizers")
    match key.group, key.resource:
        case "", "services":
            yield from _of_service(obj)
        case "batch", "jobs":
            yield from _of_job(obj)
        case _:
            pass


def taken(obj: Part, above: Steps, *names: str) -> Iterator[Steps]:
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


def _of_service(service: Part) -> Iterator[Steps]:
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


def _of_job(job: Part) -> Iterator[Steps]:
    yield from taken(job, ("spec",), "selector", "suspend")
    yield from taken(job, ("metadata", "annotations"), JOB_TRACKING)
    yield from taken(job, ("metadata", "labels"), *JOB_LABELS)
    yield from taken(job, ("spec", "template", "metadata", "labels"), *JOB_LABELS)
