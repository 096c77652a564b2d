"""What a client saw last of small entries: a write may begin with it, and never end with it.

A write that names the revision it is based on fails if the entry has another one by now. Bounded;
all is forgotten when the connection was lost, for the server may have come back without its data.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from schemas.values.bounded_cache import BoundedCache

BYTES_MAX = 256 * 1024
ENTRY_BYTES_MAX = 16 * 1024


class CachedValue(NamedTuple):
    """A value, and the revision it had."""

    value: bytes
    revision: int


class ReadCache:
    """Values by key; `lost` counts how often the connection was lost."""

    def __init__(self, lost: Callable[[], int]) -> None:
        self._lost = lost
        self._losses = lost()
        self._seen: BoundedCache[str, CachedValue] = BoundedCache(BYTES_MAX)

    def at(self, key: str) -> CachedValue | None:
        """What was seen last at the key, if it is remembered."""
        if self._lost() != self._losses:
            self._losses = self._lost()
            self._seen.clear()
        return self._seen.get(key)

    def keep(self, key: str, value: bytes, revision: int) -> None:
        """Remember a value that was read or written, unless it is large or older than what is."""
        seen = self.at(key)
        if seen is None or seen.revision <= revision:
            self._seen.pop(key)
            if len(value) <= ENTRY_BYTES_MAX:
                self._seen.put(key, CachedValue(value, revision), len(value))

    def outdate(self, key: str, revision: int) -> None:
        """Someone wrote the key at this revision: forget what is older."""
        seen = self._seen.get(key)
        if seen is not None and seen.revision < revision:
            self._seen.pop(key)

    def forget(self, key: str) -> None:
        self._seen.pop(key)
