"""In which order the objects of a placement are applied: by wave, then by kind.

The order is one number of a manifest entry. Without a wave it is the rank of the kind; a wave makes
it larger by a multiple, which holds the wave's sign, too, as numbers there are not negative.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from schemas.values.faults import Fault
from schemas.values.fields import mapping_at

WAVE = "leafcast.io/wave"
ARGO_WAVE = "argocd.argoproj.io/sync-wave"
"""Means the same; an object that bears both goes by ours."""
WAVE_MAX = 1_000_000
_RANKS = 32
# Namespaces hold all that is namespaced, definitions make kinds exist: they need nothing.
_FIRST_RANKS = 2  # the first two of `schemas.objects.objects.apply_order`
FIRST_WAVE = -WAVE_MAX - 1
"""The wave of Namespaces and definitions, whatever they say: before all others."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,7}\Z")


def wave_fault(obj: Mapping[str, Any]) -> Fault | None:
    """What is wrong with the wave that an object names; None if it names none, or a good one."""
    name, value = _said(obj)
    if not value or (_INTEGER.match(value) and abs(int(value)) <= WAVE_MAX):
        return None
    remedy = f'write an integer in quotes, such as "2", from -{WAVE_MAX} to {WAVE_MAX}'
    return Fault(f"metadata.annotations[{name}]", f'"{value}" is not a wave', remedy)


def order_of(rank: int, obj: Mapping[str, Any]) -> int:
    """The order of an object of a kind of this rank, whose wave has no fault."""
    wave = 0 if rank < _FIRST_RANKS else int(_said(obj)[1] or 0)
    return (2 * wave if wave >= 0 else -2 * wave - 1) * _RANKS + rank


def wave_of(order: int) -> int:
    """The wave that an order says: FIRST_WAVE of a Namespace or a definition."""
    folded, rank = divmod(order, _RANKS)
    if rank < _FIRST_RANKS:
        return FIRST_WAVE
    return folded // 2 if folded % 2 == 0 else -(folded + 1) // 2


def place_of(order: int) -> int:
    """Sorts orders: by wave, then by kind."""
    return wave_of(order) * _RANKS + order % _RANKS


def _said(obj: Mapping[str, Any]) -> tuple[str, str]:
    """The annotation that names the wave, and what it says; "" if there is none."""
    annotations = mapping_at(obj, "metadata", "annotations")
    for name in (WAVE, ARGO_WAVE):
        value = annotations.get(name)
        if isinstance(value, str) and value.strip():
            return name, value.strip()
    return WAVE, ""
