"""What a cluster hands out to an object: addresses, ports, selectors, volumes, marks of its own.

Another cluster would refuse it, or has handed it out to another object. So it goes out only where a
person said it: where a manager owns the field, and not only one of the cluster's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, MutableSequence
from typing import Any

from relay.objects.field_owners import Fields, fields_below, fields_of_item, unowned
from schemas.objects.objects import ObjectKey
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
    metadata = service.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    said = annotations.get(PRESERVE_ANNOTATION) if isinstance(annotations, Mapping) else None
    return bool(said == "nodeport")


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
