"""The API kinds of edge.kubestellar.io, control.kubestellar.io and leafcast.io, as checked values.

`parse_kind` reads them; a field that is not known is reported by its path, never swallowed.
"""

from schemas.api.collectors import CombinedStatus, StatusCollector
from schemas.api.customizer import Customizer, Replacement
from schemas.api.denatured import Denatured
from schemas.api.health_rule import HealthRule
from schemas.api.inventory import Location, SyncTarget
from schemas.api.parsing import Kind, parse_kind, parse_wish
from schemas.api.placement import (
    AS_WRITTEN,
    KUBESTELLAR,
    Cleaning,
    Destination,
    DownsyncClause,
    EdgePlacement,
    EdgePlacementSpec,
    EdgePlacementStatus,
    SinglePlacementSlice,
    UpsyncSet,
)
from schemas.api.placement_details import Hold
from schemas.api.policy import Binding, BindingPolicy, BindingPolicySpec, PolicyClause
from schemas.api.rollout_spec import RolloutSpec
from schemas.api.rollout_status import Rollout, RolloutStatus
from schemas.api.shared import Condition, ObjectMeta
from schemas.api.transform import CustomTransform
from schemas.values.groups import (
    CONTROL_GROUP,
    CONTROL_GROUPS,
    CONTROL_VERSION,
    DENATURED_GROUP,
    GROUP,
    PATH_ANNOTATION,
    VERSION,
)

__all__ = [
    "AS_WRITTEN",
    "CONTROL_GROUP",
    "CONTROL_GROUPS",
    "CONTROL_VERSION",
    "DENATURED_GROUP",
    "GROUP",
    "KUBESTELLAR",
    "PATH_ANNOTATION",
    "VERSION",
    "Binding",
    "BindingPolicy",
    "BindingPolicySpec",
    "Cleaning",
    "CombinedStatus",
    "Condition",
    "CustomTransform",
    "Customizer",
    "Denatured",
    "Destination",
    "DownsyncClause",
    "EdgePlacement",
    "EdgePlacementSpec",
    "EdgePlacementStatus",
    "HealthRule",
    "Hold",
    "Kind",
    "Location",
    "ObjectMeta",
    "PolicyClause",
    "Replacement",
    "Rollout",
    "RolloutSpec",
    "RolloutStatus",
    "SinglePlacementSlice",
    "StatusCollector",
    "SyncTarget",
    "UpsyncSet",
    "parse_kind",
    "parse_wish",
]
