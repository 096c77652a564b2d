"""Kubernetes objects: their keys, what makes one valid, and the order in which they are applied.

An object is a mapping with JSON types only. Kinds that are built into Kubernetes, and the kinds of
Leafcast's groups, are known by a table; custom ones are learnt from their definitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from schemas.objects.order import wave_fault
from schemas.values import names
from schemas.values.faults import Fault, InvalidObject
from schemas.values.fields import mapping_at, mappings_at
from schemas.values.wire import WireRecord
from schemas.values.wording import value_text

Object = Mapping[str, Any]
"""A Kubernetes API object, as a mapping of JSON values."""
GroupResource = tuple[str, str]
"""A kind, whatever the version: API group and resource (lowercase plural)."""

DEFAULT_NAMESPACE = "default"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""In which kubectl keeps a whole object once more."""
ALWAYS_THERE = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
"""Namespaces of every cluster, no one's to make or to remove."""
RBAC_GROUP = "rbac.authorization.k8s.io"
CRD_GROUP = "apiextensions.k8s.io"

NAMESPACES = ("", "namespaces")
DEFINITIONS = (CRD_GROUP, "customresourcedefinitions")
_NO_STATUS = frozenset({NAMESPACES, DEFINITIONS})
_KIND = re.compile(r"[A-Za-z]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?\Z")
_VERSION = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?\Z")
# Names of these groups are path segments: `system:node` is a good one.
_PATH_SEGMENT_GROUPS = (RBAC_GROUP, "certificates.k8s.io")
_LABEL_NAMED = (("", "Service"), ("", "Namespace"))


class ObjectKey(WireRecord, frozen=True, order=True):
    """An object in its space: API group ("" is core), resource (lowercase plural), namespace, name.

    Keys are ordered field by field.
    """

    group: str
    resource: str
    # Empty of a cluster-scoped object.
    namespace: str
    name: str

    @property
    def group_resource(self) -> GroupResource:
        """Its kind, whatever the version."""
        return self.group, self.resource

    def __str__(self) -> str:
        kind = kind_name(self.group, self.resource)
        return "/".join(part for part in (kind, self.namespace, self.name) if part)


def kind_name(group: str, resource: str) -> str:
    """A kind as kubectl takes it: `deployments.apps`, `services`."""
    return f"{resource}.{group}" if group else resource


@dataclass(frozen=True, slots=True)
class KindEntry:
    """How a kind is addressed: its lowercase plural; whether its objects live in namespaces."""

    resource: str
    namespaced: bool


class KindTable:
    """From group and kind to resource and scope.

    What neither Kubernetes nor a CustomResourceDefinition tells is guessed: the resource is the
    usual English plural of the kind in lowercase (`-s`, `-es` after s, x, z, ch, sh, `-ies` for a
    `-y` after a consonant), and an object is namespaced if it gives a metadata.namespace.
    """

    def __init__(self, entries: Mapping[tuple[str, str], KindEntry]) -> None:
        self._entries = MappingProxyType(dict(entries))

    def extended_by(self, objects: Iterable[Mapping[str, Any]]) -> KindTable:
        """Learn the kinds that CustomResourceDefinitions among the objects define."""
        found = [definition_of(obj) for obj in objects if is_definition(obj)]
        defined = {(each.group, each.kind): each.entry for each in found if each is not None}
        return KindTable({**self._entries, **defined}) if defined else self

    def lookup(self, group: str, kind: str) -> KindEntry | None:
        """Tell what is known of a kind; None if nothing is."""
        return self._entries.get((group, kind))

    @property
    def group_resources(self) -> frozenset[tuple[str, str]]:
        """All that are known, by group and resource."""
        return frozenset((group, entry.resource) for (group, _), entry in self._entries.items())

    def items(self) -> Iterable[tuple[tuple[str, str], KindEntry]]:
        """All that are known, by group and kind."""
        return self._entries.items()

    def key_of(self, obj: Mapping[str, Any], namespace: str = DEFAULT_NAMESPACE) -> ObjectKey:
        """Name a valid object; `namespace` is meant where a namespaced one gives none.

        A namespace on a cluster-scoped object is ignored, as the Kubernetes API server does.
        """
        group, kind, metadata = group_of(obj), str(obj["kind"]), obj["metadata"]
        given = metadata.get("namespace") or ""
        entry = self.lookup(group, kind) or KindEntry(plural(kind), bool(given))
        return ObjectKey(
            group,
            entry.resource,
            (given or namespace) if entry.namespaced else "",
            metadata["name"],
        )


