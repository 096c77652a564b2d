"""What a node holds, and what that waits for, as it says it at its own machine. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from relay.core.node_answers import node_answer, standing_answer
from relay.core.records.accepted import is_delta
from relay.core.view import NodeView
from schemas.records.placements import placement_of
from schemas.reports.reports import ExceptionSample
from schemas.values.identity import MailKey

CHILDREN_MAX = 200

Json = dict[str, Any]


def placement_keys(node: NodeView) -> list[MailKey]:
    """The placements that the node holds."""
    return sorted(key for key, held in node.records.items() if is_delta(held))


def placement_form(node: NodeView, key: MailKey) -> Json | None:
    """One of them, as it is here and below; None if the node let go of it meanwhile."""
    held = node.records.get(key)
    if held is None:
        return None
    count, source = node.count(key), held.record.source
    summary = count.summary
    return {
        "name": placement_of(source) or source.name,
        "generation": held.generation,
        "destinations": summary.joined,
        "never_joined": summary.never_joined,
        "states": dict(summary.states),
        "health": dict(summary.health),
        "exceptions": [_sample(it) for it in summary.exceptions],
        "complete": count.exact,
        "waitingFor": list(count.waiting_for),
        "here": standing_answer(node, {"placement": key}),
    }


def standing_form(node: NodeView, path: str) -> Json:
    """How it is with the node and its children, CHILDREN_MAX of these, who is silent first."""
    answer = node_answer(node, path)
    children = list(_children(answer.pop("children")))
    children.sort(key=lambda it: (it["silentSinceMs"] is None, it["inStep"], it["name"]))
    reached = node.snapshot_reached
    return {
        **answer,
        "snapshotMs": reached.time_ms if reached is not None else None,
        "children": children[:CHILDREN_MAX],
        "childCount": len(children),
        "maintenance": node.in_maintenance,
        "isDestination": node.has_profile,
    }


def _sample(said: ExceptionSample) -> Json:
    words = ("severity", "object", "reason", "count", "path")
    return {word: getattr(said, word) for word in words}


def _children(said: Json) -> Iterator[Json]:
    names = ("silentSinceMs", "inSession", "inStep", "left", "joined", "lag")
    for name, child in said.items():
        is_edge = bool(child["destination"])
        yield {"name": name, "isEdge": is_edge, **{it: child[it] for it in names}}
