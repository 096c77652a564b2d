"""What a workload lacks at the copy that lacks most: the least of each number does not tell.

Of 5 of 10 updated and 3 of 3 the least are 3 of 3, and of 2 new beside 1 old and 2 new they are 2
and 2: by these a tool that waits is done. What is wanted is raised to show what is lacking; where
tools compare with what the hub wants, what is there is lowered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.objects.objects import ObjectKey
from schemas.values.merging import FIELDS, LEAST, MOST, MergeNode

SHORT = "short"
_Pairs = tuple[tuple[str, str], ...]
_DESIRED = "desiredNumberScheduled"
_SCHEDULED = ("currentNumberScheduled", "updatedNumberScheduled", "numberReady", "numberAvailable")
_RAISED: Mapping[tuple[str, str], _Pairs] = {
    ("apps", "daemonsets"): tuple((name, _DESIRED) for name in _SCHEDULED),
    ("apps", "deployments"): (("updatedReplicas", "replicas"),),
}
_LOWERED: Mapping[tuple[str, str], _Pairs] = {
    ("apps", "deployments"): (("availableReplicas", "updatedReplicas"),),
    ("apps", "statefulsets"): tuple(
        (name, "replicas") for name in ("updatedReplicas", "readyReplicas", "availableReplicas")
    ),
}
"""By kind, a number and the one that it reaches in the end."""


def shortfalls(key: ObjectKey, status: Any) -> dict[str, MergeNode]:
    """How far each number of one copy is below the one that it reaches; for some kinds."""
    pairs = _RAISED.get(key.group_resource, ()) + _LOWERED.get(key.group_resource, ())
    if not pairs or not isinstance(status, Mapping):
        return {}
    lacking = {
        part: (MOST, max(as_number(status.get(whole)) - as_number(status.get(part)), 0))
        for part, whole in pairs
    }
    return {SHORT: (FIELDS, lacking)}


def with_shortfalls(
    key: ObjectKey, status: Mapping[str, Any], short: Mapping[str, Any]
) -> dict[str, Any]:
    """The merge of several, by which as much is lacking as one copy lacks."""
    told = dict(status)
    for part, whole in _RAISED.get(key.group_resource, ()):
        if lacking := _lacking(short.get(part)):
            told[whole] = max(as_number(told.get(whole)), as_number(status.get(part)) + lacking)
    for part, whole in _LOWERED.get(key.group_resource, ()):
        if lacking := _lacking(short.get(part)):
            # Nothing is less than none of it.
            told[whole] = max(as_number(told.get(whole)), lacking)
            told[part] = min(
                as_number(told.get(part)), max(as_number(status.get(whole)) - lacking, 0)
            )
    if key.group_resource in _LOWERED and "updatedReplicas" in told:
        # An API server takes no status by which more are up to date than there are.
        told["replicas"] = max(as_number(told.get("replicas")), as_number(told["updatedReplicas"]))
    return told


def _lacking(node: Any) -> int:
    match node:
        case (int(op), int(number)) if op == MOST:
            return number
        case _:
            return 0


def as_number(said: Any) -> int:
    """A number of a copy; one that is missing is 0."""
    return said if isinstance(said, int) and not isinstance(said, bool) else 0


_REPLICAS = "readyReplicas availableReplicas observedGeneration"
# Built-in kinds leave these out where they are 0; of 3 available and of none the least is 0.
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


def with_zeros(key: ObjectKey, fields: Mapping[str, MergeNode]) -> dict[str, MergeNode]:
    """The fields of a copy's status, with the numbers that it leaves out."""
    zeros: dict[str, MergeNode] = dict.fromkeys(_NUMBERS.get(key.group_resource, _NONE), (LEAST, 0))
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
