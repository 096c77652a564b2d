"""Placement: EdgePlacement, what goes where, and SinglePlacementSlice, where that turned out to be.

EdgePlacement v1alpha1 is read by its fields, in either version: an API server gives back what was
written as v1alpha1 as v2alpha1, with the same fields.

A downsync clause ANDs its fields, the clauses of a placement are ORed. An empty field of a downsync
clause admits everything; an empty field of an upsync set admits nothing.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, field_validator, model_validator

from schemas.api.placement_details import Hold, KeptCopies, RepairedCopies
from schemas.api.readiness import Readiness
from schemas.api.shared import (
    ANY,
    CLAUSES_MAX,
    ApiObject,
    ApiValue,
    Condition,
    CountField,
    ListField,
    ListOf,
    NamedObject,
    ObjectMeta,
    Selector,
    Selectors,
    check_requirements,
    check_sent,
    checked,
    group_fault,
    or_any,
    resource_fault,
)
from schemas.objects.selectors import LabelSelector
from schemas.records.placing import check_annotations
from schemas.reports.upsync import UpsyncClause
from schemas.values import names
from schemas.values.faults import Fault, Faulty

Cleaning = Literal["AsWritten", "KubeStellar"]
AS_WRITTEN: Final = "AsWritten"
"""What a person said goes out; what an API server handed out itself does not."""
KUBESTELLAR: Final = "KubeStellar"
"""What KubeStellar takes off is taken off, whoever said it."""
INT32_MAX = 2**31 - 1

_ApiGroup = Annotated[
    str, checked(group_fault, 'write "" for core, or leave it out to mean any group')
]
OneApiGroup = Annotated[str, checked(group_fault, 'write "" for core, or a group such as apps')]
_RESOURCE_REMEDY = or_any("the lowercase plural without its group, such as deployments")
OneResource = Annotated[
    str,
    checked(resource_fault, "name one lowercase plural without its group, such as certificates"),
]
ResourceName = Annotated[str, checked(resource_fault, _RESOURCE_REMEDY, any_=True)]
_Namespace = Annotated[str, checked(names.dns_label_fault, or_any(names.DNS_LABEL_RULE), any_=True)]
_ObjectName = Annotated[
    str, checked(names.path_segment_fault, or_any(names.PATH_SEGMENT_RULE), any_=True)
]
_CollectorName = Annotated[str, checked(names.subdomain_fault, "name a StatusCollector")]
Int32 = Annotated[int, Field(ge=0, le=INT32_MAX)]


class CopyOptions(ApiValue):
    """How objects that go down are treated."""

    create_only: bool = False
    """Create the objects where they are missing, and leave those alone that are there."""
    want_singleton_reported_state: bool = False
    """Copy the status of these objects back here, while exactly one destination has them."""
    want_multi_wec_reported_state: bool = Field(default=False, alias="wantMultiWECReportedState")
    """Copy an aggregate of the destinations' statuses back here."""


class DownsyncClause(CopyOptions):
    """Which objects go down, and how; at least one field must tell objects apart."""

    api_group: _ApiGroup | None = None
    """The API group of the objects; "" is the core group. Any group if absent."""
    resources: ListField[ResourceName] = ()
    """Lowercase plurals, such as deployments; * for all. All if empty."""
    namespaces: ListField[_Namespace] = ()
    """Namespaces of the objects; * for all, and for cluster-scoped objects. All if empty; names
    without * admit no cluster-scoped object."""
    namespace_selectors: Selectors = ()
    """Selects Namespaces by their labels; any one must match the object's. {} admits
    cluster-scoped objects, too. All if empty."""
    object_names: ListField[_ObjectName] = ()
    """Names of the objects; * for all. All if empty."""
    label_selectors: Selectors = ()
    """Selects objects by their labels; any one must match. All if empty."""
    status_collectors: ListField[_CollectorName] = ()
    """Names of StatusCollectors that are applied to these objects."""

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


class UpsyncSet(ApiValue):
    """Which objects that arise at edges come up; an empty list admits nothing."""

    api_group: OneApiGroup = ""
    """The API group of the objects; "" is the core group."""
    resources: ListField[ResourceName]
    """Lowercase plurals, such as configmaps; * for all."""
    namespaces: ListField[_Namespace] = ()
    """Namespaces of the objects; * for all. None if empty."""
    names: ListField[_ObjectName] = ()
    """Names of the objects; * for all. None if empty."""

    @property
    def clause(self) -> UpsyncClause:
        """The set as it travels."""
        return UpsyncClause(self.api_group, self.resources, self.namespaces, self.names)


class PlacedUpsyncSet(UpsyncSet):
    """Which objects come up, and the StatusCollectors with a source that are over such."""

    status_collectors: ListField[_CollectorName] = ()
    """Names of StatusCollectors with a source: over what comes up."""


class NonNamespacedObjectSet(ApiValue):
    """Of v1alpha1: cluster-scoped objects of one group, by name or by labels; empty lists none."""

    api_group: OneApiGroup = ""
    """The API group of the objects; "" is the core group."""
    resources: ListField[ResourceName]
    """Lowercase plurals, such as clusterroles; * for all. None if empty."""
    resource_names: ListField[_ObjectName] = ()
    """Names of the objects; * for all. An object is in the set by its name or by its labels."""
    label_selectors: Selectors = ()
    """Selects objects by their labels; any one must match."""


