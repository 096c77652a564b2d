"""The inventory: SyncTarget, a cluster at an edge, and Location, what placements select.

A Location's instanceSelector chooses SyncTargets of its own inventory space: absent it chooses
none, `{}` all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, PlainValidator, field_validator, model_validator

from schemas.api.shared import (
    ApiObject,
    ApiValue,
    Condition,
    CountField,
    ListOf,
    ObjectMeta,
    Selector,
    check_description,
    check_each_once,
    check_sent,
    checked,
)
from schemas.records.maintenance import MAINTENANCE, time_fault
from schemas.values import names
from schemas.values.faults import Fault, Faulty
from schemas.values.groups import PATH_ANNOTATION
from schemas.values.identity import NodePath
from schemas.values.refusals import BadIdentity

LABEL_KEY_MAX = 255

_LabelKey = Annotated[
    str,
    Field(max_length=LABEL_KEY_MAX),
    checked(names.label_key_fault, f"use {names.QUALIFIED_RULE}"),
]
_LabelValue = Annotated[str, checked(names.label_value_fault, f"use {names.LABEL_VALUE_RULE}")]

DescribedMeta = Annotated[ObjectMeta, AfterValidator(check_description)]


def _quantity(form: object) -> str | int | float:
    if isinstance(form, (str, int, float)) and not isinstance(form, bool):
        return form
    raise Faulty(Fault("", "not a quantity", "write it as Kubernetes does, as in 500m or 2Gi"))


_Quantities = Mapping[str, Annotated[str | int | float, PlainValidator(_quantity)]]


class ApiExport(ApiValue):
    """An API that a SyncTarget supports."""

    export: str
    """The name of the API export."""
    path: str = ""
    """The kcp workspace that exports it."""


class SyncTargetSpec(ApiValue):
    """What an operator says of a cluster; SyncTargets with equal cells behave as one."""

    unschedulable: bool = False
    """Not honoured, but kept: Leafcast places by labels alone."""
    evict_after: str | None = None
    """Not honoured, but kept: a time as in 2026-01-02T15:04:05Z."""
    supported_api_exports: ListOf[ApiExport] = Field(
        (ApiExport(export="kubernetes"),), alias="supportedAPIExports"
    )
    """The APIs that the cluster supports."""
    cells: Mapping[str, str] = Field(default_factory=dict)
    """Kept for those who read it: who has equal ones behaves as one cluster."""


class SyncedResource(ApiValue):
    """A resource that a SyncTarget's cluster takes, and in which versions."""

    group: str = ""
    """The API group; "" is the core group."""
    resource: str
    """The lowercase plural."""
    versions: Annotated[ListOf[str], Field(min_length=1)]
    """The versions that the cluster takes."""
    identity_hash: str = ""
    """The identity of the API export."""
    state: Literal["Pending", "Accepted", "Incompatible"] = "Pending"
    """Whether the cluster takes it."""


class VirtualWorkspace(ApiValue):
    """Where a kcp syncer would read and write."""

    syncer_url: str = Field("", alias="syncerURL")
    """Where it would read what goes down."""
    upsyncer_url: str = Field("", alias="upsyncerURL")
    """Where it would write what comes up."""


class SyncTargetStatus(ApiValue):
    """What is known of a cluster; quantities are written as Kubernetes does (`500m`, `2Gi`)."""

    allocatable: _Quantities = Field(default_factory=dict)
    """What of each resource can be allocated."""
    capacity: _Quantities = Field(default_factory=dict)
    """What of each resource there is."""
    conditions: ListOf[Condition] = ()
    """Ready: the node at its path is in session, and its path is its own."""
    synced_resources: ListOf[SyncedResource] = ()
    """Which resources the cluster takes, and in which versions."""
    last_syncer_heartbeat_time: str | None = None
    """When the cluster was heard of last."""
    virtual_workspaces: ListOf[VirtualWorkspace] = ()
    """Where a kcp syncer would read and write."""


class SyncTarget(ApiObject):
    """A workload execution cluster; the annotation `leafcast.io/path` says where it hangs."""

    kind: Literal["SyncTarget"]
    metadata: DescribedMeta
    spec: SyncTargetSpec = SyncTargetSpec()
    """What an operator says of the cluster."""
    status: SyncTargetStatus | None = None
    """What is known of the cluster. Leafcast writes it."""

    @field_validator("metadata")
    @classmethod
    def _hangs_somewhere(cls, metadata: ObjectMeta) -> ObjectMeta:
        text = metadata.annotations.get(PATH_ANNOTATION)
        if text is None:
            return metadata
        field = f"annotations[{PATH_ANNOTATION}]"
        remedy = "write the names from the centre down, each a DNS label, as in /emea/store-1"
        try:
            parsed = NodePath.parse(text)
        except BadIdentity as error:
            raise Faulty(Fault(field, f'"{text}" is not a path in the tree', remedy)) from error
        if parsed.is_root:
            raise Faulty(Fault(field, "the centre holds no cluster", remedy))
        return metadata

    @field_validator("metadata")
    @classmethod
    def _is_in_maintenance_until(cls, metadata: ObjectMeta) -> ObjectMeta:
        """What is no time ends no maintenance: whoever is wrong keeps what was said last."""
        until = metadata.annotations.get(MAINTENANCE)
        if until is not None and (fault := time_fault(until)):
            raise Faulty(Fault(f"annotations[{MAINTENANCE}]", *fault))
        return metadata

    @property
    def path(self) -> NodePath | None:
        """Where it hangs in the tree; None if nothing says so yet."""
        text = self.metadata.annotations.get(PATH_ANNOTATION)
        return None if text is None else NodePath.parse(text)


class LocationResource(ApiValue):
    """What a Location is a location of; there is one possibility."""

    group: Literal["edge.kubestellar.io"]
    """edge.kubestellar.io"""
    version: Literal["v2alpha1"]
    """v2alpha1"""
    resource: Literal["synctargets"]
    """synctargets"""


class AvailableSelectorLabel(ApiValue):
    """A label that users of the Location may select by; for people, not used in matching."""

    key: _LabelKey
    """The key of the label."""
    values: Annotated[ListOf[_LabelValue], Field(min_length=1)]
    """The values that it may have."""
    description: str = ""
    """What the label means."""


class LocationSpec(ApiValue):
    """Which SyncTargets of the same inventory space are at this Location."""

    resource: LocationResource
    """What it is a location of: synctargets of edge.kubestellar.io/v2alpha1."""
    description: str = ""
    """A text for people."""
    available_selector_labels: ListOf[AvailableSelectorLabel] = ()
    """Labels by which users may select it; for people, not used in matching."""
    instance_selector: Selector | None = None
    """Selects SyncTargets of the same inventory space by their labels. Absent it selects none,
    {} selects all."""

    @model_validator(mode="after")
    def _each_label_once(self) -> LocationSpec:
        keys = [label.key for label in self.available_selector_labels]
        check_each_once("availableSelectorLabels[{}].key", keys)
        check_sent(filter(None, (self.instance_selector,)))
        return self


class LocationStatus(ApiValue):
    """How many SyncTargets are at the Location, and how many of them take work."""

    instances: CountField | None = None
    """How many SyncTargets are at it."""
    available_instances: CountField | None = None
    """How many of them take work."""


class Location(ApiObject):
    """A place that placements select by its labels."""

    kind: Literal["Location"]
    metadata: DescribedMeta
    spec: LocationSpec
    """Which SyncTargets are at this Location."""
    status: LocationStatus | None = None
    """How many SyncTargets are at it. Leafcast writes it."""
