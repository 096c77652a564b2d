"""Placements by name, whichever kind says them.

An EdgePlacement goes by its own name, a BindingPolicy by `bindingpolicy/NAME`: one name in both
kinds is two placements. People may say a name alone of either kind; who means the EdgePlacement
and nothing else says `edgeplacement/NAME`.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING

from schemas.values.groups import API_PLACEMENT, API_POLICY, CONTROL_GROUP, GROUP

if TYPE_CHECKING:
    from schemas.objects.objects import ObjectKey
    from schemas.records.records import Source


@dataclass(frozen=True, slots=True)
class PlacementKind:
    """A kind of placement; `result` is the resource of the objects that say where it goes.

    `selectors` is the field of its spec that says so.
    """

    kind: str
    short: str
    group: str
    resource: str
    result: str
    api: str
    prefix: str
    selectors: str

    def named(self, name: str) -> str:
        """The placement of this kind whose metadata.name it is."""
        return f"{self.prefix}{name}"

    def said(self, name: str) -> str:
        """That placement as someone says it who means no other kind; see `meant`."""
        return f"{self.kind.lower()}/{name}"


EDGE_PLACEMENTS = PlacementKind(
    "EdgePlacement",
    "epl",
    GROUP,
    "edgeplacements",
    "singleplacementslices",
    API_PLACEMENT,
    "",
    "locationSelectors",
)
BINDING_POLICIES = PlacementKind(
    "BindingPolicy",
    "bp",
    CONTROL_GROUP,
    "bindingpolicies",
    "bindings",
    API_POLICY,
    "bindingpolicy/",
    "clusterSelectors",
)
KINDS = (EDGE_PLACEMENTS, BINDING_POLICIES)

_SPACE_CHARACTERS = 8
_BY_RESOURCE = {(kind.group, kind.resource): kind for kind in KINDS}
_BY_RESULT = {(kind.group, kind.result): kind for kind in KINDS}
_BY_API = {kind.api: kind for kind in KINDS}


def kind_of(placement: str) -> PlacementKind:
    """The kind of a placement."""
    return BINDING_POLICIES if placement.startswith(BINDING_POLICIES.prefix) else EDGE_PLACEMENTS


def bare_name(placement: str) -> str:
    """Its metadata.name."""
    return placement.removeprefix(kind_of(placement).said(""))


def title(placement: str) -> str:
    """`edgeplacement/shop`, `bindingpolicy/shop`."""
    return f"{kind_of(placement).kind.lower()}/{bare_name(placement)}"


def short_title(placement: str) -> str:
    """`epl/shop`, `bp/shop`: as commands take it."""
    return f"{kind_of(placement).short}/{bare_name(placement)}"


def long_title(placement: str) -> str:
    """`edgeplacement.edge.kubestellar.io/shop`, as kubectl prints it."""
    kind = kind_of(placement)
    return f"{kind.kind.lower()}.{kind.group}/{bare_name(placement)}"


def placement_key(placement: str) -> ObjectKey:
    """Where it lies in its space."""
    kind = kind_of(placement)
    # Here, as those who only name placements need no objects.
    from schemas.objects.objects import ObjectKey  # noqa: PLC0415

    return ObjectKey(kind.group, kind.resource, "", bare_name(placement))


def result_key(placement: str) -> ObjectKey:
    """Where the object lies that says where it goes: a SinglePlacementSlice, or a Binding."""
    kind = kind_of(placement)
    from schemas.objects.objects import ObjectKey  # noqa: PLC0415

    return ObjectKey(kind.group, kind.result, "", bare_name(placement))


def placement_at(key: ObjectKey) -> str | None:
    """The placement that lies there; None of what is no placement."""
    kind = _BY_RESOURCE.get(key.group_resource)
    return kind.named(key.name) if kind else None


def placement_with_result(key: ObjectKey) -> str | None:
    """The placement of which this object says where it goes; None of what is no such object."""
    kind = _BY_RESULT.get(key.group_resource)
    return kind.named(key.name) if kind else None


def placement_of(source: Source) -> str | None:
    """The placement that a record is of; None of what is no placement's."""
    kind = _BY_API.get(source.api)
    return kind.named(source.name) if kind else None


def source_title(source: Source) -> str:
    """What people call a record's placement: `edgeplacement/shop of space 1a2b3c4d`."""
    name = title(placement_of(source) or source.name)
    return f"{name} of space {source.space[:_SPACE_CHARACTERS]}"


def placement_kind(group: str, resource: str) -> PlacementKind | None:
    """The kind of placements that objects of this kind are; None if they are none."""
    return _BY_RESOURCE.get((group, resource))


def said_placement(said: str) -> str:
    """A text like `bp/shop` as `meant` takes it; a name alone stays as it is."""
    word, slash, name = said.partition("/")
    for kind in KINDS if slash else ():
        if word.lower() in (kind.short, kind.kind.lower(), kind.resource):
            return kind.said(name)
    return said


def meant(name: str, known: Container[str]) -> str:
    """The placement of these that someone means: by name alone an EdgePlacement, else a policy."""
    name = said_placement(name)
    if name.startswith(EDGE_PLACEMENTS.said("")):
        return bare_name(name)
    policy = BINDING_POLICIES.named(name)
    return policy if name not in known and policy in known else name
