"""Mail that waits for a key or for the index: judged again when that comes, read only once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from relay.core.book import Held
from relay.core.events import MailArrived
from schemas.identity import MailKey

PARKED_MAX, PARKED_BYTES_MAX = 10_000, 32 * 1024 * 1024
"""So much mail waits here; what finds no room is read again from the parent once there is some."""


@dataclass(frozen=True, slots=True)
class Believed:
    """A record whose signature was checked by the `keys`-th set of keys adopted."""

    held: Held
    keys: int


@dataclass(slots=True)
class Parked:
    """Messages by their sequence in the own mailbox."""

    _mail: dict[int, tuple[MailArrived, Believed | None]] = field(default_factory=dict)
    _by_key: dict[MailKey, dict[int, None]] = field(default_factory=dict)
    _lowest: int | None = None
    _bytes: int = 0

    @property
    def full(self) -> bool:
        """Whether there is no room for more."""
        return len(self._mail) >= PARKED_MAX or self._bytes >= PARKED_BYTES_MAX

    @property
    def roomy(self) -> bool:
        """Whether there is room for much more, so that it is worth being read again."""
        return len(self._mail) <= PARKED_MAX // 2 and self._bytes <= PARKED_BYTES_MAX // 2

    def __len__(self) -> int:
        return len(self._mail)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._mail))

    @property
    def lowest(self) -> int | None:
        """The first of them; None if there are none."""
        if self._lowest is None and self._mail:
            self._lowest = min(self._mail)
        return self._lowest

    def mail(self) -> list[tuple[MailKey, bytes]]:
        """The messages, as they came."""
        return [(event.key, event.data) for event, _ in self._mail.values()]

    def put(self, event: MailArrived, believed: Believed | None = None) -> None:
        """Park a message, with what is known of it."""
        self.take(event.sequence)
        self._bytes += len(event.data)
        self._mail[event.sequence] = event, believed
        self._by_key.setdefault(event.key, {})[event.sequence] = None
        if self._lowest is not None or len(self._mail) == 1:
            self._lowest = min(self._lowest or event.sequence, event.sequence)

    def take(self, sequence: int) -> tuple[MailArrived, Believed | None] | None:
        """Let go of a message; None if it is there no more."""
        found = self._mail.pop(sequence, None)
        if found is not None:
            self._bytes -= len(found[0].data)
            same = self._by_key[found[0].key]
            del same[sequence]
            if not same:
                del self._by_key[found[0].key]
            if sequence == self._lowest:
                self._lowest = None
        return found

    def forget_before(self, key: MailKey, sequence: int) -> None:
        """Let go of what was in the slot before this sequence."""
        for parked in [s for s in self._by_key.get(key, ()) if s < sequence]:
            self.take(parked)

    def clear(self) -> None:
        self._mail.clear()
        self._by_key.clear()
        self._lowest, self._bytes = None, 0
