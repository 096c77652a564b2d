"""What is taken off an object before it goes out: what is the centre's, or one cluster's only.

A clean object is a new mapping; the one that came in is never changed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping
from typing import Any

from schemas.objects import ObjectKey

PRESERVE_ANNOTATION = "control.kubestellar.io/preserve"
EXECUTING_COUNT_LABEL = "kubestellar.io/executing-count"

# The time stamps are no content: with them, equal objects of two spaces would have two addresses,
# and every copy would differ for ever from what its cluster says.
_METADATA = (
    "managedFields",
    "finalizers",
    "generation",
    "ownerReferences",
    "selfLink",
    "resourceVersion",
    "uid",
    "generateName",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
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
_JOB_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
_JOB_ANNOTATION = "batch.kubernetes.io/job-tracking"
_HEADLESS = "None"

Fields = MutableMapping[str, Any]


def clean(key: ObjectKey, obj: Mapping[str, Any]) -> dict[str, Any]:
    """The object as it goes to destinations."""
    kept = {field: copy.deepcopy(value) for field, value in obj.items() if field != "status"}
    metadata = _mapping(kept, "metadata")
    for field in _METADATA:
        metadata.pop(field, None)
    _take_off(metadata, "annotations", (_LAST_APPLIED,))
    _take_off(metadata, "labels", (EXECUTING_COUNT_LABEL,))
    match key.group, key.resource:
        case "", "services":
            _clean_service(kept)
        case "batch", "jobs":
            _clean_job(kept)
        case _:
            pass
    return kept


def _clean_service(service: Fields) -> None:
    spec = _mapping(service, "spec")
    for field in _SERVICE_SPEC:
        spec.pop(field, None)
    if spec.get("clusterIP") != _HEADLESS:
        spec.pop("clusterIP", None)
    addresses = [item for item in spec.pop("clusterIPs", None) or () if item == _HEADLESS]
    if addresses:
        spec["clusterIPs"] = addresses
    annotations = _mapping(_mapping(service, "metadata"), "annotations")
    if annotations.get(PRESERVE_ANNOTATION) == "nodeport":
        return
    for port in spec.get("ports") or ():
        if isinstance(port, MutableMapping):
            port.pop("nodePort", None)


def _clean_job(job: Fields) -> None:
    spec = _mapping(job, "spec")
    spec.pop("selector", None)
    spec.pop("suspend", None)
    metadata = _mapping(job, "metadata")
    _take_off(metadata, "annotations", (_JOB_ANNOTATION,))
    _take_off(metadata, "labels", _JOB_LABELS)
    _take_off(_mapping(_mapping(spec, "template"), "metadata"), "labels", _JOB_LABELS)


def _mapping(fields: Fields, name: str) -> Fields:
    """A field that is a mapping, to be changed in place; a passing empty one if it is none."""
    value = fields.get(name)
    return value if isinstance(value, MutableMapping) else {}


def _take_off(fields: Fields, name: str, keys: tuple[str, ...]) -> None:
    """Remove keys of a mapping, and the mapping itself if nothing is left by that."""
    value = _mapping(fields, name)
    for key in keys:
        if value.pop(key, None) is not None and not value:
            fields.pop(name, None)
