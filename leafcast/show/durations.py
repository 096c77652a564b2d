"""Spans of time as people read them: `90s`, `1h30m`; ages as kubectl shows them."""

from __future__ import annotations

from datetime import datetime

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY

UNKNOWN = "<unknown>"


def span_text(seconds: float) -> str:
    """A span in two units at most, the coarser the longer it is: `45s`, `5m10s`, `3h`, `2d4h`."""
    whole = max(int(seconds), 0)
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole, _YEAR, "y", _DAY, "d")
    return f"{whole // _YEAR}y"


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


def _two(whole: int, coarse: int, coarse_name: str, fine: int, fine_name: str) -> str:
    first, rest = divmod(whole, coarse)
    second = rest // fine
    return f"{first}{coarse_name}{second}{fine_name}" if second else f"{first}{coarse_name}"
