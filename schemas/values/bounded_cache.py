"""Values at hand for whoever asks for them again: so many bytes of them, and no more."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """Keeps at most `most` bytes in all: those go first that were not used for longest."""

    def __init__(self, most: int, least: int = 0) -> None:
        """So many at `least` are held, however large they are."""
        self._most, self._least = most, least
        self._held: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: K) -> V | None:
        """The value under the key, if it is still held."""
        if key not in self._held:
            return None
        self._held.move_to_end(key)
        return self._held[key][0]

    def put(self, key: K, value: V, size: int) -> None:
        """Hold a value of so many bytes, in place of the one before."""
        self.pop(key)
        self._held[key] = (value, size)
        self._bytes += size
        while self._bytes > self._most and len(self._held) > self._least:
            self._bytes -= self._held.popitem(last=False)[1][1]

    def pop(self, key: K) -> V | None:
        """Give the value out, and hold it no more."""
        value, size = self._held.pop(key, (None, 0))
        self._bytes -= size
        return value

    def clear(self) -> None:
        self._held.clear()
        self._bytes = 0

    def assert_invariants(self) -> None:
        """Assert that the count of bytes is that of what is held."""
        assert self._bytes == sum(size for _, size in self._held.values())
        assert self._bytes <= self._most or len(self._held) <= self._least
