"""What a server says of the kinds it serves: both forms of discovery, as kinds.

A kind is said once, by the version of its group that comes first among those that serve it: that
is the one kubectl would take.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from relay.ports import Kind
from schemas.values.fields import list_at, mapping_at, mappings_at

AGGREGATED = "APIGroupDiscoveryList"
_NEEDED = frozenset(("get", "list"))


@dataclass(frozen=True, slots=True)
class ServedResource:
    """One resource as one version of its group serves it."""

    kind: Kind
    has_status: bool


@dataclass(frozen=True, slots=True)
class GroupVersion:
    """A version of a group: `served` is None if the server could not tell what is in it."""

    group: str
    version: str
    served: tuple[ServedResource, ...] | None


def aggregated(document: Mapping[str, Any]) -> Iterator[GroupVersion]:
    """Read an APIGroupDiscoveryList; versions come in the server's order of preference."""
    for item in mappings_at(document, "items"):
        group = str(mapping_at(item, "metadata").get("name") or "")
        for form in mappings_at(item, "versions"):
            version = str(form.get("version") or "")
            served = tuple(_aggregated_resources(group, version, form))
            stale = form.get("freshness") == "Stale"
            yield GroupVersion(group, version, None if stale and not served else served)


def groups(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Read an APIGroupList, or an APIVersions: each group's versions, the preferred one first."""
    for version in list_at(document, "versions"):
        yield "", str(version)
    for item in mappings_at(document, "groups"):
        preferred = mapping_at(item, "preferredVersion").get("version")
        named = [str(form.get("version") or "") for form in mappings_at(item, "versions")]
        for version in sorted(named, key=lambda version: version != preferred):
            yield str(item.get("name") or ""), version


def resources(group: str, version: str, document: Mapping[str, Any]) -> GroupVersion:
    """Read an APIResourceList."""
    items = mappings_at(document, "resources")
    names = {str(item.get("name")) for item in items}
    served = tuple(
        ServedResource(_kind(group, version, name, item, has_status=has), has)
        for item in items
        if "/" not in (name := str(item.get("name")))
        for has in (f"{name}/status" in names,)
    )
    return GroupVersion(group, version, served)


def preferred(found: Iterable[GroupVersion]) -> tuple[Kind, ...]:
    """Each kind that can be read, once, sorted, with all versions that serve it."""
    kinds: dict[tuple[str, str], Kind] = {}
    versions: dict[tuple[str, str], list[str]] = {}
    for part in found:
        for served in part.served or ():
            if served.kind.verbs >= _NEEDED:
                key = served.kind.group_resource
                kinds.setdefault(key, served.kind)
                versions.setdefault(key, []).append(part.version)
    return tuple(replace(kinds[key], versions=tuple(versions[key])) for key in sorted(kinds))


def _aggregated_resources(
    group: str, version: str, form: Mapping[str, Any]
) -> Iterator[ServedResource]:
    for item in mappings_at(form, "resources"):
        name = str(item.get("resource") or "")
        kind = mapping_at(item, "responseKind").get("kind")
        if not name or not isinstance(kind, str) or not kind:
            continue
        parts = [part.get("subresource") for part in mappings_at(item, "subresources")]
        said = {**item, "kind": kind, "namespaced": item.get("scope") == "Namespaced"}
        has_status = "status" in parts
        yield ServedResource(_kind(group, version, name, said, has_status=has_status), has_status)


def _kind(
    group: str, version: str, resource: str, item: Mapping[str, Any], *, has_status: bool
) -> Kind:
    return Kind(
        group=group,
        version=version,
        resource=resource,
        kind=str(item.get("kind") or ""),
        namespaced=bool(item.get("namespaced")),
        verbs=frozenset(verb for verb in list_at(item, "verbs") if isinstance(verb, str)),
        has_status=has_status,
    )
