"""CustomTransform: what is taken off all objects of a kind on their way, at every destination."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from schemas.api.placement import Int32, OneApiGroup
from schemas.api.shared import ControlObject, ListOf, Value, checked, resource_fault
from schemas.faults import Faulty
from schemas.json_paths import path_fault


def _json_path(text: str) -> str:
    if fault := path_fault(text):
        raise Faulty(fault)
    return text


_Resource = Annotated[
    str,
    AfterValidator(
        checked(resource_fault, "name one lowercase plural without its group, such as deployments")
    ),
]


class CustomTransformSpec(Value):
    """Of which kind of objects which fields are taken off."""

    api_group: OneApiGroup
    resource: _Resource
    remove: ListOf[Annotated[str, AfterValidator(_json_path)]] = ()


class CustomTransformStatus(Value):
    """What is wrong with a CustomTransform, and what to look at."""

    observed_generation: Int32 = 0
    errors: ListOf[str] = ()
    warnings: ListOf[str] = ()


class CustomTransform(ControlObject):
    """Takes fields off all objects of a kind before they go out, wherever they go."""

    kind: Literal["CustomTransform"]
    spec: CustomTransformSpec
    status: CustomTransformStatus | None = None
