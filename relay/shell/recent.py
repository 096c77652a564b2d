"""Values that were made or kept just now, for whoever asks for them next; bounded."""

from __future__ import annotations

from collections import OrderedDict

from schemas.values.identity import ContentHash

RECENT_BYTES_MAX = 256 * 1024


class RecentBlobs:
    """Each is given out once; the oldest go when there are too many."""

    def __init__(self, most: int = RECENT_BYTES_MAX) -> None:
        self._most = most
        self._held: OrderedDict[ContentHash, bytes] = OrderedDict()
        self._bytes = 0

    def put(self, address: ContentHash, value: bytes) -> None:
        self.pop(address)
        self._held[address] = value
        self._bytes += len(value)
        while self._bytes > self._most:
            self._bytes -= len(self._held.popitem(last=False)[1])

    def pop(self, address: ContentHash) -> bytes | None:
        value = self._held.pop(address, None)
        self._bytes -= len(value or b"")
        return value

    def clear(self) -> None:
        self._held.clear()
        self._bytes = 0

    def assert_invariants(self) -> None:
        """Assert that the count of bytes is that of what is held."""
        assert self._bytes == sum(map(len, self._held.values())) <= self._most
