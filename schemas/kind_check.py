"""Whether an object of one of our kinds is one, checked without loading what others do not need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from schemas.objects.objects import group_of
from schemas.values.groups import CONTROL_GROUPS, DENATURED_GROUP

if TYPE_CHECKING:
    from schemas.api.parsing import OwnKind

_OURS = CONTROL_GROUPS | {DENATURED_GROUP}


def parse_own_kind(obj: Mapping[str, Any]) -> OwnKind | None:
    """Its model, or None of what is not of our kinds; raises InvalidObject, with every fault."""
    if group_of(obj) not in _OURS:
        return None
    # Here, as building the models takes 0.1 s, and most objects are of other groups.
    from schemas.api.parsing import parse_kind  # noqa: PLC0415

    return parse_kind(obj)
