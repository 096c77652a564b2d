"""Results of objects, spread over report parts that each fit a message."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from schemas.objects import ObjectKey
from schemas.reports import PART_MAX_BYTES, ObjectResult, encode
from schemas.wire import replace

ENVELOPE_BYTES = 512
ROOM_BYTES = PART_MAX_BYTES - ENVELOPE_BYTES
PARTS_MAX = 256


def split_results(
    results: Iterable[ObjectResult],
) -> tuple[int, dict[int, tuple[ObjectResult, ...]]]:
    """How many parts there are, and the results in each; all of one object are in one part.

    The part is chosen by the object key's hash, so an object stays where it is while the number of
    parts does. A status that finds no room, alone or among PARTS_MAX parts, is only counted.
    """
    sized = [_Sized.of(result) for result in sorted(results, key=lambda result: result.key)]
    if not sized:
        return 0, {}
    count = 1
    while True:
        parts: dict[int, list[_Sized]] = {}
        for item in sized:
            parts.setdefault(1 + item.hash % count, []).append(item)
        if count >= PARTS_MAX or all(_fits(listed) for listed in parts.values()):
            return count, {part: _crowded(listed) for part, listed in parts.items()}
        count *= 2


@dataclass(frozen=True, slots=True)
class _Sized:
    result: ObjectResult
    size: int
    hash: int

    @classmethod
    def of(cls, result: ObjectResult) -> _Sized:
        return cls(result, len(encode(result)), _hash(result.key))

    def counted(self) -> _Sized:
        return _Sized.of(replace(self.result, status=None))


def _fits(listed: list[_Sized]) -> bool:
    return len(listed) == 1 or sum(item.size for item in listed) <= ROOM_BYTES


def _crowded(listed: list[_Sized]) -> tuple[ObjectResult, ...]:
    """What fits one part: the largest statuses go, then whole results from the end."""
    kept, size = list(listed), sum(item.size for item in listed)
    for at in sorted(range(len(kept)), key=lambda at: kept[at].size, reverse=True):
        if size <= ROOM_BYTES:
            break
        size -= kept[at].size
        kept[at] = kept[at].counted()
        size += kept[at].size
    while size > ROOM_BYTES:
        size -= kept.pop().size
    return tuple(item.result for item in kept)


def _hash(key: ObjectKey) -> int:
    return int.from_bytes(hashlib.sha256(str(key).encode()).digest()[:4], "big")