def takes_status(key: ObjectKey) -> bool:
    """Whether a status may come back: the centre's own Namespaces and definitions have theirs."""
    return key.group_resource not in _NO_STATUS


def group_of(obj: Mapping[str, Any]) -> str:
    """Read the API group out of apiVersion; "" is core."""
    group, _, _ = str(obj["apiVersion"]).rpartition("/")
    return group


def group_kind(obj: Mapping[str, Any]) -> tuple[str, str]:
    """Its API group and kind, as far as it says so; "" for what it does not."""
    return str(obj.get("apiVersion", "")).rpartition("/")[0], str(obj.get("kind", ""))


def plural(kind: str) -> str:
    """Guess a kind's resource (see KindTable)."""
    word = kind.lower()
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return f"{word}es"
    if word.endswith("y") and not word.endswith(("ay", "ey", "iy", "oy", "uy")):
        return f"{word[:-1]}ies"
    return f"{word}s"


def validate_object(obj: Mapping[str, Any]) -> None:
    """Admit an object with apiVersion, kind, and valid metadata; raises InvalidObject."""
    faults = list(object_faults(obj))
    if faults:
        raise InvalidObject(*title_of(obj), faults)


def identity_of(obj: Mapping[str, Any]) -> dict[str, Any]:
    """What makes an object the one that it is, by the paths of its fields."""
    named = mapping_at(obj, "metadata")
    head = {name: obj.get(name) for name in ("apiVersion", "kind")}
    return head | {f"metadata.{name}": named.get(name) for name in ("name", "namespace")}


