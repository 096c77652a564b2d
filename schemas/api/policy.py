"""BindingPolicy, what goes where by labels of SyncTargets, and Binding, what that comes to.

KubeStellar's later way to say a placement: its clauses are those of EdgePlacement, but that
`labelSelectors` are called `objectSelectors`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from schemas.api.placement import CopyOptions, DownsyncClause, PlacementSpec, PlacementStatus
from schemas.api.shared import (
    CLAUSES_MAX,
    ApiValue,
    ControlObject,
    ListOf,
    ObjectMeta,
    Selectors,
    check_requirements,
    check_sent,
)
from schemas.records.placing import check_annotations
from schemas.values.faults import Fault, Faulty
from schemas.values.names import LABEL_MAX


class PolicyClause(DownsyncClause):
    """Which objects go down, and how; at least one field must tell objects apart."""

    label_selectors: Selectors = Field((), alias="objectSelectors")
    """Selects objects by their labels; any one must match. All if empty."""


class BindingPolicySpec(PlacementSpec):
    """What (downsync clauses) goes where (SyncTargets that any selector matches; none if empty)."""

    cluster_selectors: Selectors = ()
    """Selects SyncTargets by their labels: those that any one of these selectors matches. An
    empty list selects none."""
    downsync: Annotated[ListOf[PolicyClause], Field(max_length=CLAUSES_MAX)] = ()
    """Which objects go down: those that any one of these clauses admits. Of all clauses that
    admit an object each true option counts."""

    @model_validator(mode="after")
    def _costs_what_it_may(self) -> BindingPolicySpec:
        lists = [it for clause in self.downsync for it in clause.selectors]
        check_requirements(self.cluster_selectors, *lists)
        check_sent(self.cluster_selectors)
        return self


class BindingPolicyStatus(PlacementStatus):
    """What became of a BindingPolicy."""


class BindingPolicy(ControlObject):
    """What goes where, by labels of SyncTargets."""

    kind: Literal["BindingPolicy"]
    spec: BindingPolicySpec = BindingPolicySpec()
    """Which objects of this space go to which destinations."""
    status: BindingPolicyStatus | None = None
    """What became of the policy at its destinations. Leafcast writes it."""

    @field_validator("metadata")
    @classmethod
    def _fits_a_label(cls, metadata: ObjectMeta) -> ObjectMeta:
        if len(metadata.name) > LABEL_MAX:
            said = f"{len(metadata.name)} characters; objects that tell of it carry it as a label"
            raise Faulty(Fault("name", said, f"shorten it to at most {LABEL_MAX}"))
        check_annotations(metadata.name, metadata.annotations)
        return metadata


class ClusterScopeObject(CopyOptions):
    """A cluster-scoped object of a Binding, and how it is treated."""

    group: str
    """The API group of the object; "" is the core group."""
    version: str
    """The API version of the object."""
    resource: str
    """The lowercase plural of the object."""
    name: str
    """The name of the object."""
    resource_version: str
    """The version of the object whose content is in force."""


class NamespaceScopeObject(ClusterScopeObject):
    """A namespaced object of a Binding, and how it is treated."""

    namespace: str
    """The namespace of the object."""


class BindingWorkload(ApiValue):
    """The objects of a Binding, by scope."""

    cluster_scope: ListOf[ClusterScopeObject] = ()
    """Cluster-scoped objects."""
    namespace_scope: ListOf[NamespaceScopeObject] = ()
    """Namespaced objects."""


class BindingDestination(ApiValue):
    """A destination of a Binding."""

    cluster_id: str
    """The name of the SyncTarget."""


class BindingSpec(ApiValue):
    """Which objects go to which destinations: each of them to each."""

    workload: BindingWorkload = BindingWorkload()
    """The objects in force; empty with a note if there are too many to list."""
    destinations: ListOf[BindingDestination] = ()
    """The SyncTargets; empty with a note if there are too many to list."""


class Binding(ControlObject):
    """What the BindingPolicy of the same name comes to; for display."""

    kind: Literal["Binding"]
    spec: BindingSpec = BindingSpec()
    """What the BindingPolicy of the same name comes to. Leafcast writes it."""
