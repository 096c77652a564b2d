"""What a Secret holds, left out where others than its readers would see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_SECRET = ("v1", "Secret")
_FIELDS = ("data", "stringData")
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def without_secret_values(obj: Any) -> Any:
    """The object, of a Secret one whose values are empty texts; what comes in is never changed."""
    if not isinstance(obj, Mapping) or (obj.get("apiVersion"), obj.get("kind")) != _SECRET:
        return obj
    said = {name: dict.fromkeys(_map(obj.get(name)), "") for name in _FIELDS if name in obj}
    metadata = _map(obj.get("metadata"))
    annotations = _map(metadata.get("annotations"))
    if _LAST_APPLIED not in annotations:
        return {**obj, **said}
    kept = {key: value for key, value in annotations.items() if key != _LAST_APPLIED}
    return {**obj, **said, "metadata": {**metadata, "annotations": kept}}


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
