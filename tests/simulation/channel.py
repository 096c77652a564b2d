"""One mailbox of a child, on a channel that does what JetStream may do, and worse.

It loses what is under way, delivers twice and late, erases slots, brings back what was erased or
overwritten, and either side's disk may be put back to a copy. Never does it make anything up, and
what it delivers of one reading comes in the order of sequences.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from relay.core.effects import ClearMail, Effect, WriteMail
from relay.core.events import MailArrived, MailSlot
from schemas.values.wire import replace


@dataclass(frozen=True, slots=True)
class Message:
    """What lies in a slot."""

    sequence: int
    write: WriteMail


@dataclass(slots=True)
class Mailbox:
    """The stream of one child: the last message of each slot."""

    slots: dict[str, Message] = field(default_factory=dict)
    last: int = 0
    # What was erased or overwritten, and may come back.
    former: list[Message] = field(default_factory=list)

    def put(self, write: WriteMail) -> int:
        self._forget(write.key)
        self.last += 1
        self.slots[write.key] = Message(self.last, write)
        return self.last

    def erase(self, key: str, sequence: int | None = None) -> None:
        """Erase a slot, unless another sequence lies there than is named."""
        found = self.slots.get(key)
        if found is not None and sequence in (None, found.sequence):
            self._forget(key)

    def resurrect(self, at: int) -> None:
        """Have something old again in place of what is there, as kill -9 may."""
        if self.former:
            message = self.former[at % len(self.former)]
            self._forget(message.write.key)
            self.slots[message.write.key] = message

    def after(self, sequence: int) -> list[Message]:
        found = [m for m in self.slots.values() if m.sequence > sequence]
        return sorted(found, key=lambda message: message.sequence)

    def headers(self) -> Iterator[MailSlot]:
        """What a parent that starts reads of it."""
        for message in self.after(0):
            write = message.write
            told = (write.generation, write.payload_hash, write.has_body)
            yield MailSlot(write.child, write.key, message.sequence, *told)

    def copy(self) -> Mailbox:
        return Mailbox(self.slots.copy(), self.last, self.former.copy())

    def _forget(self, key: str) -> None:
        found = self.slots.pop(key, None)
        if found is not None:
            self.former.append(found)


class Channel:
    """The mailbox, the child's reading of it, and what is under way each way.

    `up` and `down` are hellos and welcomes: each may be lost, none is kept.
    """

    def __init__(self) -> None:
        self.mailbox = Mailbox()
        self.linked = False
        self.acknowledged = 0
        # How much was ever delivered: work must be bounded.
        self.delivered = 0
        self._read = 0
        self._reading = 0
        self._under_way: deque[MailArrived] = deque()
        self._past: list[MailArrived] = []
        self.up: deque[Any] = deque()
        self.down: deque[Any] = deque()

    # The parent's side.

    def carry_out(self, effects: list[Effect], written: Callable[[WriteMail, int], None]) -> None:
        """Do what a writer asks for; each confirmation is told to `written`."""
        while effects:
            todo, effects[:] = list(effects), []
            for effect in todo:
                match effect:
                    case WriteMail():
                        found = self.mailbox.slots.get(effect.key)
                        assert (found.sequence if found else 0) == effect.expected, "MailConflict"
                        written(effect, self.mailbox.put(effect))
                    case ClearMail():
                        self.mailbox.erase(effect.key, effect.sequence)
                    case _:
                        raise AssertionError(f"a writer asks for {effect}")

    # The child's side.

    def link(self) -> None:
        self.linked = True
        self.read_from(self.acknowledged + 1)

    def cut(self) -> None:
        """All that is under way is lost."""
        self.linked = False
        self.up.clear()
        self.down.clear()
        self._under_way.clear()

    def read_from(self, sequence: int) -> None:
        """A new reading: what an earlier one delivered comes no more."""
        self._read = max(sequence - 1, 0)
        self._reading += 1
        self._under_way.clear()

    @property
    def reading(self) -> int:
        return self._reading

    def deliver(self) -> MailArrived | None:
        """The next message, if there is one."""
        if not self.linked:
            return None
        if not self._under_way:
            unread = self.mailbox.after(self._read)
            for message, pending in zip(unread, range(len(unread))[::-1], strict=True):
                write = message.write
                self._under_way.append(
                    MailArrived(message.sequence, write.key, write.data, pending, self._reading)
                )
                self._read = message.sequence
        if not self._under_way:
            return None
        self.delivered += 1
        event = self._under_way.popleft()
        self._past.append(event)
        return event

    def repeat(self, at: int) -> MailArrived | None:
        """Something that was delivered before, once more and late."""
        if not self.linked or not self._past:
            return None
        # How much is to come is told as it is now, not as it was then.
        pending = len(self._under_way) + len(self.mailbox.after(self._read))
        event = self._past[at % len(self._past)]
        return replace(event, pending=pending, reading=self._reading)