class PlacementSpec(ApiValue):
    """What all kinds of placements say besides what goes where."""

    readiness: Readiness = Readiness()
    """What may be away, or empty, while the condition Ready is True."""
    cleaning: Cleaning = AS_WRITTEN
    """What is taken off objects before they go out. AsWritten: nothing that a person said.
    KubeStellar: what KubeStellar takes off, such as node ports, traffic policies and a Job's
    suspend, whoever said it."""


class EdgePlacementSpec(PlacementSpec):
    """What (downsync clauses) goes where (Locations that any selector matches; none if empty)."""

    location_selectors: Selectors = ()
    """Selects Locations by their labels: those that any one of these selectors matches. An
    empty list selects none. Every SyncTarget at a selected Location is a destination."""
    downsync: Annotated[ListOf[DownsyncClause], Field(max_length=CLAUSES_MAX)] = ()
    """Which objects go down: those that any one of these clauses admits."""
    want_singleton_reported_state: bool = False
    """Copy the status of each selected object back here, while exactly one destination has it."""
    upsync: Annotated[ListOf[PlacedUpsyncSet], Field(max_length=CLAUSES_MAX)] = ()
    """Which objects that arise at destinations come up; they are never sent down."""
    namespace_selector: Selector | None = None
    """Of v1alpha1: all namespaced objects go down of the Namespaces whose labels it matches.
    None if absent."""
    non_namespaced_objects: Annotated[
        ListOf[NonNamespacedObjectSet], Field(max_length=CLAUSES_MAX)
    ] = ()
    """Of v1alpha1: which cluster-scoped objects go down: those that any one of these sets holds."""

    @model_validator(mode="after")
    def _costs_what_it_may(self) -> EdgePlacementSpec:
        lists = [it for clause in self.downsync for it in clause.selectors]
        others = (item.label_selectors for item in self.non_namespaced_objects)
        check_requirements(self.location_selectors, *lists, *others)
        check_sent(self.location_selectors)
        return self


class PlacementStatus(ApiValue):
    """What became of a placement of any kind, from the summaries.

    Counts are of destinations.
    """

    observed_generation: Int32 = 0
    """The metadata.generation that this status speaks of."""
    selected_objects: CountField | None = None
    """How many objects the placement selects."""
    conditions: ListOf[Condition] = ()
    """Valid: the placement can be read. Synced: every destination holds exactly what it
    prescribes. Healthy: all of that works, everywhere. Ready: both are so wherever a
    destination can be reached, and enough can be. While it is not ready it is Reconciling, or
    Stalled if no waiting helps."""
    destinations: CountField | None = None
    """How many destinations are meant."""
    pending: CountField | None = None
    """How many destinations have not applied all of it yet."""
    waiting: CountField | None = None
    """How many destinations keep what they have until a wave or a window opens, or what they
    depend on is healthy."""
    synced: CountField | None = None
    """How many destinations hold exactly what is prescribed."""
    healthy: CountField | None = None
    """At how many destinations all of it works."""
    failing: CountField | None = None
    """How many destinations cannot apply all of it; errors says why."""
    frozen: CountField | None = None
    """How many destinations keep all of it as it was, as some of it cannot be customized there;
    errors says why."""
    unreachable: CountField | None = None
    """How many destinations are not heard of; they keep what they have."""
    never_joined: CountField | None = None
    """How many more are meant that were added, and never joined."""
    complete: bool | None = None
    """Whether the counts are exact; if not, each reads 'at least'."""
    errors: ListOf[str] = ()
    """The worst of what is wrong, each with its object, its reason, how many destinations have
    it, and one of them."""
    held: ListOf[Hold] = ()
    """What keeps the newest content of this space from destinations; while there is any, Synced
    is False."""
    # Neither is wrong: what stays where it is wanted no more, and what was put right.
    kept: KeptCopies | None = None
    """Copies that are kept though nothing wants them any more: how many, and some of them."""
    repairs: RepairedCopies | None = None
    """How often copies were put right that others changed or deleted, and the last times."""


class EdgePlacementStatus(PlacementStatus):
    """What became of an EdgePlacement; `specGeneration` 0 is no status yet."""

    spec_generation: Int32 = 0
    """The metadata.generation that this status speaks of."""
    matching_location_count: Int32 = 0
    """How many Locations the selectors match."""


class EdgePlacement(NamedObject):
    """What goes where, as a user of a workload description space says it."""

    api_version: Literal["edge.kubestellar.io/v2alpha1", "edge.kubestellar.io/v1alpha1"]
    kind: Literal["EdgePlacement"]
    spec: EdgePlacementSpec = EdgePlacementSpec()
    """Which objects of this space go to which destinations."""
    status: EdgePlacementStatus | None = None
    """What became of the placement at its destinations. Leafcast writes it."""

    @field_validator("metadata")
    @classmethod
    def _can_be_placed(cls, metadata: ObjectMeta) -> ObjectMeta:
        check_annotations(metadata.name, metadata.annotations)
        return metadata


class Destination(ApiValue):
    """One (Location, SyncTarget) pair; `cluster` is the inventory space's identity."""

    cluster: str
    """The identity of the inventory space that holds the Location."""
    location_name: str
    """The name of the Location."""
    sync_target_name: str
    """The name of the SyncTarget."""
    sync_target_uid: str = Field(alias="syncTargetUID")
    """The UID of the SyncTarget."""


class SinglePlacementSlice(ApiObject):
    """The destinations of the EdgePlacement of the same name; for display."""

    kind: Literal["SinglePlacementSlice"]
    destinations: ListOf[Destination] = ()
    """The pairs of a Location that the EdgePlacement of the same name selects and a SyncTarget
    at it; empty with a note if there are too many to list."""
