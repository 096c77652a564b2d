"""Spans of time as people write them: `90s`, `1h30m`, `7d`. There is one rule for all of them."""

from __future__ import annotations

import math
import re

_UNITS = {"d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ms|d|h|m|s)")
_NONE = re.compile(r"0+(?:\.0*)?")


class BadDuration(ValueError):
    """A text that is no span of time."""

    def __init__(self, text: str) -> None:
        super().__init__(f'"{text}" is not a duration; write it as in 60s, 2m, 1h30m or 7d')


def read_duration(text: str) -> float:
    """Seconds; each number needs its unit, but for 0. Raises BadDuration."""
    if _NONE.fullmatch(text):
        return 0.0
    if not re.fullmatch(f"({_PART.pattern})+", text):
        raise BadDuration(text)
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    if not math.isfinite(seconds):
        raise BadDuration(text)
    return seconds
