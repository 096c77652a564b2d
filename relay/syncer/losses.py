"""How soon an object is made again that is gone: at once at first, then ever more rarely.

Some controller may take it each time it is there; nobody tells which, but whoever writes to it is
known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relay.objects.ended import lifetime_field
from relay.objects.health import assess
from relay.syncer.object_marks import MANAGER, POLICY_MANAGER
from relay.syncer.observed import shortened
from relay.syncer.ownership import other_managers
from schemas.reports.reports import COUNT_MAX, Lost
from schemas.values.wording import some_of

FREE = 3
PAUSE_SECONDS_MIN, PAUSE_SECONDS_MAX = 30.0, 6 * 3600.0
CALM_SECONDS = 24 * 3600.0
"""What was there for so long is not lost in a row with what was lost before."""
NAMED_MAX = 3
_DOUBLINGS_MAX = 20


def lost_again(former: Lost | None, now_ms: int, by: str) -> Lost:
    """An object was gone, and is made again."""
    if former is None or not 0 <= now_ms - former.at_ms < CALM_SECONDS * 1000:
        return Lost(1, now_ms, by)
    return Lost(min(former.count + 1, COUNT_MAX), now_ms, by or former.by)


def pause_left(lost: Lost | None, now_ms: int) -> float:
    """The seconds for which an object that is gone is not made again."""
    if lost is None or lost.count < FREE or now_ms < lost.at_ms:
        return 0.0
    pause = PAUSE_SECONDS_MIN * 2.0 ** min(lost.count - FREE, _DOUBLINGS_MAX)
    return max(min(pause, PAUSE_SECONDS_MAX) - (now_ms - lost.at_ms) / 1000, 0.0)


def loss_text(lost: Lost, by: str, due: str) -> str:
    """That an object is taken again and again, by whom, and when it is made anew."""
    who = by or lost.by or "by whom is not known"
    return (
        f"Contended: deleted there again and again, {lost.count + 1} times so far: {who}; "
        f"it is made again at {due}"
    )


def taker(obj: Mapping[str, Any]) -> str:
    """What may have taken an object, by what it said of itself at last."""
    health, reason = assess({**obj, "metadata": {**obj["metadata"], "deletionTimestamp": None}})
    failed = f"it failed ({reason})" if health == "degraded" else ""
    return shortened(", ".join(filter(None, (failed, _who(obj)))))


def _who(obj: Mapping[str, Any]) -> str:
    owners = obj["metadata"].get("ownerReferences")
    if owners and isinstance(owners, (list, tuple)) and isinstance(owners[0], Mapping):
        owner = f"{owners[0].get('kind', '')}/{owners[0].get('name', '')}"
        return f"the cluster collects it with its owner {owner}"
    if field := lifetime_field(obj):
        return f"its {field} ends it"
    others = other_managers(obj, (MANAGER, POLICY_MANAGER))
    return f"{some_of(others, NAMED_MAX)} may do it, which also writes it" if others else ""
