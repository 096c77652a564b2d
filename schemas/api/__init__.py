"""The API kinds of group edge.kubestellar.io, version v2alpha1, as frozen, checked values.

`parse_kind` reads them; a field that is not known is reported by its path, never swallowed.
"""

from schemas.api.inventory import PATH_ANNOTATION, Location, SyncTarget
from schemas.api.parsing import Kind, parse_kind
from schemas.api.placement import (
    Destination,
    DownsyncClause,
    EdgePlacement,
    EdgePlacementSpec,
    EdgePlacementStatus,
    SinglePlacementSlice,
    UpsyncSet,
)
from schemas.api.shared import GROUP, VERSION, Condition, ObjectMeta

__all__ = [
    "GROUP",
    "PATH_ANNOTATION",
    "VERSION",
    "Condition",
    "Destination",
    "DownsyncClause",
    "EdgePlacement",
    "EdgePlacementSpec",
    "EdgePlacementStatus",
    "Kind",
    "Location",
    "ObjectMeta",
    "SinglePlacementSlice",
    "SyncTarget",
    "UpsyncSet",
    "parse_kind",
]
