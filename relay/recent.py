"""Objects that came just now, for the syncer, which asks for them next; bounded."""

from __future__ import annotations

from relay.core.events import BlobArrived
from schemas.blobs import OBJECT
from schemas.identity import ContentHash

RECENT_BYTES_MAX = 256 * 1024


class Recent:
    """Each is given out once; none is held if it is not `wanted`, where there is no syncer."""

    def __init__(self, *, wanted: bool) -> None:
        self._wanted = wanted
        self._held: dict[ContentHash, BlobArrived] = {}
        self._bytes = 0

    def put(self, loaded: BlobArrived) -> None:
        """Hold an object, unless it is large or came in parts."""
        size = len(loaded.value or b"")
        if not self._wanted or loaded.reference.kind != OBJECT or loaded.parts or not size:
            return
        if size + self._bytes > RECENT_BYTES_MAX:
            self._held.clear()
            self._bytes = 0
        if size <= RECENT_BYTES_MAX and loaded.reference.address not in self._held:
            self._held[loaded.reference.address] = loaded
            self._bytes += size

    def pop(self, address: ContentHash) -> BlobArrived | None:
        loaded = self._held.pop(address, None)
        self._bytes -= len(loaded.value or b"") if loaded else 0
        return loaded
