"""The properties of a destination: what its copies of objects may say of the place they are at.

Who says them, the first one first: the ConfigMap of the destination, its annotations, its labels,
and what is built in. For parameters, `%(name)`, labels go before annotations: both as KubeStellar
has them, in its second and its first generation. A Location that it belongs to speaks after the
SyncTarget itself.
"""

from __future__ import annotations

import base64
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from schemas.records.records import LocationRecord, Profile
from schemas.values.faults import Fault, Faulty
from schemas.values.groups import PROPERTIES_NAMESPACE

CLUSTER_NAME = "clusterName"
PARAMETER = "%"
"""Begins the name of a property where a parameter asks for it; no property's own name does."""
PROPERTIES_MAX_BYTES = 64 * 1024
"""Of the names and values in one ConfigMap: each profile travels through the whole tree."""
_PARAMETER_ORDER = ("data", "label", "annotation", "built in")
_SYSTEM = ("kubernetes.io", "k8s.io", "kcp.io", "kubestellar.io", "leafcast.io")


class PropertyLayer(NamedTuple):
    """What one speaker says."""

    # Such as `annotation`.
    kind: str
    # Such as `SyncTarget s-001`; empty of what is built in.
    source: str
    values: Mapping[str, str]

    @property
    def origin(self) -> str:
        return f"{self.kind} of {self.source}" if self.source else self.kind


class Clash(NamedTuple):
    """Two Locations that give one name different values; the first one counts."""

    # As it is asked for: `%name` of a parameter.
    name: str
    first: PropertyLayer
    other: PropertyLayer

    def __str__(self) -> str:
        name = self.name.removeprefix(PARAMETER)
        return (
            f'"{name}" is "{self.first.values[name]}" by {self.first.source} and '
            f'"{self.other.values[name]}" by {self.other.source}; the first by name counts'
        )


class Values(dict[str, str]):
    """What counts, by name; `get` says of `%name` what a parameter of that name becomes.

    Of those only the ones are held that a template would not become as well.
    """

    def get(self, name: str, default: Any = None) -> Any:
        value = super().get(name)
        if value is None and name.startswith(PARAMETER):
            value = super().get(name.removeprefix(PARAMETER))
        return default if value is None else value


@dataclass(frozen=True, slots=True)
class Properties:
    """The properties of one destination, by who says them; the first who does counts."""

    destination: str
    layers: tuple[PropertyLayer, ...]

    @property
    def values(self) -> Values:
        """What counts, for templates and for parameters."""
        found = Values(ChainMap(*(dict(layer.values) for layer in self.layers)))
        for name, value in ChainMap(*(dict(each.values) for each in self._of_parameters)).items():
            if value != found[name]:
                found[f"{PARAMETER}{name}"] = value
        return found

    @property
    def _of_parameters(self) -> list[PropertyLayer]:
        """The layers with labels before annotations."""
        return sorted(self.layers, key=lambda layer: _PARAMETER_ORDER.index(layer.kind))

    def layers_with(self, name: str) -> list[PropertyLayer]:
        """Who says a property, or `%name` of a parameter, the one that counts first."""
        plain = name.removeprefix(PARAMETER)
        layers = self.layers if plain == name else self._of_parameters
        return [layer for layer in layers if plain in layer.values]

    def clashes(self) -> Iterator[Clash]:
        """What two Locations say otherwise of the same, where nobody else decides it."""
        names = sorted({name for layer in self.layers for name in layer.values})
        for name in names:
            yield from self._clash(name, name)
            yield from self._clash(f"{PARAMETER}{name}", name)

    def _clash(self, asked: str, name: str) -> Iterator[Clash]:
        first, *others = self.layers_with(asked)
        if not first.source.startswith("Location ") or _is_system(name):
            return
        for other in others:
            same_kind = other.kind == first.kind and other.source.startswith("Location ")
            if same_kind and other.values[name] != first.values[name]:
                yield Clash(asked, first, other)
                return


def properties_of(profile: Profile, locations: Iterable[LocationRecord]) -> Properties:
    """What is known of a destination; `locations` are those that it belongs to."""
    name = profile.source.name
    target = f"SyncTarget {name}"
    ordered = sorted(locations, key=lambda location: location.source.name)
    layers = [
        PropertyLayer("data", f"ConfigMap {PROPERTIES_NAMESPACE}/{name}", profile.properties),
        PropertyLayer("annotation", target, profile.annotations),
        *(PropertyLayer("annotation", _title(item), item.annotations) for item in ordered),
        PropertyLayer("label", target, profile.labels),
        *(PropertyLayer("label", _title(item), item.labels) for item in ordered),
        PropertyLayer("built in", "", {CLUSTER_NAME: name}),
    ]
    return Properties(name, tuple(layer for layer in layers if layer.values))


def read_properties(config_map: Mapping[str, Any]) -> dict[str, str]:
    """What a ConfigMap says of a destination; raises Faulty."""
    found: dict[str, str] = {}
    size = 0
    for field in ("data", "binaryData"):
        said = config_map.get(field) or {}
        if not isinstance(said, Mapping):
            raise Faulty(Fault(field, "not a mapping", "write name: value"))
        for name, value in said.items():
            text = _text(value, f"{field}[{name}]", encoded=field == "binaryData")
            size += _length(name, field) + _length(text, f"{field}[{name}]")
            found[name] = text
    if size > PROPERTIES_MAX_BYTES:
        message = f"{size} bytes of properties, at most {PROPERTIES_MAX_BYTES} can be sent"
        raise Faulty(Fault("data", message, "put what is large into an object of its own"))
    return found


def _text(value: object, field: str, *, encoded: bool) -> str:
    if not isinstance(value, str):
        raise Faulty(Fault(field, "not a string", "quote it"))
    if not encoded:
        return value
    try:
        return base64.b64decode(value, validate=True).decode()
    except ValueError as error:
        remedy = "a property is text: encode UTF-8, or write it under data"
        raise Faulty(Fault(field, "not text in base64", remedy)) from error


def _length(text: object, field: str) -> int:
    """How many bytes a text has."""
    try:
        return len(str(text).encode())
    except UnicodeEncodeError as error:
        raise Faulty(Fault(field, "not text", "write characters that UTF-8 has")) from error


def _title(location: LocationRecord) -> str:
    return f"Location {location.source.name}"


def _is_system(name: str) -> bool:
    """Whether a name is of those that programs write, and no one means as a property."""
    domain = name.rpartition("/")[0]
    return any(domain == one or domain.endswith(f".{one}") for one in _SYSTEM)
