"""CustomTransform: what is taken off all objects of a kind on their way, at every destination."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from schemas.api.placement import Int32, OneApiGroup, OneResource
from schemas.api.shared import ApiValue, ControlObject, JudgedStatus, ListOf
from schemas.objects.json_paths import JsonPath, length_fault
from schemas.objects.objects import identity_of
from schemas.values.faults import Fault, Faulty

REMOVE_MAX = 256


def check_identity(text: str, before: Mapping[str, Any], obj: Mapping[str, Any]) -> None:
    """Raise Faulty if a path took off what made an object, which was so before, the one it is."""
    lost = [name for name, value in identity_of(obj).items() if value != before[name]]
    if lost:
        message = f'"{text}" takes off {lost[0]}, without which it is no object'
        raise Faulty(Fault("", message, "name a field elsewhere"))


def _check_length(form: object) -> object:
    """Before any is read: each takes time."""
    texts = [it for it in form if isinstance(it, str)] if isinstance(form, (list, tuple)) else ()
    if fault := length_fault("", texts):
        raise Faulty(fault)
    return form


def _json_path(text: str) -> str:
    # What takes it off any object is refused without one; no filter asks for these values.
    least = {"apiVersion": "*", "kind": "*", "metadata": {"name": "*", "namespace": "*"}}
    before = identity_of(least)
    JsonPath(text).remove(least)
    check_identity(text, before, least)
    return text


class CustomTransformSpec(ApiValue):
    """Of which kind of objects which fields are taken off."""

    api_group: OneApiGroup
    """The API group of the objects; "" is the core group."""
    resource: OneResource
    """The lowercase plural of the objects, such as deployments."""
    remove: Annotated[
        ListOf[Annotated[str, AfterValidator(_json_path)]],
        Field(max_length=REMOVE_MAX),
        BeforeValidator(_check_length),
    ] = ()
    """JSONPaths (RFC 9535) of what is taken off each object, wherever it is there."""


class CustomTransformStatus(JudgedStatus):
    """What is wrong with a CustomTransform, and what to look at."""

    observed_generation: Int32 = 0
    """The metadata.generation that this status speaks of."""
    errors: ListOf[str] = ()
    """What is wrong; objects of the kind stay as they went out last."""
    warnings: ListOf[str] = ()
    """What else is there for the same kind: all of it applies."""


class CustomTransform(ControlObject):
    """Takes fields off all objects of a kind before they go out, wherever they go."""

    kind: Literal["CustomTransform"]
    spec: CustomTransformSpec
    """What is taken off which objects."""
    status: CustomTransformStatus | None = None
    """What is wrong with it. Leafcast writes it."""
