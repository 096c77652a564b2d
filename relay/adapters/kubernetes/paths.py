"""Paths and queries of an API server, as values."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote

from relay.space_port import Kind

JSON = "application/json"
APPLY = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
METADATA = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
METADATA_LIST = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
_DISCOVERY = "g=apidiscovery.k8s.io;as=APIGroupDiscoveryList"
DISCOVERY = f"{JSON};{_DISCOVERY};v=v2,{JSON};{_DISCOVERY};v=v2beta1;q=0.9,{JSON};q=0.8"


def group_version(group: str, version: str) -> str:
    """What an object of it says as its apiVersion."""
    return f"{group}/{version}" if group else version


def version_path(group: str, version: str) -> str:
    """Where a version of a group begins."""
    return f"/apis/{_part(group)}/{_part(version)}" if group else f"/api/{_part(version)}"


def collection_path(kind: Kind, namespace: str = "") -> str:
    """All objects of a kind, or those of one namespace."""
    inside = f"/namespaces/{_part(namespace)}" if namespace and kind.namespaced else ""
    return f"{version_path(kind.group, kind.version)}{inside}/{_part(kind.resource)}"


def object_path(kind: Kind, namespace: str, name: str, subresource: str = "") -> str:
    """One object, or a part of it that is written on its own."""
    below = f"/{subresource}" if subresource else ""
    return f"{collection_path(kind, namespace)}/{_part(name)}{below}"


def with_query(path: str, query: Iterable[tuple[str, str]]) -> str:
    """The path with what is asked of it; empty values are left out."""
    given = "&".join(f"{name}={_quoted(value, '')}" for name, value in query if value)
    return f"{path}?{given}" if given else path


def _part(text: str) -> str:
    return _quoted(text, ":")


def _quoted(text: str, safe: str) -> str:
    # Most have nothing to quote, and to look for it takes ten times as long.
    plain = text.isascii() and text.replace("-", "").isalnum()
    return text if plain else quote(text, safe=safe)
