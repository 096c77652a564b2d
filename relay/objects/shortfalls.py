"""What a DaemonSet lacks at the copy that lacks most: the least of each number does not tell.

Clusters have as many Nodes as they have. Of 5 of 10 updated and 3 of 3 the least are 3 of 3, by
which a tool that waits is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from schemas.merging import FIELDS, MOST, Node
from schemas.objects import ObjectKey

SHORT = "short"
_WHOLE = "desiredNumberScheduled"
_PARTS = ("currentNumberScheduled", "updatedNumberScheduled", "numberReady", "numberAvailable")
_DAEMON_SETS = ("apps", "daemonsets")


def shortfalls(key: ObjectKey, status: Any) -> dict[str, Node]:
    """By how much each number of one copy is below what is wanted of it; nothing of other kinds."""
    if key.group_resource != _DAEMON_SETS or not isinstance(status, Mapping):
        return {}
    whole = _number(status.get(_WHOLE))
    lacking = {name: (MOST, max(whole - _number(status.get(name)), 0)) for name in _PARTS}
    return {SHORT: (FIELDS, lacking)}


def lessened(status: Mapping[str, Any], short: Mapping[str, Any]) -> dict[str, Any]:
    """The merge of several, in which no number says that less is lacking than one copy lacks."""
    told, lacking = dict(status), dict[str, int]()
    for name in _PARTS:
        match short.get(name):
            case (int(op), int(number)) if op == MOST and isinstance(told.get(name), int):
                lacking[name] = number
    if not isinstance(told.get(_WHOLE), int) or not any(lacking.values()):
        return told
    told[_WHOLE] = max(told[_WHOLE], *lacking.values())
    for name, number in lacking.items():
        told[name] = max(min(told[name], told[_WHOLE] - number), 0)
    return told


def _number(said: Any) -> int:
    return said if isinstance(said, int) and not isinstance(said, bool) else 0
