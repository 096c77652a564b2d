"""Placement: EdgePlacement, what goes where, and SinglePlacementSlice, where that turned out to be.

EdgePlacement v1alpha1 is read by its fields, in either version: an API server gives back what was
written as v1alpha1 as v2alpha1, with the same fields.

A downsync clause ANDs its fields, the clauses of a placement are ORed. An empty field of a downsync
clause admits everything; an empty field of an upsync set admits nothing.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from schemas.api.cleaning import AS_WRITTEN, Cleaning
from schemas.api.hold import Hold
from schemas.api.readiness import Readiness
from schemas.api.shared import (
    ANY,
    CLAUSES_MAX,
    ApiObject,
    Condition,
    Count,
    Listed,
    ListOf,
    NamedObject,
    ObjectMeta,
    Selector,
    Selectors,
    Value,
    check_requirements,
    check_sent,
    checked,
    group_fault,
    or_any,
    resource_fault,
)
from schemas.api.traces import KeptCopies, RepairedCopies
from schemas.objects.selectors import LabelSelector
from schemas.records.placing import check_annotations
from schemas.reports.upsync import UpsyncClause
from schemas.values import names
from schemas.values.faults import Fault, Faulty

INT32_MAX = 2**31 - 1

_ApiGroup = Annotated[
    str,
    AfterValidator(checked(group_fault, 'write "" for core, or leave it out to mean any group')),
]
OneApiGroup = Annotated[
    str, AfterValidator(checked(group_fault, 'write "" for core, or a group such as apps'))
]
_RESOURCE_REMEDY = or_any("the lowercase plural without its group, such as deployments")
ResourceName = Annotated[str, AfterValidator(checked(resource_fault, _RESOURCE_REMEDY, any_=True))]
_Namespace = Annotated[
    str,
    AfterValidator(checked(names.dns_label_fault, or_any(names.DNS_LABEL_RULE), any_=True)),
]
_ObjectName = Annotated[
    str,
    AfterValidator(checked(names.path_segment_fault, or_any(names.PATH_SEGMENT_RULE), any_=True)),
]
_CollectorName = Annotated[
    str,
    AfterValidator(checked(names.subdomain_fault, "name a StatusCollector")),
]
Int32 = Annotated[int, Field(ge=0, le=INT32_MAX)]


class DownsyncClause(Value):
    """Which objects go down, and how; at least one field must tell objects apart."""

    # None is any group, "" is core.
    api_group: _ApiGroup | None = None
    resources: Listed[ResourceName] = ()
    # Those named without `*` never admit cluster-scoped objects.
    namespaces: Listed[_Namespace] = ()
    # `{}` admits cluster-scoped objects, too.
    namespace_selectors: Selectors = ()
    object_names: Listed[_ObjectName] = ()
    label_selectors: Selectors = ()
    create_only: bool = False
    status_collectors: Listed[_CollectorName] = ()
    want_singleton_reported_state: bool = False
    want_multi_wec_reported_state: bool = Field(default=False, alias="wantMultiWECReportedState")

    @property
    def selectors(self) -> tuple[tuple[LabelSelector, ...], ...]:
        """All lists of selectors that each object is compared with."""
        return self.namespace_selectors, self.label_selectors

    @model_validator(mode="after")
    def _tells_objects_apart(self) -> DownsyncClause:
        lists = (self.resources, self.namespaces, self.object_names)
        tells = (
            self.api_group is not None
            or any(listed and ANY not in listed for listed in lists)
            # Of a list of selectors one must match: `{}` among them admits all.
            or any(
                listed and not any(selector.is_everything for selector in listed)
                for listed in self.selectors
            )
        )
        if not tells:
            by_labels = type(self).model_fields["label_selectors"].alias
            remedy = (
                "narrow apiGroup, resources, namespaces, namespaceSelectors, objectNames "
                f"or {by_labels}"
            )
            raise Faulty(Fault("", "no field tells objects apart: it means every object", remedy))
        return self


class UpsyncSet(Value):
    """Which objects that arise at edges come up; an empty list admits nothing."""

    api_group: OneApiGroup = ""
    resources: Listed[ResourceName]
    namespaces: Listed[_Namespace] = ()
    names: Listed[_ObjectName] = ()

    @property
    def clause(self) -> UpsyncClause:
        """The set as it travels."""
        return UpsyncClause(self.api_group, self.resources, self.namespaces, self.names)


class PlacedUpsyncSet(UpsyncSet):
    """Which objects come up, and the StatusCollectors with a source that are over such."""

    status_collectors: Listed[_CollectorName] = ()


class NonNamespacedObjectSet(Value):
    """Of v1alpha1: cluster-scoped objects of one group, by name or by labels; empty lists none."""

    api_group: OneApiGroup = ""
    resources: Listed[ResourceName]
    resource_names: Listed[_ObjectName] = ()
    label_selectors: Selectors = ()


class EdgePlacementSpec(Value):
    """What (downsync clauses) goes where (Locations that any selector matches; none if empty)."""

    location_selectors: Selectors = ()
    downsync: Annotated[ListOf[DownsyncClause], Field(max_length=CLAUSES_MAX)] = ()
    want_singleton_reported_state: bool = False
    upsync: Annotated[ListOf[PlacedUpsyncSet], Field(max_length=CLAUSES_MAX)] = ()
    # Of v1alpha1: admits all namespaced objects of the Namespaces that it selects; none if absent.
    namespace_selector: Selector | None = None
    # Of v1alpha1: admit cluster-scoped objects.
    non_namespaced_objects: Annotated[
        ListOf[NonNamespacedObjectSet], Field(max_length=CLAUSES_MAX)
    ] = ()
    readiness: Readiness = Readiness()
    cleaning: Cleaning = AS_WRITTEN

    @model_validator(mode="after")
    def _costs_what_it_may(self) -> EdgePlacementSpec:
        lists = [it for clause in self.downsync for it in clause.selectors]
        others = (item.label_selectors for item in self.non_namespaced_objects)
        check_requirements(self.location_selectors, *lists, *others)
        check_sent(self.location_selectors)
        return self


class PlacementStatus(Value):
    """What became of a placement of any kind, from the summaries.

    Counts are of destinations.
    """

    observed_generation: Int32 = 0
    selected_objects: Count | None = None
    conditions: ListOf[Condition] = ()
    destinations: Count | None = None
    pending: Count | None = None
    waiting: Count | None = None
    synced: Count | None = None
    healthy: Count | None = None
    failing: Count | None = None
    frozen: Count | None = None
    unreachable: Count | None = None
    # These are not among `destinations`.
    never_joined: Count | None = None
    # Whether the counts are exact; else they read "at least".
    complete: bool | None = None
    errors: ListOf[str] = ()
    # What keeps the newest content of the centre from destinations.
    held: ListOf[Hold] = ()
    # Neither is wrong: what stays where it is wanted no more, and what was put right.
    kept: KeptCopies | None = None
    repairs: RepairedCopies | None = None


class EdgePlacementStatus(PlacementStatus):
    """What became of an EdgePlacement; `specGeneration` 0 is no status yet."""

    spec_generation: Int32 = 0
    matching_location_count: Int32 = 0


class EdgePlacement(NamedObject):
    """What goes where, as a user of a workload description space says it."""

    api_version: Literal["edge.kubestellar.io/v2alpha1", "edge.kubestellar.io/v1alpha1"]
    kind: Literal["EdgePlacement"]
    spec: EdgePlacementSpec = EdgePlacementSpec()
    status: EdgePlacementStatus | None = None

    @field_validator("metadata")
    @classmethod
    def _can_be_placed(cls, metadata: ObjectMeta) -> ObjectMeta:
        check_annotations(metadata.name, metadata.annotations)
        return metadata


class Destination(Value):
    """One (Location, SyncTarget) pair; `cluster` is the inventory space's identity."""

    cluster: str
    location_name: str
    sync_target_name: str
    sync_target_uid: str = Field(alias="syncTargetUID")


class SinglePlacementSlice(ApiObject):
    """The destinations of the EdgePlacement of the same name; for display."""

    kind: Literal["SinglePlacementSlice"]
    destinations: ListOf[Destination] = ()
