"""Which nodes of a level need a look first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from schemas.reports.states import NEVER_JOINED

Form = Mapping[str, Any]

_STATES = ("revoked", "unreachable", "stale", "connecting", "unknown", "catching up", "stopped")
"""The states in which a node is not as it should be, the worst first."""


def rank(node: Form) -> tuple[int, int, int, int, int]:
    """The less, the worse it is with a node and with what lies below it."""
    state = str(node["state"])
    whole = node.get("destinations", 0)
    lacking = 2 * whole - node.get("synced", 0) - node.get("healthy", 0)
    return (
        _STATES.index(state) if state in _STATES else len(_STATES) + (state == NEVER_JOINED),
        -node.get("failing", 0),
        -node.get("degraded", 0),
        -node.get("unreachable", 0),
        -lacking - (not node.get("complete", True)),
    )


def worst_nodes_first(nodes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that are not as they should be, then those with trouble below; then by path."""
    return sorted(nodes, key=lambda node: (*rank(node), str(node["path"])))