def texts_of(obj: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    """The `labels` or `annotations` of an object that may have any form; none if there are none."""
    return mapping_at(obj, "metadata", field)


def is_terminating(obj: Object) -> bool:
    """Whether an object is deleted, and something still holds it there."""
    return bool((obj.get("metadata") or {}).get("deletionTimestamp"))


def title_of(obj: Mapping[str, Any]) -> tuple[str, str]:
    """Tell the kind and name as far as the object gives them; "" for what it does not."""
    kind, name = obj.get("kind"), mapping_at(obj, "metadata").get("name")
    return kind if isinstance(kind, str) else "", name if isinstance(name, str) else ""


def object_faults(obj: Mapping[str, Any]) -> Iterator[Fault]:
    """Find what is wrong with apiVersion, kind and metadata; nothing if they are valid."""
    yield from _type_faults(obj)
    metadata = obj.get("metadata")
    if not isinstance(metadata, Mapping):
        yield Fault("metadata", "missing or not a mapping", "give it at least a name")
        return
    yield from _name_faults(obj, metadata)
    namespace = metadata.get("namespace")
    if namespace is not None and namespace != "":
        fault = _text_fault(namespace) or names.dns_label_fault(namespace)
        if fault:
            yield Fault("metadata.namespace", fault, f"use {names.DNS_LABEL_RULE}")
    yield from _map_faults("labels", metadata.get("labels"))
    yield from _map_faults("annotations", metadata.get("annotations"))
    if wave := wave_fault(obj):
        yield wave


def _type_faults(obj: Mapping[str, Any]) -> Iterator[Fault]:
    version = obj.get("apiVersion")
    if not isinstance(version, str) or not version:
        yield Fault("apiVersion", "missing or not a string", "write v1, or a group/version")
    else:
        group, slash, last = version.rpartition("/")
        if not _VERSION.match(last) or (slash and names.subdomain_fault(group)):
            remedy = "write v1, or a group/version such as apps/v1"
            yield Fault("apiVersion", f'"{version}" is not an API version', remedy)
    kind = obj.get("kind")
    if not isinstance(kind, str) or not kind:
        yield Fault("kind", "missing or not a string", "name the kind, such as Deployment")
    elif not _KIND.match(kind):
        yield Fault("kind", f'"{kind}" is not a kind', "use letters and digits, as in Deployment")


def _name_faults(obj: Mapping[str, Any], metadata: Mapping[str, Any]) -> Iterator[Fault]:
    name = metadata.get("name")
    if name is None or name == "":
        remedy = "give it a name"
        if metadata.get("generateName"):
            remedy += "; generateName would make another object at each apply"
        yield Fault("metadata.name", "missing", remedy)
        return
    if fault := _text_fault(name):
        yield Fault("metadata.name", fault, "quote it")
        return
    group = group_of(obj) if isinstance(obj.get("apiVersion"), str) else ""
    if group in _PATH_SEGMENT_GROUPS:
        fault, rule = names.path_segment_fault(name), names.PATH_SEGMENT_RULE
    elif (group, obj.get("kind")) in _LABEL_NAMED:
        fault, rule = names.dns_label_fault(name), names.DNS_LABEL_RULE
    else:
        fault, rule = names.subdomain_fault(name), names.SUBDOMAIN_RULE
    if fault:
        yield Fault("metadata.name", fault, f"use {rule}")


def _map_faults(field: str, form: object) -> Iterator[Fault]:
    if form is None:
        return
    if not isinstance(form, Mapping):
        yield Fault(f"metadata.{field}", "not a mapping", "write key: value")
        return
    for key, value in form.items():
        path = f"metadata.{field}[{key}]"
        # Kubernetes folds the case of annotation keys before it looks at them.
        fault = names.label_key_fault(str(key).lower() if field == "annotations" else str(key))
        if fault:
            yield Fault(path, fault, f"use {names.QUALIFIED_RULE}")
        if text_fault := _text_fault(value):
            yield Fault(path, text_fault, "quote it")
        elif field == "labels" and (value_fault := names.label_value_fault(value)):
            yield Fault(path, value_fault, f"use {names.LABEL_VALUE_RULE}")


def _text_fault(value: object) -> str | None:
    return None if isinstance(value, str) else f"{value_text(value)} is not a string"


def is_definition(obj: Mapping[str, Any]) -> bool:
    """Whether an object is a CustomResourceDefinition."""
    return obj.get("kind") == "CustomResourceDefinition" and group_of(obj) == CRD_GROUP


@dataclass(frozen=True, slots=True)
class KindDefinition:
    """What a CustomResourceDefinition says of its kind."""

    group: str
    kind: str
    entry: KindEntry
    # Of each version that is served, in order: its schema, if it has one.
    versions: Mapping[str, Mapping[str, Any] | None]


def definition_of(obj: Mapping[str, Any]) -> KindDefinition | None:
    """What a definition says; None if that is nothing of use: who applies it is refused."""
    match obj.get("spec"):
        case {"group": str(group), "names": {"kind": str(kind), **others}, **spec}:
            resource = others.get("plural")
            entry = KindEntry(
                resource if isinstance(resource, str) else plural(kind),
                spec.get("scope") != "Cluster",
            )
            versions = {
                name: mapping_at(form, "schema", "openAPIV3Schema") or None
                for form in mappings_at(spec, "versions")
                if isinstance(name := form.get("name"), str) and form.get("served") is True
            }
            return KindDefinition(group, kind, entry, versions)
        case _:
            return None


_NAMESPACED = {
    "": "Binding ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate "
    "ReplicationController ResourceQuota Secret Service ServiceAccount",
    "apps": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "authorization.k8s.io": "LocalSubjectAccessReview",
    "autoscaling": "HorizontalPodAutoscaler",
    "batch": "CronJob Job",
    "control.kubestellar.io": "CombinedStatus",
    "coordination.k8s.io": "Lease LeaseCandidate",
    "discovery.k8s.io": "EndpointSlice",
    "edge.kubestellar.io": "Customizer",
    "events.k8s.io": "Event",
    "networking.k8s.io": "Ingress NetworkPolicy",
    "policy": "PodDisruptionBudget",
    RBAC_GROUP: "Role RoleBinding",
    "resource.k8s.io": "ResourceClaim ResourceClaimTemplate",
    "storage.k8s.io": "CSIStorageCapacity",
}
_CLUSTER_SCOPED = {
    "": "ComponentStatus Namespace Node PersistentVolume",
    "admissionregistration.k8s.io": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding "
    "MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding "
    "ValidatingWebhookConfiguration",
    CRD_GROUP: "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "authentication.k8s.io": "SelfSubjectReview TokenReview",
    "authorization.k8s.io": "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    "certificates.k8s.io": "CertificateSigningRequest ClusterTrustBundle",
    "control.kubestellar.io": "Binding BindingPolicy CustomTransform StatusCollector",
    "edge.kubestellar.io": "EdgePlacement Location SinglePlacementSlice SyncTarget",
    "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    "leafcast.io": "Denatured HealthRule LeafcastRelease Rollout",
    "networking.k8s.io": "IngressClass IPAddress ServiceCIDR",
    "node.k8s.io": "RuntimeClass",
    RBAC_GROUP: "ClusterRole ClusterRoleBinding",
    "resource.k8s.io": "DeviceClass ResourceSlice",
    "scheduling.k8s.io": "PriorityClass",
    "storage.k8s.io": "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
}


def _built_in() -> Iterator[tuple[tuple[str, str], KindEntry]]:
    for table, namespaced in ((_NAMESPACED, True), (_CLUSTER_SCOPED, False)):
        for group, kinds in table.items():
            for kind in kinds.split():
                # The one built-in kind whose name is a plural already.
                resource = "endpoints" if kind == "Endpoints" else plural(kind)
                yield (group, kind), KindEntry(resource, namespaced)


BUILT_IN_KINDS = KindTable(dict(_built_in()))

# What Kubernetes 1.36 serves: all that is built in has a v1 by now, and nothing older.
_OTHER_VERSIONS: Mapping[str, tuple[str, ...]] = {
    "autoscaling": ("v2", "v1"),
    "control.kubestellar.io": ("v1alpha1",),
    "edge.kubestellar.io": ("v2alpha1",),
    "leafcast.io": ("v1alpha1",),
}
_NOT_SERVED = frozenset(
    {("certificates.k8s.io", "ClusterTrustBundle"), ("coordination.k8s.io", "LeaseCandidate")}
)


def served_versions(group: str, kind: str) -> tuple[str, ...]:
    """The versions in which a built-in kind is served, the preferred one first; empty if none."""
    if BUILT_IN_KINDS.lookup(group, kind) is None or (group, kind) in _NOT_SERVED:
        return ()
    if (group, kind) == ("edge.kubestellar.io", "EdgePlacement"):
        return ("v2alpha1", "v1alpha1")
    return _OTHER_VERSIONS.get(group, ("v1",))


# Each step names what later steps lean on. Within a step the order does not matter.
_STEPS: tuple[tuple[str, str], ...] = (
    NAMESPACES,  # hold all that is namespaced
    DEFINITIONS,  # make kinds exist; need nothing
    ("scheduling.k8s.io", "priorityclasses"),  # classes are named by workloads and claims
    ("storage.k8s.io", "*"),
    ("node.k8s.io", "*"),
    ("networking.k8s.io", "ingressclasses"),
    ("networking.k8s.io", "networkpolicies"),  # fences stand before anyone moves in
    ("", "resourcequotas"),
    ("", "limitranges"),
    ("policy", "*"),
    ("", "serviceaccounts"),  # Pods are refused without theirs
    ("", "secrets"),  # Pods wait for what they mount
    ("", "configmaps"),
    ("", "persistentvolumes"),
    ("", "persistentvolumeclaims"),
    (RBAC_GROUP, "clusterroles"),  # bindings to absent roles are refused
    (RBAC_GROUP, "*"),
    ("", "services"),  # their addresses go into the environment of Pods started later
    ("", "*"),  # Pods, and with them all else that is built in
)
_STEP_OF = {entry: step for step, entry in enumerate(_STEPS)}
_WORKLOADS = len(_STEPS) - 1
# Custom resources need their definitions, and often the operator that a workload brings.
_CUSTOM = len(_STEPS)
# These put a workload in the path of other requests: before it runs they refuse everything.
_LATE_GROUPS = ("admissionregistration.k8s.io", "apiregistration.k8s.io")
_LATE = len(_STEPS) + 1
_BUILT_IN_GROUPS = frozenset((*_NAMESPACED, *_CLUSTER_SCOPED)) - {
    "control.kubestellar.io",
    "edge.kubestellar.io",
    "leafcast.io",
}


def is_of_kubernetes(obj: Mapping[str, Any]) -> bool:
    """Whether an object is of a kind that Kubernetes itself defines."""
    version, kind = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return False
    group = group_of(obj)
    return group in _BUILT_IN_GROUPS and BUILT_IN_KINDS.lookup(group, kind) is not None


def apply_order(group: str, resource: str) -> int:
    """Rank a kind: lower ones are applied first and deleted last."""
    if group in _LATE_GROUPS:
        return _LATE
    if group not in _BUILT_IN_GROUPS:
        return _CUSTOM
    return _STEP_OF.get((group, resource), _STEP_OF.get((group, "*"), _WORKLOADS))
