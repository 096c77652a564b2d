"""HealthRule: how well the objects of a kind count at edges."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, model_validator

from schemas.api.collectors import CelExpression
from schemas.api.placement import OneApiGroup
from schemas.api.shared import (
    Condition,
    Count,
    ListOf,
    NamedObject,
    Value,
    checked,
    resource_fault,
)
from schemas.records.health_rules import HealthProgram
from schemas.values.faults import Fault, Faulty

_SAYING = ("healthy", "degraded", "message", "done")
_Resource = Annotated[
    str,
    AfterValidator(
        checked(resource_fault, "name one lowercase plural without its group, such as workflows")
    ),
]


class HealthRuleSpec(Value):
    """Of which kind, and what its objects count as."""

    api_group: OneApiGroup
    resource: _Resource
    healthy: CelExpression | None = None
    degraded: CelExpression | None = None
    message: CelExpression | None = None
    done: CelExpression | None = None
    ignore: bool = False

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


class HealthRuleStatus(Value):
    """What is wrong with it."""

    observed_generation: Count | None = None
    errors: ListOf[str] = ()
    warnings: ListOf[str] = ()
    conditions: ListOf[Condition] = ()


class HealthRule(NamedObject):
    """Says how well the objects of a kind count, wherever placements of its space send them."""

    api_version: Literal["leafcast.io/v1alpha1"]
    kind: Literal["HealthRule"]
    spec: HealthRuleSpec
    status: HealthRuleStatus | None = None

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
