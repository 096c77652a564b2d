"""The conditions of a Deployment at several destinations as one: what kstatus and Helm wait by.

An edge says of each condition its type, status and reason as one key, so that relays count which
reasons were given without knowing what they mean; the centre chooses the worst.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

AVAILABLE, PROGRESSING, REPLICA_FAILURE = "Available", "Progressing", "ReplicaFailure"
MERGED = (AVAILABLE, PROGRESSING, REPLICA_FAILURE)
"""The conditions of a Deployment, in the order of the aggregate."""
_TOO_LATE, _DONE = "ProgressDeadlineExceeded", "NewReplicaSetAvailable"
_STATUSES = ("False", "Unknown", "True")
_TEXTS = ("lastTransitionTime", "reason", "message")

Counted = tuple[Any, ...]
"""How many say False, True and anything else, and the texts of the latest transition."""


def counted(item: Mapping[str, Any]) -> Counted:
    """One condition of one copy."""
    status = item["status"]
    counts = (int(status == "False"), int(status == "True"), int(status not in ("False", "True")))
    return (*counts, tuple(str(item.get(name) or "") for name in _TEXTS))


def by_reason(conditions: Any) -> dict[str, Counted]:
    """The conditions of one Deployment that are merged, each under its type, status and reason."""
    listed = conditions if isinstance(conditions, (list, tuple)) else ()
    return {
        f"{item['type']} {item['status']} {item.get('reason') or ''}": counted(item)
        for item in listed
        if isinstance(item, Mapping)
        and item.get("type") in MERGED
        and item.get("status") in _STATUSES
    }


def worst_of(said: Mapping[str, Counted], count: int) -> Iterator[dict[str, str]]:
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


def _rank(type_: str, status: str, reason: str, item: Counted) -> tuple[Any, ...]:
    """The least is the worst; then what is still going on, then the first by its texts."""
    order = _STATUSES if type_ != REPLICA_FAILURE else ("True", "Unknown", "False")
    return (reason != _TOO_LATE, order.index(status), reason == _DONE, item[3])
