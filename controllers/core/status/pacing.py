"""When a placement's status is written: news at once, counts on a schedule.

How often a change is written does not depend on how many destinations report it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from controllers.core.conditions import READY, RECONCILING
from controllers.core.status.status import HEALTHY, SYNCED
from schemas.reports.reports import Count

QUIET_SECONDS = 0.5
"""Counts that nobody is expected to change are exact so long after the last report."""
GAP_SECONDS_MIN, GAP_SECONDS_MAX = 5.0, 20.0
"""Between two writes of counts that still move; each gap is twice the one before."""
_COUNTS = frozenset(
    {
        "matchingLocationCount",
        "destinations",
        "synced",
        "pending",
        "failing",
        "frozen",
        "unreachable",
        "neverJoined",
        "healthy",
        "complete",
        "errors",
        "conditions",
        "held",
    }
)
_COUNTED = (SYNCED, HEALTHY, READY, RECONCILING)


@dataclass(slots=True)
class _Pace:
    """What was reported last of one placement, and since when; its last write."""

    count: Count | None
    heard_at: float
    written_at: float = float("-inf")
    gap: float = GAP_SECONDS_MIN


class Pacing:
    """The schedule of each placement's status; times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self._paces: dict[str, _Pace] = {}

    def due(
        self,
        name: str,
        before: object,
        status: Mapping[str, Any],
        count: Count | None,
        now: float,
    ) -> float:
        """When a status is to be written instead of the one `before`; not after `now`: at once."""
        pace = self._paces.setdefault(name, _Pace(count, now))
        if pace.count != count:
            pace.count, pace.heard_at = count, now
        if is_news(before, status):
            return now
        due = pace.written_at + pace.gap
        return min(due, pace.heard_at + QUIET_SECONDS) if _is_settled(count) else due

    def written(self, name: str, now: float) -> None:
        """Note that the status was written."""
        pace = self._paces[name]
        moving = now - pace.written_at <= 2 * pace.gap and not _is_settled(pace.count)
        pace.gap = min(2 * pace.gap, GAP_SECONDS_MAX) if moving else GAP_SECONDS_MIN
        pace.written_at = now

    def forget(self, name: str) -> None:
        """Let go of a placement that is gone."""
        self._paces.pop(name, None)


def is_news(before: object, status: Mapping[str, Any]) -> bool:
    """Whether a status says more than other counts: nobody shall wait for that."""
    if not isinstance(before, Mapping) or not before.get("conditions"):
        return True
    if any(before.get(field) != said for field, said in status.items() if field not in _COUNTS):
        return True
    return set(_said(before)) != set(_said(status))


def _said(status: Mapping[str, Any]) -> Iterator[tuple[str, object, object]]:
    """The holds and conditions without their words; of those that count, whether they are met."""
    for hold in status.get("held") or ():
        yield "held", hold.get("reason"), hold.get("remedy")
    for item in status["conditions"]:
        if item.get("type") in _COUNTED:
            yield item["type"], item.get("status") == "True", ""
        else:
            yield item.get("type", ""), item.get("status"), item.get("reason")


def _is_settled(count: Count | None) -> bool:
    """Whether all that was asked for has an answer."""
    return count is not None and count.exact and not count.summary.states.get("pending")
