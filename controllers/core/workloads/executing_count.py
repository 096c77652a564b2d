"""The count of an object's copies, at the object itself while a placement wants its state back.

KubeStellar's first generation says it in an annotation, its second in a label; so an EdgePlacement
has the one, and a BindingPolicy the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from schemas.objects.objects import texts_of
from schemas.records.placements import EDGE_PLACEMENTS, kind_of

EXECUTING_COUNT = "kubestellar.io/executing-count"
_FIELDS = ("annotations", "labels")


def is_counted(obj: Mapping[str, Any]) -> bool:
    """Whether an object bears a count."""
    return any(_said(obj, field) is not None for field in _FIELDS)


def count_to_say(
    obj: Mapping[str, Any], count: int, placements: Iterable[str]
) -> dict[str, dict[str, str]] | None:
    """The parts of metadata by which an object is to say its count, asked for by these placements.

    None if it says just that already. Nobody asks: then there is nothing to be said.
    """
    asked = {"annotations" if kind_of(name) is EDGE_PLACEMENTS else "labels" for name in placements}
    if all(_said(obj, field) == (str(count) if field in asked else None) for field in _FIELDS):
        return None
    return {field: {EXECUTING_COUNT: str(count)} for field in sorted(asked)}


def _said(obj: Mapping[str, Any], field: str) -> object:
    return texts_of(obj, field).get(EXECUTING_COUNT)
