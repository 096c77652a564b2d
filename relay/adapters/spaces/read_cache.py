"""What a client saw last of small entries: a write may begin with it, and never end with it.

A write that names the revision it is based on fails if the entry has another one by now. Bounded;
all is forgotten when the connection was lost, for the server may have come back without its data.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

BYTES_MAX = 256 * 1024
ENTRY_BYTES_MAX = 16 * 1024


@dataclass(frozen=True, slots=True)
class CachedValue:
    """A value, and the revision it had."""

    value: bytes
    revision: int


class ReadCache:
    """Values by key; `lost` counts how often the connection was lost."""

    def __init__(self, lost: Callable[[], int]) -> None:
        self._lost = lost
        self._losses = lost()
        self._seen: OrderedDict[str, CachedValue] = OrderedDict()
        self._bytes = 0

    def at(self, key: str) -> CachedValue | None:
        """What was seen last at the key, if it is remembered."""
        self._notice_loss()
        seen = self._seen.get(key)
        if seen is not None:
            self._seen.move_to_end(key)
        return seen

    def keep(self, key: str, value: bytes, revision: int) -> None:
        """Remember a value that was read or written, unless it is large or older than what is."""
        self._notice_loss()
        held = self._seen.get(key)
        if held is not None and held.revision > revision:
            return
        self.forget(key)
        if len(value) > ENTRY_BYTES_MAX:
            return
        self._seen[key] = CachedValue(value, revision)
        self._bytes += len(value)
        while self._bytes > BYTES_MAX:
            _, dropped = self._seen.popitem(last=False)
            self._bytes -= len(dropped.value)

    def outdate(self, key: str, revision: int) -> None:
        """Someone wrote the key at this revision: forget what is older."""
        held = self._seen.get(key)
        if held is not None and held.revision < revision:
            self.forget(key)

    def forget(self, key: str) -> None:
        held = self._seen.pop(key, None)
        self._bytes -= len(held.value) if held else 0

    def _notice_loss(self) -> None:
        if self._lost() != self._losses:
            self._losses = self._lost()
            self._seen.clear()
            self._bytes = 0
