"""Mail that waits for a key or for a snapshot's blobs; it is read only once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

from relay.core.events import MailArrived
from schemas.values.identity import MailKey

PARKED_MAX, PARKED_BYTES_MAX = 10_000, 32 * 1024 * 1024
"""So much mail waits here; what finds no room is read again from the parent once there is some."""


@dataclass(slots=True)
class Parked:
    """The last message of each slot that waits."""

    # Whether something found no room, so that the mailbox is to be read again.
    overflowed: bool = False
    _mail: dict[MailKey, MailArrived] = field(default_factory=dict)
    _bytes: int = 0
    # By sequence, also of what was let go since.
    _order: list[tuple[int, MailKey]] = field(default_factory=list)

    @property
    def has_room(self) -> bool:
        """Whether there is room for much more, so that it is worth being read again."""
        return len(self._mail) <= PARKED_MAX // 2 and self._bytes <= PARKED_BYTES_MAX // 2

    @property
    def is_to_be_reread(self) -> bool:
        """Whether something found no room, and would now."""
        return self.overflowed and self.has_room

    def __len__(self) -> int:
        return len(self._mail)

    def __iter__(self) -> Iterator[MailArrived]:
        return iter(list(self._mail.values()))

    @property
    def lowest(self) -> int | None:
        """The first sequence of them; None if there are none."""
        while self._order:
            sequence, key = self._order[0]
            waiting = self._mail.get(key)
            if waiting is not None and waiting.sequence == sequence:
                return sequence
            heappop(self._order)
        return None

    def put(self, event: MailArrived) -> None:
        """Park a message instead of an earlier one of its slot; a later one that waits stays."""
        self.forget(event)
        if event.key in self._mail:
            return
        if len(self._mail) >= PARKED_MAX or self._bytes + len(event.data) > PARKED_BYTES_MAX:
            self.overflowed = True
            return
        self._mail[event.key] = event
        self._bytes += len(event.data)
        heappush(self._order, (event.sequence, event.key))

    def forget(self, event: MailArrived) -> None:
        """Let go of what waits in a slot up to a message: it was dealt with, or something newer."""
        found = self._mail.get(event.key)
        if found is not None and found.sequence <= event.sequence:
            del self._mail[event.key]
            self._bytes -= len(found.data)

    def clear(self) -> None:
        """Let go of everything: the mailbox is read from its start."""
        self._mail.clear()
        self._order.clear()
        self._bytes, self.overflowed = 0, False
