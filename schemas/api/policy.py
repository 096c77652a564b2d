"""BindingPolicy, what goes where by labels of SyncTargets, and Binding, what that comes to.

KubeStellar's later way to say a placement: its clauses are those of EdgePlacement, but that
`labelSelectors` are called `objectSelectors`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from schemas.api.cleaning import AS_WRITTEN, Cleaning
from schemas.api.placement import DownsyncClause, PlacementStatus
from schemas.api.readiness import Readiness
from schemas.api.shared import (
    CLAUSES_MAX,
    ControlObject,
    ListOf,
    ObjectMeta,
    Selectors,
    Value,
    check_requirements,
    check_sent,
)
from schemas.records.placing import check_annotations
from schemas.values.faults import Fault, Faulty
from schemas.values.names import LABEL_MAX


class PolicyClause(DownsyncClause):
    """Which objects go down, and how; at least one field must tell objects apart."""

    label_selectors: Selectors = Field((), alias="objectSelectors")


class BindingPolicySpec(Value):
    """What (downsync clauses) goes where (SyncTargets that any selector matches; none if empty)."""

    cluster_selectors: Selectors = ()
    downsync: Annotated[ListOf[PolicyClause], Field(max_length=CLAUSES_MAX)] = ()
    readiness: Readiness = Readiness()
    cleaning: Cleaning = AS_WRITTEN

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
    status: BindingPolicyStatus | None = None

    @field_validator("metadata")
    @classmethod
    def _fits_a_label(cls, metadata: ObjectMeta) -> ObjectMeta:
        if len(metadata.name) > LABEL_MAX:
            said = f"{len(metadata.name)} characters; objects that tell of it carry it as a label"
            raise Faulty(Fault("name", said, f"shorten it to at most {LABEL_MAX}"))
        check_annotations(metadata.name, metadata.annotations)
        return metadata


class ClusterScopeObject(Value):
    """A cluster-scoped object of a Binding, and how it is treated."""

    group: str
    version: str
    resource: str
    name: str
    resource_version: str
    create_only: bool = False
    want_singleton_reported_state: bool = False
    want_multi_wec_reported_state: bool = Field(default=False, alias="wantMultiWECReportedState")


class NamespaceScopeObject(ClusterScopeObject):
    """A namespaced object of a Binding, and how it is treated."""

    namespace: str


class BindingWorkload(Value):
    """The objects of a Binding, by scope."""

    cluster_scope: ListOf[ClusterScopeObject] = ()
    namespace_scope: ListOf[NamespaceScopeObject] = ()


class BindingDestination(Value):
    """A destination of a Binding."""

    cluster_id: str


class BindingSpec(Value):
    """Which objects go to which destinations: each of them to each."""

    workload: BindingWorkload = BindingWorkload()
    destinations: ListOf[BindingDestination] = ()


class Binding(ControlObject):
    """What the BindingPolicy of the same name comes to; for display."""

    kind: Literal["Binding"]
    spec: BindingSpec = BindingSpec()
