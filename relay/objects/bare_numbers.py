"""Numbers that built-in kinds leave out of a status where they are 0.

A copy of which such a number is missing has none of it: of 3 available and of none the least is 0.
"""

from __future__ import annotations

from collections.abc import Mapping

from schemas.objects.objects import ObjectKey
from schemas.values.merging import LEAST, Node

_REPLICAS = "readyReplicas availableReplicas observedGeneration"
_NUMBERS: Mapping[tuple[str, str], frozenset[str]] = {
    kind: frozenset(names.split())
    for kind, names in (
        (("", "replicationcontrollers"), f"replicas fullyLabeledReplicas {_REPLICAS}"),
        (("", "pods"), "observedGeneration"),
        (("apps", "statefulsets"), f"replicas currentReplicas updatedReplicas {_REPLICAS}"),
        (("autoscaling", "horizontalpodautoscalers"), "currentReplicas observedGeneration"),
        (("batch", "jobs"), "active ready succeeded failed terminating"),
        (("policy", "poddisruptionbudgets"), "observedGeneration"),
    )
}
_NONE: frozenset[str] = frozenset()


def with_zeros(key: ObjectKey, fields: Mapping[str, Node]) -> dict[str, Node]:
    """The fields of a copy's status, with the numbers that it leaves out."""
    zeros: dict[str, Node] = dict.fromkeys(_NUMBERS.get(key.group_resource, _NONE), (LEAST, 0))
    return {**zeros, **fields}


def without_zeros(key: ObjectKey, status: Mapping[str, object]) -> dict[str, object]:
    """The status as its kind says it: without the numbers that are 0."""
    left_out = _NUMBERS.get(key.group_resource, _NONE)
    return {
        name: value
        for name, value in status.items()
        if name not in left_out or isinstance(value, bool) or value != 0
    }


def has_bare_numbers(key: ObjectKey) -> bool:
    """Whether a copy without a status, as one that is not there, has none of what is counted."""
    return key.group_resource in _NUMBERS
