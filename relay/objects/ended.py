"""Whether an object has done what it is for, so that nothing is missing once its cluster takes it.

Clusters take what ended: Jobs after their `ttlSecondsAfterFinished`, Pods that are too many, runs
and backups of custom kinds after a time of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from relay.objects.health import behind
from schemas.objects.objects import group_kind
from schemas.values.fields import holds, mapping_at

_SAID_OF_ITSELF = ("phase", "state", "stage", "jobStatus", "jobDeploymentStatus")
_SUCCESS = frozenset({"succeeded", "success", "successful", "completed", "complete", "finished"})
_CONDITIONS = ("Complete", "Completed", "Succeeded", "Finished")
_FAILURES = ("Failed", "FailureTarget")
# These call themselves succeeded, and go on.
_GO_ON = frozenset({("operators.coreos.com", "ClusterServiceVersion")})
# What their states are called when they are done.
_DONE_STATES: Mapping[tuple[str, str], str] = {
    ("acme.cert-manager.io", "Challenge"): "valid",
    ("acme.cert-manager.io", "Order"): "valid",
}
_TTL_DEPTH = 2


def has_succeeded(obj: Mapping[str, Any]) -> bool:
    """Whether it came to a good end: it does nothing more, whether or not it is there."""
    status = obj.get("status")
    if not isinstance(status, Mapping) or behind(obj):
        return False
    kind = group_kind(obj)
    match kind:
        case ("batch", "Job"):
            return holds(status, "Complete") and not holds(status, "Failed")
        case ("", "Pod"):
            return status.get("phase") == "Succeeded"
        case ("certificates.k8s.io", "CertificateSigningRequest"):
            return bool(status.get("certificate"))
        case ("cert-manager.io", "CertificateRequest"):
            return holds(status, "Ready")
        case (group, _):
            # Other kinds of Kubernetes itself go on until somebody deletes them.
            return "." in group and kind not in _GO_ON and _says_success(kind, status)


def lifetime_field(obj: Mapping[str, Any]) -> str:
    """The field that says how long the object is to last, such as `spec.ttl`; "" if none does."""
    return next(_lifetimes(mapping_at(obj, "spec"), "spec", _TTL_DEPTH), "")


def _lifetimes(fields: Mapping[str, Any], above: str, depth: int) -> Iterator[str]:
    for name, value in sorted(fields.items()):
        path = f"{above}.{name}"
        if name.lower().startswith("ttl") or name.endswith(("TTL", "Ttl")):
            yield path
        elif depth > 1 and isinstance(value, Mapping):
            yield from _lifetimes(value, path, depth - 1)


def _says_success(kind: tuple[str, str], status: Mapping[str, Any]) -> bool:
    if any(holds(status, name) for name in _FAILURES):
        return False
    sections = (status, mapping_at(status, "applicationState"))
    said = {
        str(section[n]).lower() for section in sections for n in _SAID_OF_ITSELF if n in section
    }
    if said:
        return bool(said & (_SUCCESS | {_DONE_STATES.get(kind, "succeeded")}))
    return any(holds(status, name) for name in _CONDITIONS)
