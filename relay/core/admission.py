"""Of children that come back at once only so many read their mail at a time; all get their turn.

A child that has nothing to read begins its session at once, and so does everyone while there is
room. The others wait for the answer to their question, in the order in which they asked first.
"""

from __future__ import annotations

from dataclasses import dataclass

READS_AT_ONCE = 64
READ_SECONDS = 45.0
"""So long a child that is let in may make no progress before its place is another's."""


@dataclass(slots=True)
class _Reading:
    """A child that reads up to sequence `end`; if it gets no further, `until` some second."""

    end: int
    read: int
    until: float


@dataclass(frozen=True, slots=True)
class _Begun:
    """What a child asked for, and where its mailbox ended when it asked for that first."""

    run: str
    last_epoch: int
    end: int


class Admission:
    """Who of a node's children reads now, and who waits; seconds are the node's own.

    `most` is the greatest number that read at a time.
    """

    def __init__(self, at_once: int) -> None:
        self.most = 0
        self._at_once = at_once
        self._reading: dict[str, _Reading] = {}
        self._waiting: dict[str, bytes] = {}
        self._begun: dict[str, _Begun] = {}

    @property
    def reading(self) -> int:
        return len(self._reading)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def admit(self, name: str, question: bytes, read: int, end: int, now: float) -> bool:
        """Whether a child that has read so far may begin; if not, its question is kept."""
        if name not in self._reading and read < end:
            if len(self._reading) >= self._at_once:
                self._waiting[name] = question
                return False
            self._reading[name] = _Reading(end, read, now + READ_SECONDS)
            self.most = max(self.most, len(self._reading))
        self._waiting.pop(name, None)
        return True

    def has_read(self, name: str, sequence: int, now: float) -> None:
        """A child in session says how far it has read."""
        place = self._reading.get(name)
        if place is None:
            return
        if sequence >= place.end:
            del self._reading[name]
        elif sequence > place.read:
            place.read, place.until = sequence, now + READ_SECONDS

    def leave(self, name: str) -> None:
        """A child is not there any more: it neither reads nor waits."""
        self._reading.pop(name, None)
        self._waiting.pop(name, None)

    def next(self, now: float) -> tuple[str, bytes] | None:
        """Who may ask now of those that waited, and what it asked last; None if nobody may."""
        if not self._waiting:
            return None
        for name in [name for name, place in self._reading.items() if place.until <= now]:
            del self._reading[name]
        if len(self._reading) >= self._at_once:
            return None
        name = next(iter(self._waiting))
        return name, self._waiting.pop(name)

    def begins(self, name: str, run: str, last_epoch: int, end: int) -> int | None:
        """Note that a child begins a session; None unless it asks again for one it did not get.

        Then it is the sequence at which its mailbox ended when it asked first.
        """
        begun = self._begun.get(name)
        if begun is not None and (begun.run, begun.last_epoch) == (run, last_epoch):
            return begun.end
        self._begun[name] = _Begun(run, last_epoch, end)
        return None

    def forget(self, name: str) -> None:
        """A child is removed."""
        self.leave(name)
        self._begun.pop(name, None)

    def deadline(self) -> float | None:
        """When a place comes free if nothing happens; None if nobody waits for one."""
        if not self._waiting:
            return None
        room = len(self._reading) < self._at_once
        return 0.0 if room else min(place.until for place in self._reading.values())
