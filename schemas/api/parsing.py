"""From a mapping to an API kind, or to every fault in it with its path and remedy."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from schemas.api.collectors import CombinedStatus, StatusCollector
from schemas.api.customizer import Customizer
from schemas.api.denatured import Denatured
from schemas.api.health_rule import HealthRule
from schemas.api.inventory import Location, SyncTarget
from schemas.api.leafcast_release import LeafcastRelease
from schemas.api.placement import EdgePlacement, SinglePlacementSlice
from schemas.api.policy import Binding, BindingPolicy
from schemas.api.rollout_status import Rollout
from schemas.api.shared import api_group_of
from schemas.api.transform import CustomTransform
from schemas.objects.objects import object_faults, served_versions, title_of
from schemas.values.alike import most_alike
from schemas.values.faults import Fault, Faulty, InvalidObject
from schemas.values.wording import value_text

OwnKind = (
    Location
    | SyncTarget
    | EdgePlacement
    | SinglePlacementSlice
    | BindingPolicy
    | Binding
    | CustomTransform
    | Customizer
    | Denatured
    | HealthRule
    | LeafcastRelease
    | Rollout
    | StatusCollector
    | CombinedStatus
)

_KINDS: Mapping[tuple[str, str], type[OwnKind]] = {
    (api_group_of(model), model.__name__): model for model in typing.get_args(OwnKind)
}
_EXPECTED: Mapping[str, tuple[str, str]] = {
    "bool_type": ("a boolean", "write true or false"),
    "dict_type": ("a mapping", "write key: value"),
    "int_type": ("an integer", "write it without quotes"),
    "mapping_type": ("a mapping", "write key: value"),
    "model_type": ("a mapping", "write its fields"),
    "string_type": ("a string", "quote it"),
    "tuple_type": ("a list", "write it as a list"),
}
# `object_faults` has said what is wrong with these.
_CHECKED_ALREADY = (
    "apiVersion",
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
)
# What the fields are called in the API of the other kind of placement.
_OTHER_NAMES = {
    "clusterSelectors": "locationSelectors",
    "labelSelectors": "objectSelectors",
    "locationSelectors": "clusterSelectors",
    "objectSelectors": "labelSelectors",
}


def parse_kind(obj: Mapping[str, Any]) -> OwnKind | None:
    """Read an object of one of our kinds; None for other kinds. Raises InvalidObject."""
    group, slash, version = str(obj.get("apiVersion", "")).partition("/")
    kind = obj.get("kind")
    model = _KINDS.get((group, kind)) if isinstance(kind, str) and slash else None
    if model is None:
        return None
    if unsayable := list(_unsayable(obj)):
        kind_, name = title_of(obj)
        raise InvalidObject(_sayable(kind_), _sayable(name), unsayable)
    faults = {fault.path: fault for fault in object_faults(obj)}
    versions = served_versions(group, str(kind))
    if version not in versions:
        remedy = f"write {group}/{versions[0]}"
        faults["apiVersion"] = Fault("apiVersion", f'version "{version}" is not served', remedy)
    parsed: OwnKind | None = None
    try:
        parsed = model.model_validate(_without_nulls(obj), by_alias=True, by_name=False)
    except ValidationError as error:
        for fault in _faults_of(model, error.errors(include_url=False)):
            faults.setdefault(fault.path, fault)
    if faults:
        raise InvalidObject(*title_of(obj), faults.values())
    return parsed


def parse_wish(obj: Mapping[str, Any]) -> OwnKind | None:
    """The same, whatever the status says, which users do not write."""
    return parse_kind({field: value for field, value in obj.items() if field != "status"})


def _unsayable(form: Any, path: str = "") -> Iterator[Fault]:
    """Texts that have no form in UTF-8: with half of a surrogate pair."""
    if isinstance(form, Mapping):
        for key, item in form.items():
            inside = f"{path}.{key}" if path else str(key)
            yield from _unsayable(str(key), inside)
            yield from _unsayable(item, inside)
    elif isinstance(form, list | tuple):
        for at, item in enumerate(form):
            yield from _unsayable(item, f"{path}[{at}]")
    elif isinstance(form, str) and _sayable(form) != form:
        yield Fault(_sayable(path), "half of a surrogate pair is no character", "leave it out")


def _sayable(text: str) -> str:
    return text.encode(errors="replace").decode()


def _without_nulls(form: Any) -> Any:
    # In Kubernetes a field that is null is a field that is not given.
    if isinstance(form, Mapping):
        return {key: _without_nulls(item) for key, item in form.items() if item is not None}
    if isinstance(form, list):
        return [_without_nulls(item) for item in form]
    return form


def _faults_of(model: type[BaseModel], errors: Iterable[ErrorDetails]) -> Iterator[Fault]:
    for error in errors:
        path = _path(error["loc"])
        cause = error.get("ctx", {}).get("error")
        if isinstance(cause, Faulty):
            yield from (fault.below(path) for fault in cause.faults)
        elif error["type"] == "extra_forbidden":
            yield Fault(path, "unknown field", _suggestion(model, error["loc"]))
        elif not path.startswith(_CHECKED_ALREADY):
            yield _fault_of(path, error)


def _fault_of(path: str, error: ErrorDetails) -> Fault:
    shown = value_text(error["input"])
    match error["type"]:
        case "missing":
            return Fault(path, "missing", "it is required")
        case "literal_error":
            expected = error["ctx"]["expected"].replace("'", "")
            return Fault(path, f"{shown} is not allowed", f"write {expected}")
        case "too_long" if "actual_length" in error["ctx"]:
            found, most = error["ctx"]["actual_length"], error["ctx"]["max_length"]
            remedy = "list fewer, or say the others in another object"
            return Fault(path, f"{found} are listed, at most {most} may be", remedy)
        case "too_short":
            return Fault(path, "empty", "list at least one")
        case str(type_) if type_ in _EXPECTED:
            what, remedy = _EXPECTED[type_]
            return Fault(path, f"{shown} is not {what}", remedy)
        case _:
            return Fault(path, f"{shown} is out of bounds", error["msg"].lower())


def _path(location: Sequence[str | int]) -> str:
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return "".join(parts).removeprefix(".")


def _suggestion(model: type[BaseModel], location: Sequence[str | int]) -> str:
    holder = _annotation_at(model, location[:-1])
    known = sorted(_aliases(holder)) if _is_model(holder) else []
    wrong = str(location[-1])
    if _OTHER_NAMES.get(wrong) in known:
        return f'did you mean "{_OTHER_NAMES[wrong]}"?'
    if below := [field for field in known if wrong in _aliases_below(holder, field)]:
        return f"it stands in each of {below[0]}: write it there"
    folded = (name for name in known if name.lower() == wrong.replace("_", "").lower())
    if close := next(folded, "") or most_alike(wrong, known):
        return f'did you mean "{close}"?'
    return f"use {', '.join(known)}" if known else ""


def _annotation_at(model: type[BaseModel], location: Sequence[str | int]) -> Any:
    current: Any = model
    for part in location:
        if isinstance(part, int):
            current = _unwrapped(typing.get_args(current)[0])
        elif _is_model(current) and part in _aliases(current):
            current = _unwrapped(_aliases(current)[part])
        else:
            return None
    return current


def _aliases(model: type[BaseModel]) -> dict[str, Any]:
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def _aliases_below(model: type[BaseModel], field: str) -> Iterable[str]:
    """The fields of the items of a list that is a field of the model."""
    items = typing.get_args(_unwrapped(_aliases(model)[field]))
    item = _unwrapped(items[0]) if items else None
    return _aliases(item) if isinstance(item, type) and issubclass(item, BaseModel) else ()


def _unwrapped(annotation: Any) -> Any:
    """Look through Annotated and optional types."""
    while True:
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is typing.Annotated:
            annotation = arguments[0]
        elif origin in (types.UnionType, typing.Union):
            annotation = next(item for item in arguments if item is not type(None))
        else:
            return annotation


def _is_model(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
