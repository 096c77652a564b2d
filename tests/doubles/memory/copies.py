"""What a child brought up, as a stream of its own at its parent would keep it."""

from __future__ import annotations

from relay.ports import CopiesPage, CopiesPlace, StoredCopy
from schemas.reports.upsync import COPY_BESIDE_BYTES, EDGE_MAX_BYTES, EDGE_MAX_OBJECTS

PAGE_COPIES = 512


class ChildCopies:
    """The last value of each key, the oldest first; what is too much takes the oldest's place."""

    def __init__(self, since: str) -> None:
        self.since = since
        self.kept: dict[str, tuple[int, bytes]] = {}
        self._last = 0

    def put(self, key: str, data: bytes) -> int:
        self._last += 1
        self.kept.pop(key, None)
        self.kept[key] = (self._last, data)
        while len(self.kept) > EDGE_MAX_OBJECTS or self._bytes() > EDGE_MAX_BYTES:
            del self.kept[next(iter(self.kept))]
        return self._last

    def erase(self, key: str, before: int) -> None:
        if key:
            self.kept.pop(key, None)
            return
        for old in [old for old, (at, _) in self.kept.items() if at < before]:
            del self.kept[old]

    def place(self) -> CopiesPlace:
        return CopiesPlace(self.since, self._last, len(self.kept))

    def page(self, first: int, hello: bytes) -> CopiesPage:
        found = [StoredCopy(at, key, data, 0) for key, (at, data) in self.kept.items()]
        rest = sorted((copy for copy in found if copy.sequence >= first), key=lambda c: c.sequence)
        page = rest[:PAGE_COPIES]
        following = page[-1].sequence + 1 if len(rest) > len(page) else 0
        return CopiesPage(tuple(page), following, hello)

    def _bytes(self) -> int:
        return sum(COPY_BESIDE_BYTES + len(data) for _, data in self.kept.values())
