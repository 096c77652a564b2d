"""Statuses that a hub's API server does not take: which refusals pass by themselves, and the words.

Without them nobody would know why an object whose status is wanted back shows none.
"""

from __future__ import annotations

import re

from schemas.objects.objects import ObjectKey, kind_name
from schemas.reports.missing_rights import FORBIDDEN, missing_right
from schemas.values.faults import Fault
from schemas.values.wording import namespace_first

STATUS_REFUSED = "StatusRefused"
"""The reason of a condition that says so."""
_PASSING = frozenset(
    {
        "Conflict",
        "NotFound",
        "ServerTimeout",
        "ServiceUnavailable",
        "Timeout",
        "TooManyRequests",
    }
)
"""What a server says that is away, or busy, or that was told of an older object."""
_GRANT_ALL = "or those of all kinds: leafcast install --singleton-status any | kubectl apply -f -"
_GRANT_OWN = "or all that it needs: leafcast install | kubectl apply -f -"
_COMPARE = "compare its definition at the hub with the one at the edge"
_LOOK = "let the hub take it: see its policies and webhooks"
_DENIED = " denied "
_OF_OBJECT = re.compile(r'^\S+ "[^"]*" is (?:forbidden|invalid): ')


def passes(reason: str) -> bool:
    """Whether nobody need know of a refusal, as it is tried again and passes."""
    return reason in _PASSING


def unreturned(key: ObjectKey, reason: str, message: str) -> Fault:
    """That the hub refuses the status of an object that was to be returned, and what helps."""
    where = namespace_first(str(key))
    return _refused(where, "its status is not returned", reason, message, _GRANT_ALL)


def unwritten(about: str, reason: str, message: str) -> Fault:
    """That the hub refuses what the centre says of a placement itself."""
    return _refused(about, "its own status is not written", reason, message, _GRANT_OWN)


def _refused(where: str, what: str, reason: str, message: str, grant: str) -> Fault:
    right = missing_right(message) if reason == FORBIDDEN else None
    if right is None:
        # Without the object's name, so that what befalls many is told once.
        said = " ".join(_OF_OBJECT.sub("", message).replace("; ", ", ").split())
        remedy = _COMPARE if reason == "Invalid" and _DENIED not in said else _LOOK
        return Fault(where, f"{what}: the hub says {reason}: {said}", remedy)
    resource = right.resource.partition("/")[0]
    kind = kind_name(right.group, resource)
    of_group = f" of {right.group}" if right.group else ""
    part = "the status of " if "/" in right.resource else ""
    return Fault(
        where,
        f"{what}: the centre may not {right.verb} {part}{kind}",
        f"let {right.user} patch {resource} and {resource}/status{of_group}, {grant}",
    )
