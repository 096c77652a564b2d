"""The API kinds of edge.kubestellar.io/v2alpha1 and leafcast.io/v1alpha1: frozen, checked values.

`parse_kind` reads them; a field that is not known is reported by its path, never swallowed.
"""

from schemas.api.customizer import Customizer, Replacement
from schemas.api.denatured import DENATURED_GROUP, DENATURED_VERSION, Denatured
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
    "DENATURED_GROUP",
    "DENATURED_VERSION",
    "GROUP",
    "PATH_ANNOTATION",
    "VERSION",
    "Condition",
    "Customizer",
    "Denatured",
    "Destination",
    "DownsyncClause",
    "EdgePlacement",
    "EdgePlacementSpec",
    "EdgePlacementStatus",
    "Kind",
    "Location",
    "ObjectMeta",
    "Replacement",
    "SinglePlacementSlice",
    "SyncTarget",
    "UpsyncSet",
    "parse_kind",
]
