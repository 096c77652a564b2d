"""Denatured: an object that would act where it lies, held so that it acts at destinations only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import PlainValidator, WithJsonSchema

from schemas.api.shared import ApiValue, JudgedStatus, NamedObject
from schemas.objects.annotations import annotation_faults
from schemas.objects.objects import group_of, object_faults
from schemas.values.faults import Fault, Faulty
from schemas.values.groups import CONTROL_GROUP, DENATURED_GROUP, GROUP

_OURS = (CONTROL_GROUP, GROUP, DENATURED_GROUP)


def _template(form: object) -> Mapping[str, Any]:
    if not isinstance(form, Mapping):
        raise Faulty(Fault("", "not an object", "write the whole object here"))
    faults = [*object_faults(form), *annotation_faults(form)]
    if not faults and group_of(form) in _OURS:
        remedy = "Leafcast's own objects stay at the centre; name another kind"
        faults = [Fault("apiVersion", f'"{form["apiVersion"]}" is not delivered', remedy)]
    if faults:
        raise Faulty(*faults)
    return form


class DenaturedSpec(ApiValue):
    """The whole object, as it is to be at destinations."""

    template: Annotated[
        Mapping[str, Any], PlainValidator(_template), WithJsonSchema({"type": "object"})
    ]
    """The whole object, with apiVersion, kind and metadata, as it is to be at destinations.
    Placements select it by its own group, resource, namespace, name and labels, not by those of
    the Denatured."""


class Denatured(NamedObject):
    """An object that would act in its own space, such as a webhook configuration.

    Here it is inert; destinations get the object of its template.
    """

    api_version: Literal["leafcast.io/v1alpha1"]
    kind: Literal["Denatured"]
    spec: DenaturedSpec
    """The object that it holds."""
    status: JudgedStatus | None = None
    """What is wrong with it. Leafcast writes it."""
