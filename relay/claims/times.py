"""Times as leases say them: RFC 3339 with microseconds, for people only."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(wall_ms: int) -> str:
    """A time as Kubernetes' MicroTime is written."""
    return datetime.fromtimestamp(wall_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def milliseconds(text: str) -> int | None:
    """The same, read; None if it is no time."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int(found.timestamp() * 1000) if found.tzinfo is not None else None
