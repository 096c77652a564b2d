"""Objects as tables: the columns that kubectl shows of each kind; NAME and AGE of all others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from leafcast.show import object_cells as cell
from leafcast.show.durations import age_text
from leafcast.show.object_cells import Fields, at, text
from schemas.objects.objects import CRD_GROUP, RBAC_GROUP
from schemas.values.groups import CONTROL_GROUP, DENATURED_GROUP, GROUP, PATH_ANNOTATION, RELEASES

_GAP = "   "
_STATUS_LABEL = "status.kubestellar.io/"


@dataclass(frozen=True, slots=True)
class Column:
    """A header, and from an object and now (milliseconds since 1970) to the cell under it."""

    header: str
    read: Callable[[Fields, int], str]
    wide: bool = False


def columns_of(
    group: str, resource: str, *, wide: bool, printer: Sequence[Column] | None = None
) -> list[Column]:
    """The columns of a kind, NAME first; `wide` adds the ones that kubectl adds.

    The columns of a kind that is not known here are those that its definition names, in `printer`.
    """
    own = _TABLES.get((group, resource))
    if own is None:
        own = (AGE,) if printer is None else tuple(printer)
    first = [] if (group, resource) in _NAMELESS else [NAME]
    return [*first, *(column for column in own if wide or not column.wide)]


def has_columns(group: str, resource: str) -> bool:
    """Whether the columns of a kind are known here; else its definition may name them."""
    return (group, resource) in _TABLES


def annotation_column(header: str, name: str) -> Column:
    """The value of an annotation."""
    return _field(header, "metadata", "annotations", name)


def laid_out(rows: Sequence[Sequence[str]], widths: Sequence[int] = ()) -> list[str]:
    """Lines with the cells under each other; no column is narrower than `widths` says."""
    room = widths_of(rows, widths)
    return [
        _GAP.join(value.ljust(width) for value, width in zip(row, room, strict=True)).rstrip()
        for row in rows
    ]


def widths_of(rows: Iterable[Sequence[str]], widths: Sequence[int] = ()) -> list[int]:
    """How wide each column is."""
    found = list(widths)
    for row in rows:
        sizes = [len(value) for value in row]
        found = sizes if not found else [max(pair) for pair in zip(found, sizes, strict=True)]
    return found


def _field(header: str, *path: str, missing: str = cell.NONE, wide: bool = False) -> Column:
    return Column(header, lambda obj, _: text(at(obj, *path), missing), wide)


def _count(header: str, *path: str, wide: bool = False) -> Column:
    def read(obj: Fields, _: int) -> str:
        unknown = path[0] == "status" and not cell.is_reported(obj)
        return cell.UNREPORTED if unknown else str(cell.count(obj, *path))

    return Column(header, read, wide)


def _said(header: str, read: Callable[[Fields], str], *, wide: bool = False) -> Column:
    return Column(header, lambda obj, _: read(obj), wide)


def _ref(obj: Fields, field: str) -> str:
    return f"{text(at(obj, field, 'kind'))}/{text(at(obj, field, 'name'))}"


def _selectors(obj: Fields, field: str) -> str:
    selectors = cell.listed(obj, "spec", field)
    return " | ".join(cell.selector_text(form) for form in selectors) or cell.NONE


def _removes(obj: Fields) -> str:
    return ",".join(map(str, cell.listed(obj, "spec", "remove"))) or cell.NONE


NAMESPACE = Column("NAMESPACE", lambda obj, _: text(at(obj, "metadata", "namespace"), ""))
"""What `-A` puts first."""
LABELS = Column("LABELS", lambda obj, _: cell.labels_text(at(obj, "metadata", "labels")))
"""What `--show-labels` puts last."""
NAME = Column("NAME", lambda obj, _: text(at(obj, "metadata", "name")))
AGE = Column("AGE", lambda obj, now: age_text(at(obj, "metadata", "creationTimestamp"), now))
_CREATED = _field("CREATED AT", "metadata", "creationTimestamp")
_CONTAINERS = (
    _said("CONTAINERS", lambda obj: cell.containers(obj, "name"), wide=True),
    _said("IMAGES", lambda obj: cell.containers(obj, "image"), wide=True),
)
_SELECTOR = _said(
    "SELECTOR", lambda obj: cell.selector_text(at(obj, "spec", "selector")), wide=True
)
_ROLE = (_said("ROLE", lambda obj: _ref(obj, "roleRef")), AGE)

_WORKLOADS: Mapping[tuple[str, str], tuple[Column, ...]] = {
    ("", "pods"): (
        _said("READY", cell.pod_ready),
        _said("STATUS", cell.pod_status),
        _said("RESTARTS", cell.restarts),
        AGE,
        _field("IP", "status", "podIP", wide=True),
        _field("NODE", "spec", "nodeName", wide=True),
    ),
    ("apps", "daemonsets"): (
        _count("DESIRED", "status", "desiredNumberScheduled"),
        _count("CURRENT", "status", "currentNumberScheduled"),
        _count("READY", "status", "numberReady"),
        _count("UP-TO-DATE", "status", "updatedNumberScheduled"),
        _count("AVAILABLE", "status", "numberAvailable"),
        _said(
            "NODE SELECTOR",
            lambda obj: cell.labels_text(at(obj, "spec", "template", "spec", "nodeSelector")),
        ),
        AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
    ("apps", "deployments"): (
        _said("READY", cell.ready_of),
        _count("UP-TO-DATE", "status", "updatedReplicas"),
        _count("AVAILABLE", "status", "availableReplicas"),
        AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
    ("apps", "replicasets"): (
        _count("DESIRED", "spec", "replicas"),
        _count("CURRENT", "status", "replicas"),
        _count("READY", "status", "readyReplicas"),
        AGE,
        *_CONTAINERS,
        _SELECTOR,
    ),
    ("apps", "statefulsets"): (_said("READY", cell.ready_of), AGE, *_CONTAINERS),
    ("batch", "cronjobs"): (
        _field("SCHEDULE", "spec", "schedule"),
        _field("TIMEZONE", "spec", "timeZone"),
        _field("SUSPEND", "spec", "suspend", missing="false"),
        _said("ACTIVE", cell.active),
        Column(
            "LAST SCHEDULE",
            lambda obj, now: (
                age_text(at(obj, "status", "lastScheduleTime"), now)
                if at(obj, "status", "lastScheduleTime")
                else cell.NONE
            ),
        ),
        AGE,
    ),
    ("batch", "jobs"): (
        _said("STATUS", cell.job_status),
        _said("COMPLETIONS", cell.job_completions),
        Column("DURATION", lambda obj, now: cell.job_duration(obj, now / 1000)),
        AGE,
        *_CONTAINERS,
    ),
    ("autoscaling", "horizontalpodautoscalers"): (
        _said("REFERENCE", lambda obj: _ref(at(obj, "spec") or {}, "scaleTargetRef")),
        _field("MINPODS", "spec", "minReplicas", missing="<unset>"),
        _field("MAXPODS", "spec", "maxReplicas"),
        _count("REPLICAS", "status", "currentReplicas"),
        AGE,
    ),
}
_EVENTS = (
    Column("LAST SEEN", lambda obj, now: age_text(cell.event_seen(obj), now)),
    _said("TYPE", lambda obj: text(at(obj, "type"))),
    _said("REASON", lambda obj: text(at(obj, "reason"))),
    _said("OBJECT", cell.event_object),
    _said("SOURCE", cell.event_source, wide=True),
    _said("MESSAGE", cell.event_message),
    _said("COUNT", cell.event_count, wide=True),
    Column("NAME", lambda obj, _: text(at(obj, "metadata", "name")), wide=True),
)
_NAMELESS = frozenset({("", "events"), ("events.k8s.io", "events")})
_OTHERS: Mapping[tuple[str, str], tuple[Column, ...]] = {
    ("", "configmaps"): (_said("DATA", lambda obj: cell.entries(obj, "data", "binaryData")), AGE),
    ("", "events"): _EVENTS,
    ("events.k8s.io", "events"): _EVENTS,
    ("", "endpoints"): (_said("ENDPOINTS", cell.endpoints), AGE),
    ("", "nodes"): (
        _said("STATUS", cell.node_status),
        _said("ROLES", cell.node_roles),
        AGE,
        _field("VERSION", "status", "nodeInfo", "kubeletVersion"),
        _said("INTERNAL-IP", lambda obj: cell.node_address(obj, "InternalIP"), wide=True),
        _said("EXTERNAL-IP", lambda obj: cell.node_address(obj, "ExternalIP"), wide=True),
        _field("OS-IMAGE", "status", "nodeInfo", "osImage", wide=True),
        _field("KERNEL-VERSION", "status", "nodeInfo", "kernelVersion", wide=True),
        _field("CONTAINER-RUNTIME", "status", "nodeInfo", "containerRuntimeVersion", wide=True),
    ),
    ("", "persistentvolumes"): (
        _field("CAPACITY", "spec", "capacity", "storage", missing=""),
        _said("ACCESS MODES", lambda obj: cell.modes(cell.listed(obj, "spec", "accessModes"))),
        _field("RECLAIM POLICY", "spec", "persistentVolumeReclaimPolicy", missing="Retain"),
        _field("STATUS", "status", "phase", missing="Pending"),
        _said("CLAIM", cell.claim),
        _field("STORAGECLASS", "spec", "storageClassName", missing=""),
        _field("REASON", "status", "reason", missing=""),
        AGE,
    ),
    ("storage.k8s.io", "storageclasses"): (
        _field("PROVISIONER", "provisioner"),
        _field("RECLAIMPOLICY", "reclaimPolicy", missing="Delete"),
        _field("VOLUMEBINDINGMODE", "volumeBindingMode", missing="Immediate"),
        _field("ALLOWVOLUMEEXPANSION", "allowVolumeExpansion", missing="false"),
        AGE,
    ),
    ("", "namespaces"): (_field("STATUS", "status", "phase", missing="Active"), AGE),
    ("", "persistentvolumeclaims"): (
        _field("STATUS", "status", "phase", missing="Pending"),
        _field("VOLUME", "spec", "volumeName", missing=""),
        _field("CAPACITY", "status", "capacity", "storage", missing=""),
        _said("ACCESS MODES", lambda obj: cell.modes(cell.listed(obj, "status", "accessModes"))),
        _field("STORAGECLASS", "spec", "storageClassName", missing=""),
        AGE,
    ),
    ("", "secrets"): (
        _field("TYPE", "type", missing="Opaque"),
        _said("DATA", lambda obj: cell.entries(obj, "data", "stringData")),
        AGE,
    ),
    ("", "serviceaccounts"): (_said("SECRETS", lambda obj: cell.entries(obj, "secrets")), AGE),
    ("", "services"): (
        _field("TYPE", "spec", "type", missing="ClusterIP"),
        _field("CLUSTER-IP", "spec", "clusterIP"),
        _said("EXTERNAL-IP", cell.external_ip),
        _said("PORT(S)", cell.ports),
        AGE,
        _said("SELECTOR", lambda obj: cell.labels_text(at(obj, "spec", "selector")), wide=True),
    ),
    ("networking.k8s.io", "ingresses"): (
        _field("CLASS", "spec", "ingressClassName"),
        _said("HOSTS", cell.hosts),
        _said("ADDRESS", cell.addresses),
        _said("PORTS", lambda obj: "80, 443" if cell.listed(obj, "spec", "tls") else "80"),
        AGE,
    ),
    ("networking.k8s.io", "networkpolicies"): (
        _said("POD-SELECTOR", lambda obj: cell.selector_text(at(obj, "spec", "podSelector"))),
        AGE,
    ),
    ("policy", "poddisruptionbudgets"): (
        _field("MIN AVAILABLE", "spec", "minAvailable", missing="N/A"),
        _field("MAX UNAVAILABLE", "spec", "maxUnavailable", missing="N/A"),
        _count("ALLOWED DISRUPTIONS", "status", "disruptionsAllowed"),
        AGE,
    ),
    (CRD_GROUP, "customresourcedefinitions"): (_CREATED,),
    (RBAC_GROUP, "clusterroles"): (_CREATED,),
    (RBAC_GROUP, "roles"): (_CREATED,),
    (RBAC_GROUP, "clusterrolebindings"): _ROLE,
    (RBAC_GROUP, "rolebindings"): _ROLE,
}
_READY = _said("READY", cell.is_ready)
_PROBLEM = _said("PROBLEM", cell.problem)
_PLACEMENT = (
    _field("OBJECTS", "status", "selectedObjects"),
    _field("DESTINATIONS", "status", "destinations"),
    _field("SYNCED", "status", "synced"),
    _field("HEALTHY", "status", "healthy"),
    _READY,
    _said("STATUS", cell.standing),
    _said("HOLD", cell.held),
    AGE,
    _field("COMPLETE", "status", "complete", wide=True),
    _field("PENDING", "status", "pending", wide=True),
    _field("FAILING", "status", "failing", wide=True),
    _field("FROZEN", "status", "frozen", wide=True),
    _field("UNREACHABLE", "status", "unreachable", wide=True),
    _field("NEVER JOINED", "status", "neverJoined", wide=True),
)
_OWN: Mapping[tuple[str, str], tuple[Column, ...]] = {
    (GROUP, "edgeplacements"): (
        *_PLACEMENT,
        _said("LOCATION SELECTORS", lambda obj: _selectors(obj, "locationSelectors"), wide=True),
    ),
    (CONTROL_GROUP, "bindingpolicies"): (
        *_PLACEMENT,
        _said("CLUSTER SELECTORS", lambda obj: _selectors(obj, "clusterSelectors"), wide=True),
    ),
    (CONTROL_GROUP, "bindings"): (
        _said(
            "OBJECTS",
            lambda obj: cell.bounded(
                obj,
                "objects",
                cell.entries(at(obj, "spec", "workload") or {}, "clusterScope", "namespaceScope"),
            ),
        ),
        _said(
            "DESTINATIONS",
            lambda obj: cell.bounded(
                obj, "destinations", cell.entries(at(obj, "spec") or {}, "destinations")
            ),
        ),
        AGE,
    ),
    (CONTROL_GROUP, "customtransforms"): (
        _field("GROUP", "spec", "apiGroup"),
        _field("RESOURCE", "spec", "resource"),
        _READY,
        _said("ERRORS", lambda obj: cell.entries(at(obj, "status") or {}, "errors")),
        AGE,
        _said("REMOVES", _removes, wide=True),
    ),
    (GROUP, "customizers"): (_READY, _PROBLEM, AGE),
    (DENATURED_GROUP, "denatureds"): (
        _field("KIND", "spec", "template", "kind"),
        _field("NAMESPACE", "spec", "template", "metadata", "namespace"),
        _field("OBJECT", "spec", "template", "metadata", "name"),
        _READY,
        _PROBLEM,
        AGE,
    ),
    (GROUP, "locations"): (
        _field("INSTANCES", "status", "instances"),
        AGE,
        _said(
            "INSTANCE SELECTOR",
            lambda obj: cell.selector_text(at(obj, "spec", "instanceSelector")),
            wide=True,
        ),
        _said("LABELS", lambda obj: cell.labels_text(at(obj, "metadata", "labels")), wide=True),
    ),
    (GROUP, "singleplacementslices"): (
        _said(
            "DESTINATIONS",
            lambda obj: cell.bounded(obj, "destinations", cell.entries(obj, "destinations")),
        ),
        AGE,
    ),
    (CONTROL_GROUP, "combinedstatuses"): (
        _said("OBJECT", cell.collected_object),
        _field("PLACEMENT", "metadata", "labels", f"{_STATUS_LABEL}binding-policy"),
        _said("COLLECTORS", cell.collectors),
        _said("ROWS", cell.collected_rows),
        _field("COMPLETE", "metadata", "annotations", "leafcast.io/complete"),
        AGE,
    ),
    (CONTROL_GROUP, "statuscollectors"): (
        _field("SCOPE", "spec", "scope", missing="Object"),
        _field("LIMIT", "spec", "limit", missing="20"),
        _READY,
        _PROBLEM,
        AGE,
    ),
    (DENATURED_GROUP, "healthrules"): (
        _field("GROUP", "spec", "apiGroup"),
        _field("RESOURCE", "spec", "resource"),
        _READY,
        _PROBLEM,
        AGE,
    ),
    RELEASES: (
        _field("VERSION", "spec", "version"),
        _field("WAVE", "status", "waveName"),
        _field("PHASE", "status", "phase"),
        AGE,
        _field("MESSAGE", "status", "message", wide=True),
    ),
    (DENATURED_GROUP, "rollouts"): (
        _field("PLACEMENT", "spec", "placement", "name"),
        _field("REVISION", "status", "revision"),
        _field("WAVE", "status", "waveName"),
        _READY,
        _field("PHASE", "status", "phase"),
        AGE,
        _field("MESSAGE", "status", "message", wide=True),
    ),
    (GROUP, "synctargets"): (
        _field("PATH", "metadata", "annotations", PATH_ANNOTATION),
        AGE,
        _said("LABELS", lambda obj: cell.labels_text(at(obj, "metadata", "labels")), wide=True),
    ),
}
_TABLES: Mapping[tuple[str, str], tuple[Column, ...]] = {**_WORKLOADS, **_OTHERS, **_OWN}


def runs_nothing_here(group: str, resource: str, obj: Fields) -> bool:
    """Whether it would run if a cluster held it, and nothing tells whether one does."""
    return (group, resource) in _WORKLOADS and not cell.is_reported(obj)
