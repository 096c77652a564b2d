"""Stored values that were kept just now, for the syncer, which asks for them next; bounded."""

from __future__ import annotations

from collections import OrderedDict

from schemas.identity import ContentHash

RECENT_BYTES_MAX = 256 * 1024


class RecentBlobs:
    """Each is given out once; the oldest go when there are too many."""

    def __init__(self) -> None:
        self._held: OrderedDict[ContentHash, bytes] = OrderedDict()
        self._bytes = 0

    def put(self, address: ContentHash, value: bytes) -> None:
        self.pop(address)
        self._held[address] = value
        self._bytes += len(value)
        while self._bytes > RECENT_BYTES_MAX:
            self._bytes -= len(self._held.popitem(last=False)[1])

    def pop(self, address: ContentHash) -> bytes | None:
        value = self._held.pop(address, None)
        self._bytes -= len(value or b"")
        return value

    def check(self) -> None:
        """Assert that the count of bytes is that of what is held."""
        assert self._bytes == sum(map(len, self._held.values())) <= RECENT_BYTES_MAX
