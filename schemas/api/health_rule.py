"""HealthRule: how well the objects of a kind count at edges."""

from __future__ import annotations

from typing import Literal

from pydantic import model_validator

from schemas.api.collectors import CelExpression
from schemas.api.placement import OneApiGroup, OneResource
from schemas.api.shared import ApiValue, JudgedStatus, ListOf, NamedObject
from schemas.records.health_rules import HealthProgram
from schemas.values.faults import Fault, Faulty

_SAYING = ("healthy", "degraded", "message", "done")


class HealthRuleSpec(ApiValue):
    """Of which kind, and what its objects count as."""

    api_group: OneApiGroup
    """The API group of the objects; "" is the core group."""
    resource: OneResource
    """The lowercase plural of their kind."""
    healthy: CelExpression | None = None
    """CEL over obj, the object at its edge: true if it is healthy. Without it its kind says so.
    What gives nothing, as over a status that is not there yet, is false."""
    degraded: CelExpression | None = None
    """CEL: true if it is degraded. It comes first."""
    message: CelExpression | None = None
    """CEL, a text: what is said of one that is not healthy."""
    done: CelExpression | None = None
    """CEL: true once it came to a good end, and is not made again when it is gone."""
    ignore: bool = False
    """Whether all count as healthy once they are applied."""

    @model_validator(mode="after")
    def _says_something(self) -> HealthRuleSpec:
        said = [name for name in _SAYING if getattr(self, name) is not None]
        if self.ignore and (beside := [name for name in said if name != "done"]):
            message = "nothing is asked of what is ignored"
            raise Faulty(Fault(beside[0], message, "leave it out, or leave out ignore"))
        if not self.ignore and not {*said} - {"message"}:
            remedy = "write healthy, degraded or done, or ignore: true"
            raise Faulty(Fault("", "it says nothing of health", remedy))
        return self


class HealthRuleStatus(JudgedStatus):
    """What is wrong with it."""

    errors: ListOf[str] = ()
    """What is wrong, by field. A rule with errors counts as it was last."""
    warnings: ListOf[str] = ()
    """What is to be known of it."""


class HealthRule(NamedObject):
    """Says how well the objects of a kind count, wherever placements of its space send them."""

    api_version: Literal["leafcast.io/v1alpha1"]
    kind: Literal["HealthRule"]
    spec: HealthRuleSpec
    """Of which kind, and what its objects count as."""
    status: HealthRuleStatus | None = None
    """What is wrong with it. Leafcast writes it."""

    @property
    def program(self) -> HealthProgram:
        """The rule as it travels."""
        spec = self.spec
        return HealthProgram(
            self.name,
            spec.api_group,
            spec.resource,
            spec.healthy or "",
            spec.degraded or "",
            spec.message or "",
            spec.done or "",
            spec.ignore,
        )
