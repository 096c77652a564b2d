"""What a node needs of the world, as protocols whose names tell the guarantee.

Decisions are in `relay.core`; adapters keep these promises on JetStream and in memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from relay.core.asks.routing import AnswerArrived, AskArrived
from relay.core.effects import AckMail, ClearMail, DropReport, StoreOwn, WriteMail
from relay.core.events import BlobArrived, Event, MailWritten, Remembered
from relay.core.instant import Instant
from schemas.content.blobs import Reference
from schemas.reports.reports import Done
from schemas.values.identity import ContentHash, NodePath


class Clock(Protocol):
    """Time; the simulation has its own."""

    def now(self) -> Instant: ...

    async def sleep(self, seconds: float) -> None: ...


class Dice(Protocol):
    """Randomness; a seeded one makes runs replay."""

    def entropy(self, count: int) -> bytes:
        """`count` bytes that no one can guess (of a seeded one: that only the seed tells)."""
        ...

    def fraction(self) -> float:
        """Uniform in [0, 1): for jitter."""
        ...


class BusBroken(Exception):
    """The bus did not keep its promise in time; the node's run ends and starts again."""


_Failure = TypeVar("_Failure", bound=Exception)


def first_of(group: BaseExceptionGroup[_Failure]) -> _Failure:
    """What broke first, however deep the groups are in which it comes."""
    found = group.exceptions[0]
    return first_of(found) if isinstance(found, BaseExceptionGroup) else found


class MailConflict(BusBroken):
    """A slot was written by someone else since: an older instance must stop writing."""


@dataclass(frozen=True, slots=True)
class CopiesPlace:
    """Where a node's copies at its parent are: since when, where the last lay, how many there are.

    Only the node itself writes there: while it is as the node left it, nothing was lost.
    """

    since: str
    last: int
    count: int


@dataclass(frozen=True, slots=True)
class StoredCopy:
    """A copy as it lies at the parent: where, under which key, since when (ms since 1970)."""

    sequence: int
    key: str
    data: bytes
    written_ms: int


@dataclass(frozen=True, slots=True)
class CopiesPage:
    """Copies of a child, in the order in which they were written; `next` is 0 at the end."""

    copies: tuple[StoredCopy, ...] = ()
    next: int = 0
    # The child's last one, and when it came; none if it never said any.
    hello: bytes = b""
    heard_ms: int = 0


class EventQueue(Protocol):
    """The events of a bus, and the node's own among them: the one queue before the core."""

    async def put(self, event: Event) -> None:
        """Put an event of the node's own; waits while there is no room."""
        ...

    async def next_batch(self, most: int, seconds: float | None = None) -> deque[Event]:
        """What there is; empty if nothing comes in so many seconds. One reader.

        What comes from below comes at least once, in the order of each child, of each slot its last
        value. Raises BusBroken when nothing more will come.
        """
        ...

    def weigh(self, batch: Iterable[Event]) -> Iterator[Event]:
        """The events of a batch, to be dealt with one by one: what a word costs, its child pays."""
        ...

    def handled(self) -> None:
        """To be called once a batch is dealt with, and what came of it is carried out."""
        ...

    def wake(self) -> None:
        """Have a reader that waits look: something may have come to it another way."""
        ...


