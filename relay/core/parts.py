"""Results of objects, spread over report parts that each fit a message."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from schemas.objects import ObjectKey
from schemas.reports import PART_MAX_BYTES, ObjectResult, encode

ENVELOPE_BYTES = 512
PARTS_MAX = 4096


def split_results(
    results: Iterable[ObjectResult],
) -> tuple[int, dict[int, tuple[ObjectResult, ...]]]:
    """How many parts there are, and the results in each; all of one object are in one part.

    The part is chosen by the object key's hash, so an object stays where it is while the number of
    parts does. A single status over the limit is only counted.
    """
    sized = [_sized(result) for result in sorted(results, key=lambda result: result.key)]
    if not sized:
        return 0, {}
    count = 1
    while count < PARTS_MAX:
        parts: dict[int, list[ObjectResult]] = {}
        room = dict.fromkeys(range(1, count + 1), PART_MAX_BYTES - ENVELOPE_BYTES)
        for result, size in sized:
            part = 1 + _hash(result.key) % count
            parts.setdefault(part, []).append(result)
            room[part] -= size
        if min(room.values()) >= 0:
            return count, {part: tuple(listed) for part, listed in parts.items()}
        count *= 2
    raise AssertionError("a part for each object is enough")


def _sized(result: ObjectResult) -> tuple[ObjectResult, int]:
    size = len(encode(result))
    if size > PART_MAX_BYTES - ENVELOPE_BYTES:
        result = replace(result, status=None)
        size = len(encode(result))
    return result, size


def _hash(key: ObjectKey) -> int:
    return int.from_bytes(hashlib.sha256(str(key).encode()).digest()[:4], "big")
