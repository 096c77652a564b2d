"""Spans of time as people write them: `90s`, `1h30m`."""

from __future__ import annotations

import math
import re

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ms|h|m|s)")


class BadDuration(ValueError):
    """A text that is no span of time."""

    def __init__(self, text: str) -> None:
        super().__init__(f'"{text}" is not a duration; write it as in 60s, 2m or 1h30m')


def read_duration(text: str) -> float:
    """Seconds; a bare number is seconds. Raises BadDuration."""
    try:
        seconds = float(text)
    except ValueError:
        if not re.fullmatch(f"({_PART.pattern})+", text):
            raise BadDuration(text) from None
        seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if not math.isfinite(seconds) or seconds < 0:
        raise BadDuration(text)
    return seconds
