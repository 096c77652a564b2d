"""Maintenance of a place: until when a person works there, as its SyncTarget is annotated."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

MAINTENANCE = "leafcast.io/maintenance"
MAINTENANCE_REASON = "leafcast.io/maintenance-reason"
REASON_MAX_CHARACTERS = 120
SECONDS_MAX = 90 * 86_400
"""So long at most a command asks for."""


class Maintenance(NamedTuple):
    """Until when, ms since 1970, and why."""

    until_ms: int
    reason: str = ""

    def is_on(self, now_ms: int) -> bool:
        return now_ms < self.until_ms

    @property
    def until(self) -> str:
        """`2026-11-27T20:00:00Z`."""
        moment = datetime.fromtimestamp(self.until_ms // 1000, UTC)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def __str__(self) -> str:
        """`until 2026-11-27T20:00:00Z: new disk`."""
        return f"until {self.until}" + (f": {self.reason}" if self.reason else "")


NONE = Maintenance(0)


def maintenance_of(annotations: Mapping[str, str]) -> Maintenance:
    """What a SyncTarget is annotated with; of what is no time there is none."""
    until_ms = milliseconds(annotations.get(MAINTENANCE, ""))
    reason = annotations.get(MAINTENANCE_REASON, "")[:REASON_MAX_CHARACTERS]
    return NONE if until_ms is None else Maintenance(until_ms, " ".join(reason.split()))


def milliseconds(text: str) -> int | None:
    """A time as Kubernetes writes it, in ms since 1970; None if it is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return max(int(found.timestamp() * 1000), 0) if found.tzinfo is not None else None


def time_fault(text: str) -> tuple[str, str] | None:
    """What is wrong with an annotation's value, and the remedy; None if nothing is."""
    if milliseconds(text) is not None:
        return None
    return f"{text!r} is no time", "say until when, as in 2026-11-27T20:00:00Z"


def in_force(annotations: Mapping[str, str], now_ms: int) -> dict[str, str]:
    """The annotations without a maintenance that is over, or that cannot be read."""
    if MAINTENANCE not in annotations or maintenance_of(annotations).is_on(now_ms):
        return dict(annotations)
    ours = (MAINTENANCE, MAINTENANCE_REASON)
    return {key: value for key, value in annotations.items() if key not in ours}
