"""What users of the field know and Leafcast does not do yet, by name, so that it can say so.

One table of each sort: once something is there, its entry is taken out, and that is all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_GROUPS = ("edge.kubestellar.io", "control.kubestellar.io")

_KINDS: Mapping[str, str] = {
    "Binding": "say what goes where as an EdgePlacement",
    "BindingPolicy": "say what goes where as an EdgePlacement",
    "CustomTransform": "objects go out as they are, cleaned",
}
"""Kinds of these groups, and what there is instead."""

_PLACEMENT_FIELDS = ("upsync",)


def kind_not_supported(group: str, kind: str) -> str:
    """That a kind does nothing yet, and what there is instead; "" of all others."""
    if group not in _GROUPS or kind not in _KINDS:
        return ""
    return f"{kind} is not supported yet; {_KINDS[kind]}"


def fields_not_supported(spec: Mapping[str, Any]) -> Iterator[str]:
    """The fields of an EdgePlacement's spec, as written, that say something and do nothing yet."""
    yield from (f"spec.{field}" for field in _PLACEMENT_FIELDS if spec.get(field))
