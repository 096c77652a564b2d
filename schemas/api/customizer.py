"""Customizer: what is replaced in objects that name it, at each destination on its own."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from schemas.api.shared import ApiObject, ApiValue, JudgedStatus, ListOf, check_each_once
from schemas.objects.json_paths import length_fault
from schemas.values.faults import Faulty

PATH_MAX = 1024
VALUE_MAX = 64 * 1024
REPLACEMENTS_MAX = 256


class Replacement(ApiValue):
    """One change of an object: what a JSONPath names becomes a value, which is JSON."""

    path: Annotated[str, Field(min_length=1, max_length=PATH_MAX)]
    """A JSONPath (RFC 9535) that names parts of the object, such as $.spec.replicas; a last
    field that is missing is made."""
    value: Annotated[str, Field(max_length=VALUE_MAX)]
    """What to put there, in JSON: a text has quotes of its own."""


class Customizer(ApiObject):
    """Replacements in the objects whose annotation edge.kubestellar.io/customizer names it."""

    kind: Literal["Customizer"]
    replacements: Annotated[ListOf[Replacement], Field(max_length=REPLACEMENTS_MAX)] = ()
    """What is replaced, in this order, after expressions were expanded in the object. With the
    annotation edge.kubestellar.io/expand-parameters: "true" on the Customizer its own paths and
    values are expanded first."""
    status: JudgedStatus | None = None
    """What is wrong with it. Leafcast writes it."""

    @model_validator(mode="after")
    def _each_path_once(self) -> Customizer:
        paths = [item.path for item in self.replacements]
        if fault := length_fault("replacements", paths):
            raise Faulty(fault)
        check_each_once("replacements[{}].path", paths)
        return self
