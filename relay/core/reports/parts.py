"""Results of objects, and what collectors collected, over report parts that each fit a message."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from schemas.objects.objects import ObjectKey
from schemas.reports.collectors import Collected
from schemas.reports.reports import PART_MAX_BYTES, ObjectResult
from schemas.values.wire import encode, replace

ENVELOPE_BYTES = 512
ROOM_BYTES = PART_MAX_BYTES - ENVELOPE_BYTES
PARTS_MAX = 256
INLINE_MAX_BYTES = 4096
"""What collectors collected goes along with the counts if it is no more than this."""


ResultOrRows = ObjectResult | Collected


class PartRows(NamedTuple):
    """What one later part of a report says."""

    results: tuple[ObjectResult, ...] = ()
    collected: tuple[Collected, ...] = ()

    @classmethod
    def of(cls, items: Iterable[ResultOrRows]) -> PartRows:
        """What of it is which."""
        listed = list(items)
        return cls(
            tuple(item for item in listed if isinstance(item, ObjectResult)),
            tuple(item for item in listed if isinstance(item, Collected)),
        )


def inlined(
    collected: Sequence[Collected],
) -> tuple[tuple[Collected, ...], tuple[Collected, ...]]:
    """What of it goes along with the counts, and what into later parts: all, or nothing."""
    size = sum(len(item.rows) + len(item.unreached) for item in collected)
    if size <= INLINE_MAX_BYTES and len(encode(list(collected))) <= INLINE_MAX_BYTES:
        return tuple(collected), ()
    return (), tuple(collected)


def split_results(
    results: Iterable[ObjectResult], collected: Iterable[Collected] = ()
) -> tuple[int, dict[int, PartRows]]:
    """How many parts there are, and what is in each.

    The part is chosen by the hash of the object's key, and of the collector, so what is said of an
    object stays where it is while the number of parts does. A status that finds no room, alone or
    among PARTS_MAX parts, is only counted; so are the rows of a collector.
    """
    listed: list[ResultOrRows] = [*results, *collected]
    sized = [_Sized.of(item) for item in sorted(listed, key=lambda item: item.key)]
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
    item: ResultOrRows
    size: int
    hash: int

    @classmethod
    def of(cls, item: ResultOrRows) -> _Sized:
        program = item.program if isinstance(item, Collected) else ""
        return cls(item, len(encode(item)), _hash(item.key, program))


def counted(item: ResultOrRows) -> ResultOrRows:
    """What is left of it where it finds no room: that it is there."""
    if isinstance(item, Collected):
        return replace(item, rows=b"", unreached=b"")
    return replace(item, status=None)


def _fits(listed: list[_Sized]) -> bool:
    return len(listed) == 1 or sum(item.size for item in listed) <= ROOM_BYTES


def _crowded(listed: list[_Sized]) -> PartRows:
    """What fits one part: the largest statuses and rows go, then whole results from the end."""
    kept, size = list(listed), sum(item.size for item in listed)
    for at in sorted(range(len(kept)), key=lambda at: kept[at].size, reverse=True):
        if size <= ROOM_BYTES:
            break
        size -= kept[at].size
        kept[at] = _Sized.of(counted(kept[at].item))
        size += kept[at].size
    while size > ROOM_BYTES:
        size -= kept.pop().size
    return PartRows.of(each.item for each in kept)


@lru_cache(maxsize=4096)
def _hash(key: ObjectKey, program: str) -> int:
    said = f"{key}\0{program}" if program else str(key)
    return int.from_bytes(hashlib.sha256(said.encode()).digest()[:4], "big")
