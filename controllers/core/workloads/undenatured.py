"""Objects that act on the API server where they lie: there they belong into a Denatured."""

from __future__ import annotations

from collections.abc import Iterable

from controllers.core.workloads.denature import DENATURED_KINDS
from controllers.core.workloads.space import Workloads
from schemas.objects.annotations import KEEP_AT_HOME
from schemas.objects.objects import ObjectKey
from schemas.values.wording import some_of

NAMED_MAX = 4


def undenatured(workloads: Workloads, placement: str) -> tuple[ObjectKey, ...]:
    """What a placement selects that lies there plainly and acts, in the order of these kinds."""
    there = [key for kind in DENATURED_KINDS for key in sorted(workloads.resolver.of_kind(kind))]
    selected = workloads.resolver.selection(placement) if there else {}
    return tuple(key for key in there if key in selected and not workloads.renatured.holds(key))


def undenatured_text(keys: Iterable[ObjectKey]) -> str:
    """That these act where they lie, and what to do; "" of none."""
    named = [str(key) for key in keys]
    if not named:
        return ""
    verb = "acts" if len(named) == 1 else "act"
    remedy = (
        "put each into a leafcast.io/v1alpha1 Denatured (leafcast denature), and delete it here; "
        f'what is meant for the hub itself stays there by the annotation {KEEP_AT_HOME}: "true"'
    )
    return f"{some_of(named, NAMED_MAX)} {verb} on the hub itself; {remedy}"
