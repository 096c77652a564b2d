"""The aggregate of a status over destinations, as the object's own status says it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from controllers.core.status.job_statuses import JOBS, merged_job
from relay.core.collectors.aggregates import Aggregate, AggregateAlgebra
from relay.objects.merge import copied
from relay.objects.returned_generations import FIELD as IN_FORCE
from relay.objects.shortfalls import without_zeros
from relay.objects.status_merging import DEPLOYMENTS, has_conditions, known_numbers, worst_of
from schemas.objects.objects import ObjectKey
from schemas.values import codec, merging
from schemas.values.merging import CONDITIONS, FIELDS, MergeNode
from schemas.values.refusals import CodecError

_CONDITION_TEXTS = ("lastTransitionTime", "reason", "message")


def aggregated(key: ObjectKey, aggregates: Iterable[Aggregate]) -> dict[str, Any]:
    """The status of all copies; `{}` of none, and what the only one said of one.

    What cannot be merged is left out.
    """
    whole = AggregateAlgebra().merge(list(aggregates))
    if not whole.count:
        return {}
    if whole.status is not None:
        return _mapping(unpacked(whole.status))
    said = without_zeros(key, _mapping(_value(whole.merged, whole.count)))
    said.pop(IN_FORCE, None)
    for name in known_numbers(key):
        said.setdefault(name, 0)
    if has_conditions(key):
        found = said.get("conditions")
        said["conditions"] = [found] if isinstance(found, Mapping) else []
    if key.group_resource == DEPLOYMENTS:
        said["conditions"] = list(worst_of(_counted(whole.merged), whole.count))
    if key.group_resource == JOBS:
        said = merged_job(said, _counted(whole.merged))
    return said


def _counted(merged: MergeNode) -> Mapping[str, Any]:
    """How many conditions of a merged status say what."""
    node: MergeNode = merged[1].get("conditions", ()) if merged[0] == FIELDS else ()
    return _mapping(node[1]) if node[:1] == (CONDITIONS,) else {}


def _value(node: MergeNode, count: int) -> Any:
    match node:
        case (merging.FIELDS, fields):
            inner = {name: _value(item, count) for name, item in fields.items()}
            return {name: value for name, value in inner.items() if value is not None}
        case (merging.CONDITIONS, conditions):
            return [_condition(type_, item, count) for type_, item in sorted(conditions.items())]
        case (merging.FIRST, text):
            return _parsed(text)
        case (merging.DIFFER, *_):
            return None
        case _:
            return copied(node[1])


def _condition(type_: str, item: MergeNode, count: int) -> dict[str, str]:
    """False where any says so, True where all do; the texts of the latest transition."""
    false, true, _, texts = item
    status = "False" if false else "True" if true == count else "Unknown"
    said = {name: text for name, text in zip(_CONDITION_TEXTS, texts, strict=True) if text}
    return {"type": type_, "status": status, **said}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def unpacked(status: bytes) -> Any:
    """A returned status as JSON; None if it is none."""
    try:
        value = codec.unpack(status)
        codec.canonical(value)  # Who returned it may be anyone; a space takes JSON only.
    except CodecError:
        return None
    return copied(value)


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}