class Bus(Protocol):
    """A node's part of the message bus: its own streams, its link to the parent, its children.

    All writes return after the stream's quorum has kept them, or raise BusBroken. Reports, hellos
    and mail are last value per slot: a newer one may hide an older one, none is lost for good.
    """

    path: NodePath

    @property
    def inbox(self) -> EventQueue:
        """What arrives: mail, welcomes, reports, hellos, changes of the link.

        First come the last values of all children's reports. It is bounded, so that a slow node
        slows its senders, and a child that says much slows only itself.
        """
        ...

    async def start(self) -> Remembered:
        """Make missing streams, and read what all hold; unreadable slots are erased."""
        ...

    async def write(
        self,
        *,
        blobs: Mapping[ContentHash, bytes] | None = None,
        own: Iterable[StoreOwn] = (),
        mail: Sequence[WriteMail] = (),
    ) -> list[MailWritten]:
        """Keep stored values and own records, and write to children's mailboxes, side by side.

        All of it is idempotent. Own records that are to be erased go after those that are kept. The
        answers are those to `mail`, in order; raises MailConflict if `expected` is stale.
        """
        ...

    async def clear_mail(self, clear: ClearMail) -> bool:
        """Erase a slot if its last message still is the one named; whether it did."""
        ...

    async def drop_reports(self, drops: Sequence[DropReport]) -> None:
        """Erase slots of reports not written to since; what is left comes at the next start."""
        ...

    async def ack_mail(self, ack: AckMail) -> None:
        """Acknowledge all mail up to the sequence; best effort, the cursor is what counts."""
        ...

    async def reset_mail(self, sequence: int) -> int:
        """Have the mailbox delivered from `sequence` on.

        Nothing is delivered before it, after a start and after each loss of the link. Best effort
        while the link is down: a LinkChanged follows when it is up, and the session starts anew.
        Returns the number of the reading that begins: mail of an earlier one is passed over.
        """
        ...

    async def drop_blobs(self, addresses: Sequence[ContentHash]) -> None:
        """Erase stored values from the own BLOB stream; erasing one that is not there does none."""
        ...

    async def load_blob(self, reference: Reference, *, fresh: bool = False) -> BlobArrived:
        """A stored value from the own store, else from the parent.

        With its parts, if it is made of parts; value None if neither has it now, and `unheard` if
        the parent did not say so. Never raises for a missing blob or a lost link. With `fresh` the
        own store is passed over: its copy is damaged.
        """
        ...

    async def send_report(self, reports: Mapping[str, bytes]) -> bool:
        """Put report parts into slots at the parent; False if the link did not take them."""
        ...

    async def send_hello(self, data: bytes) -> bool:
        """Put the hello into `_node.self` at the parent; False if the link did not take it."""
        ...

    async def send_welcome(self, child: str, data: bytes) -> None:
        """Answer a child's hello; not kept."""
        ...

    def asks(self) -> AsyncIterator[AskArrived | AnswerArrived]:
        """Asks of the parent and answers of the children, as they come, at most once.

        Not kept, bounded, and lost while the link is down. One reader.
        """
        ...

    async def send_ask(self, child: str, verb: str, data: bytes) -> None:
        """Put an ask before a child; no other child hears it."""
        ...

    async def send_answer(self, ask: str, data: bytes) -> bool:
        """Put a part of an answer before the parent, which learns through whose account it came.

        False if the link did not take it.
        """
        ...

    async def copies_place(self) -> CopiesPlace | None:
        """Where the own copies at the parent are; None if it does not say, or has no room yet."""
        ...

    async def put_copy(self, key: str, data: bytes) -> int:
        """Put a copy of an object before the parent, instead of one with this key.

        Where it lies then; 0 if it is not known whether the parent has it.
        """
        ...

    async def erase_copies(self, *, key: str = "", before: int = 0) -> bool:
        """Erase the own copy with the key, or all that lie before a place; False: not known."""
        ...

    async def open_copies(self, child: str) -> None:
        """Have room for what the child brings up, and not for more than its share."""
        ...

    async def read_copies(self, child: str, first: int) -> CopiesPage:
        """What the child brought up, from a place on, about a megabyte of it."""
        ...

    async def add_child(self, name: str, nkey: str) -> None:
        """Open an account for the child and its mail consumer; doing it twice is harmless."""
        ...

    async def remove_child(self, name: str) -> None:
        """Cut the child off, and erase its mail, its reports and its copies; twice is harmless."""
        ...

    async def load_done(self) -> list[Done]:
        """All that the syncer applied."""
        ...

    async def store_done(self, records: Mapping[str, Done | None]) -> None:
        """Keep or erase (None) records of the syncer's; each key is one subject token."""
        ...

    async def done_is_partial(self) -> bool:
        """Whether records of the syncer's were lost, and `complete_done` was not called since."""
        ...

    async def complete_done(self) -> None:
        """Note that the syncer found what was lost of its records."""
        ...

    async def close(self) -> None: ...
