"""How the status of each kind is merged over destinations (kubestellar, multi-WEC aggregation)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from relay.objects.returned_generations import FIELD as IN_FORCE
from relay.objects.returned_generations import in_force_node, says_generations
from relay.objects.shortfalls import as_number, has_bare_numbers, shortfalls, with_zeros
from schemas.objects.objects import ObjectKey
from schemas.values.fields import mappings_at
from schemas.values.merging import ALL_TRUE, CONDITIONS, FIELDS, FIRST, LEAST, MOST, SAME, MergeNode


class _Rule:
    """The numbers of a kind: the least of these, the greatest of those; one sort of condition."""

    def __init__(
        self, least: str, most: str = "", condition: tuple[str, str] | None = None
    ) -> None:
        self.least, self.most = frozenset(least.split()), frozenset(most.split())
        self.condition = condition


DEPLOYMENTS = ("apps", "deployments")
_JOBS = ("batch", "jobs")
_RULES: Mapping[tuple[str, str], _Rule] = {
    DEPLOYMENTS: _Rule(
        "replicas updatedReplicas availableReplicas readyReplicas observedGeneration",
        "unavailableReplicas",
    ),
    ("apps", "replicasets"): _Rule(
        "replicas fullyLabeledReplicas readyReplicas availableReplicas observedGeneration",
        condition=("ReplicaFailure", ""),
    ),
    ("apps", "daemonsets"): _Rule(
        "currentNumberScheduled desiredNumberScheduled numberReady observedGeneration "
        "updatedNumberScheduled numberAvailable",
        "numberMisscheduled",
    ),
}
DEPTH_MAX = 16


def merging(key: ObjectKey, status: Any) -> MergeNode:
    """How the fields of an object's status are merged.

    Deployments, ReplicaSets and DaemonSets by the rules that users of the field know; of all others
    numbers by the least, booleans by AND, conditions by type, all else while it is the same. A
    number that a built-in kind leaves out is 0.
    """
    if not isinstance(status, Mapping):
        return (SAME, status)
    rule = _RULES.get(key.group_resource)
    if key.group_resource == _JOBS:
        return _of_job(key, status)
    if rule is None:
        _, fields_said = _generic(status, 0)
        return (FIELDS, with_zeros(key, fields_said))
    fields: dict[str, MergeNode] = {
        name: (op, as_number(status.get(name)))
        for op, names in ((LEAST, rule.least), (MOST, rule.most))
        for name in names
    }
    if key.group_resource == DEPLOYMENTS:
        fields["conditions"] = (CONDITIONS, by_reason(status.get("conditions")))
    type_, reason = rule.condition or ("", "")
    for condition in mappings_at(status, "conditions"):
        if type_ and condition.get("type") == type_ and reason in ("", condition.get("reason")):
            fields["conditions"] = (FIRST, json.dumps(condition, sort_keys=True))
            break
    return (FIELDS, fields)


def _of_job(key: ObjectKey, status: Mapping[str, Any]) -> MergeNode:
    """As of other kinds, but that it began when the first did."""
    _, fields = _generic(status, 0)
    if isinstance(began := status.get("startTime"), str):
        fields = {**fields, "startTime": (FIRST, json.dumps(began))}
    return (FIELDS, with_zeros(key, fields))


def counts_without_status(key: ObjectKey) -> bool:
    """Whether a copy that says nothing counts: as one that has none of what is counted."""
    return key.group_resource in _RULES or has_bare_numbers(key)


def merging_of_copy(key: ObjectKey, status: Any, content: bytes, generation: int) -> MergeNode:
    """The same, and beside it whether the copy holds the `content` that was sent, or b"".

    `generation` is the copy's own.
    """
    node = merging(key, status)
    if node[0] != FIELDS or not (says_generations(status) or counts_without_status(key)):
        return node
    _, beside = in_force_node(status, content, generation)
    beside = (FIELDS, {**beside, **shortfalls(key, status)})
    return (FIELDS, {**node[1], IN_FORCE: beside})


def known_numbers(key: ObjectKey) -> frozenset[str]:
    """The numbers that the aggregate of this kind always has: 0 where nobody says one."""
    rule = _RULES.get(key.group_resource)
    return rule.least | rule.most if rule is not None else frozenset()


def has_conditions(key: ObjectKey) -> bool:
    """Whether the aggregate of this kind always has a list of conditions."""
    rule = _RULES.get(key.group_resource)
    return rule is not None and rule.condition is not None


def _generic(value: Any, depth: int, name: str = "") -> MergeNode:
    match value:
        case bool():
            return (ALL_TRUE, value)
        case int() | float():
            return (LEAST, value)
        case Mapping() if depth < DEPTH_MAX:
            inner = {each: _generic(item, depth + 1, each) for each, item in value.items()}
            return (FIELDS, inner)
        case list() | tuple() if name == "conditions" and _are_conditions(value):
            return (CONDITIONS, {item["type"]: counted(item) for item in value})
        case _:
            return (SAME, value)


def _are_conditions(listed: Any) -> bool:
    return all(
        isinstance(item, Mapping)
        and isinstance(item.get("type"), str)
        and isinstance(item.get("status"), str)
        for item in listed
    )


AVAILABLE, PROGRESSING, REPLICA_FAILURE = "Available", "Progressing", "ReplicaFailure"
MERGED = (AVAILABLE, PROGRESSING, REPLICA_FAILURE)
"""The conditions of a Deployment, in the order of the aggregate."""
_TOO_LATE, _DONE = "ProgressDeadlineExceeded", "NewReplicaSetAvailable"
_STATUSES = ("False", "Unknown", "True")
_TEXTS = ("lastTransitionTime", "reason", "message")

CountedItem = tuple[Any, ...]
"""How many say False, True and anything else, and the texts of the latest transition."""


def counted(item: Mapping[str, Any]) -> CountedItem:
    """One condition of one copy."""
    status = item["status"]
    counts = (int(status == "False"), int(status == "True"), int(status not in ("False", "True")))
    return (*counts, tuple(str(item.get(name) or "") for name in _TEXTS))


def by_reason(conditions: Any) -> dict[str, CountedItem]:
    """The conditions of one Deployment that are merged, each under its type, status and reason.

    So relays count which reasons were given without knowing what they mean; the centre chooses.
    """
    listed = conditions if isinstance(conditions, (list, tuple)) else ()
    return {
        f"{item['type']} {item['status']} {item.get('reason') or ''}": counted(item)
        for item in listed
        if isinstance(item, Mapping)
        and item.get("type") in MERGED
        and item.get("status") in _STATUSES
    }


def worst_of(said: Mapping[str, CountedItem], count: int) -> Iterator[dict[str, str]]:
    """The conditions of `count` Deployments: each as the one that is worst off says it.

    True is what all say; of those that lack a condition nothing is known. A failure that nobody
    tells is none.
    """
    for type_ in MERGED:
        found = [(key.split(" ", 2), item) for key, item in said.items()]
        of_type = [
            (words[1], words[2], item)
            for words, item in found
            if len(words) == 3 and words[0] == type_ and words[1] in _STATUSES  # Anyone may say it.
        ]
        if not of_type:
            continue
        told = sum(sum(item[:3]) for *_, item in of_type)
        status, _, item = min(of_type, key=lambda each: _rank(type_, *each))
        if type_ != REPLICA_FAILURE and status == "True" and told < count:
            message = f"{count - told} of {count} copies do not say"
            yield {"type": type_, "status": "Unknown", "reason": "NotReported", "message": message}
            continue
        texts = zip(_TEXTS, item[3], strict=True)
        yield {"type": type_, "status": status, **{name: text for name, text in texts if text}}


def _rank(type_: str, status: str, reason: str, item: CountedItem) -> tuple[Any, ...]:
    """The least is the worst; then what is still going on, then the first by its texts."""
    order = _STATUSES if type_ != REPLICA_FAILURE else ("True", "Unknown", "False")
    return (reason != _TOO_LATE, order.index(status), reason == _DONE, item[3])
