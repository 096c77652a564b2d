"""What a Secret holds, left out where others than its readers would see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.objects.objects import LAST_APPLIED, texts_of

_SECRET = ("v1", "Secret")
_FIELDS = ("data", "stringData")


def without_secret_values(obj: Any, instead: str = "") -> Any:
    """The object, of a Secret one with this instead of each value; what comes in stays as it is."""
    if not isinstance(obj, Mapping) or (obj.get("apiVersion"), obj.get("kind")) != _SECRET:
        return obj
    said = {
        name: dict.fromkeys(obj[name], instead)
        for name in _FIELDS
        if isinstance(obj.get(name), Mapping)
    }
    annotations = texts_of(obj, "annotations")
    if LAST_APPLIED not in annotations:
        return {**obj, **said}
    kept = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    return {**obj, **said, "metadata": {**obj["metadata"], "annotations": kept}}
