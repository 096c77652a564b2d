"""The sketch of quantiles, by the package `ddsketch`: the one importer of it.

A value falls into a bucket whose bounds differ by 2 %; buckets are counted, so merging is adding.
"""

from __future__ import annotations

import math
import sys
from functools import cache
from typing import Any

from schemas.reports.collectors import QUANTILE_ACCURACY

_OFFSET = 1 << 20
"""More than any bucket's number, so that positive values have positive ones."""


def bucket_of(value: float) -> int:
    """The bucket of a finite number; buckets are ordered as the numbers are."""
    mapping = _mapping()
    if abs(value) < mapping.min_possible:
        return 0
    bucket = int(mapping.key(abs(value))) + _OFFSET
    return bucket if value > 0 else -bucket


def value_of(bucket: int) -> float:
    """The value that stands for a bucket: off by QUANTILE_ACCURACY of the true one at most."""
    if not bucket:
        return 0.0
    try:
        value = float(_mapping().value(abs(bucket) - _OFFSET))
    except OverflowError:
        value = sys.float_info.max
    return math.copysign(value, bucket)


@cache
def _mapping() -> Any:
    from ddsketch.mapping import LogarithmicMapping  # noqa: PLC0415 - only who has a QUANTILE

    return LogarithmicMapping(QUANTILE_ACCURACY)
