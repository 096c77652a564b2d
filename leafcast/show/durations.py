"""Spans of time as people read them: `90s`, `1h30m`; ages as kubectl shows them."""

from __future__ import annotations

from datetime import datetime

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY
_UNITS: tuple[tuple[int, int, str, int, str], ...] = (
    (8 * _YEAR, _YEAR, "y", 0, ""),
    (2 * _YEAR, _YEAR, "y", _DAY, "d"),
    (8 * _DAY, _DAY, "d", 0, ""),
    (2 * _DAY, _DAY, "d", _HOUR, "h"),
    (8 * _HOUR, _HOUR, "h", 0, ""),
    (3 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (10 * _MINUTE, _MINUTE, "m", 0, ""),
    (2 * _MINUTE, _MINUTE, "m", 1, "s"),
    (0, 1, "s", 0, ""),
)
"""From so many seconds on, in which unit, and which finer one."""

UNKNOWN = "<unknown>"


def span_text(seconds: float) -> str:
    """A span in two units at most, the coarser the longer it is: `45s`, `5m10s`, `3h`, `2d4h`."""
    whole = max(int(seconds), 0)
    _, coarse, name, fine, finer = next(units for units in _UNITS if whole >= units[0])
    first, rest = divmod(whole, coarse)
    second = rest // fine if fine else 0
    return f"{first}{name}{second}{finer}" if second else f"{first}{name}"


def age_text(moment: object, now_ms: int) -> str:
    """How long ago a time of Kubernetes' form was; `<unknown>` if it is none."""
    began = moment_seconds(moment)
    return UNKNOWN if began is None else span_text(now_ms / 1000 - began)


def moment_seconds(moment: object) -> float | None:
    """Seconds since 1970 of a time of Kubernetes' form; None if it is none."""
    try:
        return datetime.fromisoformat(moment).timestamp() if isinstance(moment, str) else None
    except ValueError:
        return None
