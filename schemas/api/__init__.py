"""The API kinds of edge.kubestellar.io, control.kubestellar.io and leafcast.io, as checked values.

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
from schemas.api.policy import Binding, BindingPolicy, BindingPolicySpec, PolicyClause
from schemas.api.shared import (
    CONTROL_GROUP,
    CONTROL_GROUPS,
    CONTROL_VERSION,
    GROUP,
    OLDER_VERSION,
    VERSION,
    Condition,
    ObjectMeta,
)
from schemas.api.transform import CustomTransform

__all__ = [
    "CONTROL_GROUP",
    "CONTROL_GROUPS",
    "CONTROL_VERSION",
    "DENATURED_GROUP",
    "DENATURED_VERSION",
    "GROUP",
    "OLDER_VERSION",
    "PATH_ANNOTATION",
    "VERSION",
    "Binding",
    "BindingPolicy",
    "BindingPolicySpec",
    "Condition",
    "CustomTransform",
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
    "PolicyClause",
    "Replacement",
    "SinglePlacementSlice",
    "SyncTarget",
    "UpsyncSet",
    "parse_kind",
]
