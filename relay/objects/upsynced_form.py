"""An object as it comes up from an edge: what is there, without what says nothing of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.objects.objects import LAST_APPLIED

_METADATA = ("managedFields", "resourceVersion", "selfLink")


def upsynced_form(obj: Mapping[str, Any]) -> dict[str, Any]:
    """The object with its status and its uid; what changes though nothing happened is left out."""
    metadata = {k: v for k, v in dict(obj.get("metadata") or {}).items() if k not in _METADATA}
    annotations = metadata.get("annotations")
    if isinstance(annotations, Mapping) and LAST_APPLIED in annotations:
        metadata["annotations"] = {k: v for k, v in annotations.items() if k != LAST_APPLIED}
    return {**obj, "metadata": metadata}


def version_of(obj: Mapping[str, Any]) -> str:
    """Another for each version of each object of this name."""
    metadata = obj.get("metadata") or {}
    return f"{metadata.get('uid', '')}/{metadata.get('resourceVersion', '')}"
