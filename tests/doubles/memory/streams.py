"""What a node's streams would keep: one value per slot, in the order of writing."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

from relay.core.effects import WriteMail
from relay.core.events import OwnRecord
from schemas.reports.reports import Done
from schemas.values.identity import ContentHash
from tests.doubles.memory.copies import ChildCopies

Slot = tuple[str, str]
"""A child's name, and a key."""

_STALE_MIN = 256


@dataclass(frozen=True, slots=True)
class Kept:
    """The last message of a slot; of mail also what was written, for its headers."""

    sequence: int
    data: bytes
    mail: WriteMail | None = None


class SlotStream:
    """Last value per slot; reading after a sequence costs what there is to read."""

    def __init__(self) -> None:
        self._slots: dict[Slot, Kept] = {}
        self._orders: dict[str, list[tuple[int, str]]] = {}
        self._last = 0

    def put(self, slot: Slot, data: bytes, mail: WriteMail | None = None) -> int:
        """Write a slot; its sequence."""
        self._last += 1
        self._slots[slot] = Kept(self._last, data, mail)
        self._orders.setdefault(slot[0], []).append((self._last, slot[1]))
        self._tidy(slot[0])
        return self._last

    @property
    def last(self) -> int:
        """The sequence of what was written last."""
        return self._last

    def get(self, slot: Slot) -> Kept | None:
        return self._slots.get(slot)

    def items(self) -> list[tuple[Slot, Kept]]:
        """All slots, in the order of their last writing."""
        return sorted(self._slots.items(), key=lambda item: item[1].sequence)

    def erase(self, slot: Slot) -> None:
        self._slots.pop(slot, None)

    def erase_child(self, child: str) -> None:
        for slot in [slot for slot in self._slots if slot[0] == child]:
            del self._slots[slot]
        self._orders.pop(child, None)

    def after(self, sequence: int, child: str | None = None) -> list[tuple[Slot, Kept]]:
        """What was last written after the sequence, in order; of one child, or of all."""
        if child is not None:
            return self._after(child, sequence)
        found = [entry for name in self._orders for entry in self._after(name, sequence)]
        return sorted(found, key=lambda entry: entry[1].sequence)

    def count_after(self, sequence: int, child: str) -> int:
        return len(self._after(child, sequence))

    def copy(self) -> SlotStream:
        """What another would hold to which the same was written."""
        other = SlotStream()
        other._slots, other._last = self._slots.copy(), self._last
        other._orders = {child: order.copy() for child, order in self._orders.items()}
        return other

    def _after(self, child: str, sequence: int) -> list[tuple[Slot, Kept]]:
        order = self._orders.get(child)
        if not order or order[-1][0] <= sequence:
            return []
        # What has no key of its own is less than each that has the same sequence.
        begin, slots, found = bisect_right(order, (sequence + 1,)), self._slots, []
        for at, key in order[begin:]:
            slot = (child, key)
            kept = slots.get(slot)
            if kept is not None and kept.sequence == at:
                found.append((slot, kept))
        return found

    def _tidy(self, child: str) -> None:
        """Drop overwritten entries when they are most of the order."""
        order = self._orders[child]
        if len(order) < _STALE_MIN or len(order) & (len(order) - 1):
            return
        self._orders[child] = [
            (at, key)
            for at, key in order
            if (kept := self._slots.get((child, key))) is not None and kept.sequence == at
        ]


@dataclass(slots=True)
class MemoryStreams:
    """One node's streams, and its children's accounts."""

    own: dict[str, OwnRecord] = field(default_factory=dict)
    mail: SlotStream = field(default_factory=SlotStream)
    stat: SlotStream = field(default_factory=SlotStream)
    blobs: dict[ContentHash, bytes] = field(default_factory=dict)
    done: dict[str, Done] = field(default_factory=dict)
    children: dict[str, str] = field(default_factory=dict)
    copies: dict[str, ChildCopies] = field(default_factory=dict)
    # How many of them were made, so that each has a name of its own.
    copies_made: int = 0

    def copy(self) -> MemoryStreams:
        """The same on another disk."""
        streams = (self.mail.copy(), self.stat.copy(), self.blobs.copy(), self.done.copy())
        return MemoryStreams(self.own.copy(), *streams, self.children.copy())
