"""Denaturing: an object that would act where it lies becomes a Denatured, inert, that holds it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from schemas.objects.annotations import KEEP_AT_HOME, annotation_faults
from schemas.objects.objects import (
    BUILT_IN_KINDS,
    RBAC_GROUP,
    Object,
    group_of,
    object_faults,
    texts_of,
)
from schemas.values.faults import Fault, InvalidObject
from schemas.values.groups import DENATURED_GROUP

_ADMISSION, _FLOW = "admissionregistration.k8s.io", "flowcontrol.apiserver.k8s.io"
DENATURED_KINDS = (
    ("apiregistration.k8s.io", "apiservices"),
    (_ADMISSION, "mutatingwebhookconfigurations"),
    (_ADMISSION, "validatingwebhookconfigurations"),
    (_ADMISSION, "mutatingadmissionpolicies"),
    (_ADMISSION, "mutatingadmissionpolicybindings"),
    (_ADMISSION, "validatingadmissionpolicies"),
    (_ADMISSION, "validatingadmissionpolicybindings"),
    (_FLOW, "flowschemas"),
    (_FLOW, "prioritylevelconfigurations"),
    (RBAC_GROUP, "clusterroles"),
    (RBAC_GROUP, "clusterrolebindings"),
    (RBAC_GROUP, "roles"),
    (RBAC_GROUP, "rolebindings"),
    ("", "limitranges"),
    ("", "resourcequotas"),
)
"""Group and resource of what acts on the API server where it lies."""
NAME_MAX = 253
# What a tool writes for the way through a filter: it looks for it on what comes out.
_OF_THE_WAY = (
    "postrenderer.helm.sh/",
    "config.kubernetes.io/",
    "internal.config.kubernetes.io/",
    "config.k8s.io/id",
    "kustomize.config.k8s.io/",
)
# What would be read on the Denatured as said of it, or is too long to be there twice.
_OF_THE_OBJECT = ("leafcast.io/", "edge.kubestellar.io/", "control.kubestellar.io/", "kubectl.")
_NO_NAME = re.compile(r"[^a-z0-9.-]")


def would_act(obj: object) -> bool:
    """Whether this acts where it lies, and is meant to leave."""
    if not isinstance(obj, Mapping):
        return False
    if not isinstance(obj.get("apiVersion"), str) or not isinstance(obj.get("kind"), str):
        return False
    kind = BUILT_IN_KINDS.lookup(group_of(obj), obj["kind"])
    acts = kind is not None and (group_of(obj), kind.resource) in DENATURED_KINDS
    return acts and texts_of(obj, "annotations").get(KEEP_AT_HOME) != "true"


def denature(obj: Object, namespace: str = "") -> dict[str, Any]:
    """The Denatured that holds an object; `namespace` is meant where it gives none.

    Tools find their marks on it as they were on the object. Raises InvalidObject.
    """
    faults = [*object_faults(obj), *annotation_faults(obj)]
    metadata = obj.get("metadata")
    metadata = dict(metadata) if isinstance(metadata, Mapping) else {}
    entry = BUILT_IN_KINDS.lookup(group_of(obj), str(obj["kind"]))
    assert entry is not None
    if entry.namespaced:
        given = metadata.get("namespace") or namespace
        if not given:
            remedy = "write it, or name the one that is meant by --namespace"
            faults.append(Fault("metadata.namespace", "missing", remedy))
        metadata["namespace"] = given
    else:
        metadata.pop("namespace", None)
    if faults:
        raise InvalidObject(str(obj["kind"]), str(metadata.get("name", "")), faults)
    said = texts_of(obj, "annotations")
    inner = {key: text for key, text in said.items() if not key.startswith(_OF_THE_WAY)}
    _put(metadata, "annotations", inner)
    outer: dict[str, Any] = {"name": _name(entry.resource, metadata)}
    _put(outer, "labels", _marks(texts_of(obj, "labels")))
    _put(outer, "annotations", _marks(said))
    return {
        "apiVersion": f"{DENATURED_GROUP}/v1alpha1",
        "kind": "Denatured",
        "metadata": outer,
        "spec": {"template": {**obj, "metadata": metadata}},
    }


def _name(resource: str, metadata: Object) -> str:
    """The same for each object, and for no other one: no Namespace and no resource has a dot."""
    words = (resource, str(metadata.get("namespace", "")), str(metadata["name"]))
    plain = ".".join(filter(None, words))
    fits = _NO_NAME.sub("-", plain.lower()).strip(".-")
    if fits == plain and len(plain) <= NAME_MAX:
        return plain
    mark = hashlib.sha256(plain.encode()).hexdigest()[:8]
    return f"{fits[: NAME_MAX - 9].rstrip('.-')}-{mark}"


def _marks(texts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: text for key, text in texts.items() if not key.startswith(_OF_THE_OBJECT)}


def _put(metadata: dict[str, Any], field: str, texts: Mapping[str, Any]) -> None:
    metadata.pop(field, None)
    if texts:
        metadata[field] = dict(texts)
