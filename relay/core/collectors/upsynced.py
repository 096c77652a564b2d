"""Objects that came up from the destination at this node, as far as collectors are over such."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from schemas.content import blobs
from schemas.objects.objects import ObjectKey
from schemas.reports.upsync import UpsyncClause, read_copy
from schemas.values.refusals import BlobRefused, RecordRefused


class Sources(NamedTuple):
    """What collectors are over; another `epoch` says that all of it is to be told again."""

    epoch: int
    clauses: frozenset[UpsyncClause]

    def names(self, key: ObjectKey) -> bool:
        return any(clause.matches(key) for clause in self.clauses)


class UpsyncedObject(NamedTuple):
    """An object as it came up: its canonical bytes, compressed, and since when it is so."""

    value: bytes
    size: int
    since_ms: int

    @property
    def plain(self) -> bytes:
        return blobs.decompress(self.value, self.size)


class UpsyncedObjects:
    """Those that a source names; others are not kept."""

    def __init__(self) -> None:
        self._held: dict[ObjectKey, UpsyncedObject] = {}
        self.sources = Sources(0, frozenset())

    def put(self, key: ObjectKey, copy: bytes | None, now_ms: int) -> bool:
        """Take what lies at the parent; whether that is another object, or none any more."""
        before = self._held.get(key)
        upsynced = _read(copy, now_ms) if copy is not None and self.sources.names(key) else None
        if upsynced is None:
            return self._held.pop(key, None) is not None
        if before is not None and before.value == upsynced.value:
            return False
        self._held[key] = upsynced
        return True

    def over(self, source: UpsyncClause) -> Iterable[tuple[ObjectKey, UpsyncedObject]]:
        """What came up of a source."""
        return [(key, upsynced) for key, upsynced in self._held.items() if source.matches(key)]

    def set_sources(self, clauses: frozenset[UpsyncClause]) -> None:
        """Learn what collectors are over, and let go of what none is over."""
        if clauses == self.sources.clauses:
            return
        sources = Sources(self.sources.epoch, clauses)
        kept = {key: upsynced for key, upsynced in self._held.items() if sources.names(key)}
        # Who tells of objects may not have seen that for a moment nothing was over them.
        dropped = len(kept) < len(self._held)
        self._held = kept
        self.sources = sources._replace(epoch=sources.epoch + 1) if dropped else sources


def _read(copy: bytes, now_ms: int) -> UpsyncedObject | None:
    try:
        read = read_copy(copy)
        upsynced = UpsyncedObject(read.value, read.size, now_ms)
        _ = upsynced.plain
    except (RecordRefused, BlobRefused):
        return None
    return upsynced
