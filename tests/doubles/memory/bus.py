"""The message bus in memory: the same promises as on JetStream, for a whole tree in one process.

What streams would keep lies in the `MemoryNetwork` and survives the buses, which come and go like
the relays' processes. A bus holds only how far it has read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence

from relay.core.asks.routing import AnswerArrived, AskArrived
from relay.core.effects import AckMail, ClearMail, DropReport, StoreOwn, WriteMail
from relay.core.events import (
    BlobArrived,
    Event,
    HelloArrived,
    LinkChanged,
    MailArrived,
    MailSlot,
    MailWritten,
    OwnRecord,
    Remembered,
    ReportArrived,
    Welcomed,
)
from relay.ports import BusBroken, CopiesPage, CopiesPlace, MailConflict
from relay.shell.inbox import Inbox
from schemas.content.blobs import Reference, parts_of
from schemas.content.carried import with_carried, without_carried
from schemas.reports.link import Welcome
from schemas.reports.reports import Done
from schemas.values.identity import ContentHash, MailKey, NodePath
from schemas.values.refusals import BlobRefused, RecordRefused
from schemas.values.subjects import NODE_SELF
from schemas.values.wire import decode
from tests.doubles.memory.copies import ChildCopies
from tests.doubles.memory.streams import Kept, MemoryStreams

WELCOMES_MAX = 64
ASKS_MAX = 256
_HELLO = "_node." + NODE_SELF


class MemoryNetwork:
    """The streams of all nodes, the links between them, and which buses are started."""

    def __init__(self) -> None:
        self._streams: dict[NodePath, MemoryStreams] = {}
        self._buses: dict[NodePath, MemoryBus] = {}
        self._cut: set[NodePath] = set()

    def streams(self, path: NodePath) -> MemoryStreams:
        """What the node at the path keeps."""
        return self._streams.setdefault(path, MemoryStreams())

    def take_along(self, old: NodePath, new: NodePath) -> None:
        """Hang what a node keeps, which does not run now, at another path."""
        self._streams[new] = self._streams.pop(old)

    def cut(self, path: NodePath) -> None:
        """Break the link between a node and its parent."""
        self._cut.add(path)
        self.link_changed(path)

    def heal(self, path: NodePath) -> None:
        """Mend what `cut` broke."""
        self._cut.discard(path)
        self.link_changed(path)

    def is_linked(self, path: NodePath) -> bool:
        """Whether the node can reach its parent, and has an account there."""
        if path.is_root or path in self._cut:
            return False
        return path.name in self.streams(path.parent).children

    def link_changed(self, path: NodePath) -> None:
        bus = self._buses.get(path)
        if bus is not None:
            bus.link_changed(up=self.is_linked(path))

    def attach(self, bus: MemoryBus) -> None:
        if self._buses.get(bus.path, bus) is not bus:
            raise BusBroken(f"another bus is started at {bus.path}: close it first")
        self._buses[bus.path] = bus

    def detach(self, bus: MemoryBus) -> None:
        if self._buses.get(bus.path) is bus:
            del self._buses[bus.path]

    def bus(self, path: NodePath) -> MemoryBus | None:
        return self._buses.get(path)


class MemoryBus:
    """A node's bus; see `relay.ports.Bus`."""

    def __init__(self, network: MemoryNetwork, path: NodePath) -> None:
        self.path = path
        self.inbox = Inbox()
        self._network = network
        self._streams = network.streams(path)
        self._news = asyncio.Event()
        self._links: deque[bool] = deque()
        self._linked = False
        self._welcomes: deque[Welcome] = deque(maxlen=WELCOMES_MAX)
        self._asks: deque[AskArrived | AnswerArrived] = deque(maxlen=ASKS_MAX)
        self._asked = asyncio.Event()
        self._reports_read = self._reports_of_before = 0
        # Up to where the mailbox is read; None until it is read from somewhere in this link.
        self._mail_read: int | None = None
        self._started = False
        self._pumping: asyncio.Task[None] | None = None

    async def start(self) -> Remembered:
        self._network.attach(self)
        self._started = True
        self._reports_of_before = self._streams.stat.last
        self.link_changed(up=self._network.is_linked(self.path))
        self._pumping = asyncio.get_running_loop().create_task(self._pump())
        return Remembered(
            own=tuple(self._streams.own.values()),
            mail=tuple(
                _slot(child, MailKey(key), kept)
                for (child, key), kept in self._streams.mail.items()
            ),
            blobs=frozenset(self._streams.blobs),
            heard=frozenset(
                child for (child, key), _ in self._streams.stat.items() if key == _HELLO
            ),
        )

    async def close(self) -> None:
        self._network.detach(self)
        self._started = False
        self._asked.set()
        if self._pumping is not None:
            self._pumping.cancel()
            await asyncio.wait([self._pumping])
        self.inbox.fail(BusBroken("the bus is closed"))

    def link_changed(self, *, up: bool) -> None:
        """The network's word; the node learns of each change."""
        if up != self._linked:
            self._linked, self._mail_read = up, None
            self._links.append(up)
        self._news.set()

    def welcome_came(self, message: Welcome) -> None:
        self._welcomes.append(message)
        self._news.set()

    def wake(self) -> None:
        """Something that this bus reads has changed."""
        self._news.set()

    async def _pump(self) -> None:
        """Put what is new into the inbox, without end."""
        while True:
            self._news.clear()
            for source in (self._new_reports, self._new_links, self._new_welcomes, self._new_mail):
                for event in source():
                    if isinstance(event, ReportArrived | HelloArrived):
                        await self.inbox.put_from_child(event)
                    else:
                        await self.inbox.put(event)
            await self._news.wait()

    def _new_links(self) -> Iterator[Event]:
        while self._links:
            yield LinkChanged(up=self._links.popleft())

    def _new_welcomes(self) -> Iterator[Event]:
        while self._welcomes:
            yield Welcomed(self._welcomes.popleft())

    def _new_reports(self) -> Iterator[Event]:
        for (child, key), kept in self._streams.stat.after(self._reports_read):
            self._reports_read = kept.sequence
            if key == _HELLO:
                is_former = kept.sequence <= self._reports_of_before
                yield HelloArrived(child, kept.data, 0 if is_former else None)
            else:
                yield ReportArrived(child, key, kept.data, kept.sequence)

    def _new_mail(self) -> Iterator[Event]:
        if not self._network.is_linked(self.path):
            return
        mail = self._network.streams(self.path.parent).mail
        while self._linked and self._mail_read is not None:
            batch = mail.after(self._mail_read, self.path.name)
            if not batch:
                return
            reading = self._mail_read
            for place, ((_, key), kept) in enumerate(batch):
                if self._mail_read != reading or not self._linked:
                    break
                if mail.get((self.path.name, key)) is not kept:
                    continue
                reading = self._mail_read = kept.sequence
                pending = (
                    len(batch) - place - 1 + mail.count_after(batch[-1][1].sequence, self.path.name)
                )
                hops = kept.mail.hops if kept.mail else ()
                data, carried = without_carried(kept.data)
                yield MailArrived(
                    kept.sequence, MailKey(key), data, pending, self.inbox.reading, hops, carried
                )

    async def write(
        self,
        *,
        blobs: Mapping[ContentHash, bytes] | None = None,
        own: Iterable[StoreOwn] = (),
        mail: Sequence[WriteMail] = (),
    ) -> list[MailWritten]:
        self._streams.blobs.update(blobs or {})
        for write in own:
            self._streams.own.pop(write.key, None)
            if write.data is not None:
                record = OwnRecord(
                    write.key, write.data, write.incarnation, write.sequence, write.hops
                )
                self._streams.own[write.key] = record

        return [self._write_letter(letter) for letter in mail]

    def _write_letter(self, letter: WriteMail) -> MailWritten:
        slot = (letter.child, str(letter.key))
        before = self._streams.mail.get(slot)
        if (before.sequence if before else 0) != letter.expected:
            raise MailConflict(f"{letter.child} {letter.key} was written by another since")
        message = with_carried(letter.data, letter.carried)
        sequence = self._streams.mail.put(slot, message, letter)
        self._wake_child(letter.child)
        return MailWritten(letter.child, letter.key, letter.generation, sequence)

    async def clear_mail(self, clear: ClearMail) -> bool:
        slot = (clear.child, str(clear.key))
        kept = self._streams.mail.get(slot)
        if kept is None or kept.sequence != clear.sequence:
            return False
        self._streams.mail.erase(slot)
        return True

    async def drop_reports(self, drops: Sequence[DropReport]) -> None:
        stat = self._streams.stat
        for drop in drops:
            kept = stat.get((drop.child, drop.key))
            if kept is not None and kept.sequence <= drop.sequence:
                stat.erase((drop.child, drop.key))

    async def ack_mail(self, ack: AckMail) -> None:
        """Nothing hangs on it."""

    async def reset_mail(self, sequence: int) -> int:
        reading = self.inbox.forget_mail()
        if self._linked:
            self._mail_read = max(sequence - 1, 0)
        self._news.set()
        return reading

    async def drop_blobs(self, addresses: Sequence[ContentHash]) -> None:
        for address in addresses:
            self._streams.blobs.pop(address, None)

    async def load_blob(self, reference: Reference, *, fresh: bool = False) -> BlobArrived:
        unheard = not self._linked and not self.path.is_root
        value, local = self._find(reference.address, fresh=fresh)
        if value is None:
            return BlobArrived(reference, None, local=False, unheard=unheard)
        try:
            wanted = parts_of(reference, value)
        except BlobRefused:
            wanted = ()
        parts = []
        for part in wanted:
            found, part_local = self._find(part.address, fresh=fresh)
            if found is None:
                return BlobArrived(reference, None, local=False, unheard=unheard)
            parts.append((part.address, found))
            local = local and part_local
        return BlobArrived(reference, value, local, tuple(parts))

    def _find(self, address: ContentHash, *, fresh: bool) -> tuple[bytes | None, bool]:
        value = None if fresh else self._streams.blobs.get(address)
        if value is not None or not self._linked:
            return value, value is not None
        return self._network.streams(self.path.parent).blobs.get(address), False

    async def send_report(self, reports: Mapping[str, bytes]) -> bool:
        return self._send(reports)

    async def send_hello(self, data: bytes) -> bool:
        return self._send({_HELLO: data})

    def _send(self, values: Mapping[str, bytes]) -> bool:
        if not self._linked:
            return False
        stat = self._network.streams(self.path.parent).stat
        for key, data in values.items():
            stat.put((self.path.name, key), data)
        parent = self._network.bus(self.path.parent)
        if parent is not None:
            parent.wake()
        return True

    async def send_welcome(self, child: str, data: bytes) -> None:
        bus = self._network.bus(self.path.child(child))
        if bus is None or not self._network.is_linked(bus.path):
            return
        try:
            bus.welcome_came(decode(Welcome, data))
        except RecordRefused:
            return

    async def asks(self) -> AsyncIterator[AskArrived | AnswerArrived]:
        while self._started:
            self._asked.clear()
            while self._asks:
                yield self._asks.popleft()
            await self._asked.wait()
        raise BusBroken("the bus is closed")

    def asked(self, heard: AskArrived | AnswerArrived) -> None:
        """The network's word: someone asks, or answers."""
        self._asks.append(heard)
        self._asked.set()

    async def send_ask(self, child: str, verb: str, data: bytes) -> None:
        bus = self._network.bus(self.path.child(child))
        if bus is not None and self._network.is_linked(bus.path):
            bus.asked(AskArrived(verb, data))

    async def send_answer(self, ask: str, data: bytes) -> bool:
        if not self._linked:
            return False
        parent = self._network.bus(self.path.parent)
        if parent is not None:
            parent.asked(AnswerArrived(self.path.name, data))
        return True

    async def copies_place(self) -> CopiesPlace | None:
        copies = self._own_copies()
        return copies.place() if copies is not None else None

    async def put_copy(self, key: str, data: bytes) -> int:
        copies = self._own_copies()
        return copies.put(key, data) if copies is not None else 0

    async def erase_copies(self, *, key: str = "", before: int = 0) -> bool:
        copies = self._own_copies()
        if copies is not None:
            copies.erase(key, before)
        return copies is not None

    async def open_copies(self, child: str) -> None:
        if child not in self._streams.copies:
            self._streams.copies_made += 1
            self._streams.copies[child] = ChildCopies(str(self._streams.copies_made))

    async def read_copies(self, child: str, first: int) -> CopiesPage:
        copies, hello = self._streams.copies.get(child), self._streams.stat.get((child, _HELLO))
        return copies.page(first, hello.data if hello else b"") if copies else CopiesPage()

    def _own_copies(self) -> ChildCopies | None:
        if not self._linked:
            return None
        return self._network.streams(self.path.parent).copies.get(self.path.name)

    async def add_child(self, name: str, nkey: str) -> None:
        self._streams.children[name] = nkey
        self._network.link_changed(self.path.child(name))

    async def remove_child(self, name: str) -> None:
        self._streams.children.pop(name, None)
        self._streams.mail.erase_child(name)
        self._streams.stat.erase_child(name)
        self._streams.copies.pop(name, None)
        self._network.link_changed(self.path.child(name))

    async def load_done(self) -> list[Done]:
        return list(self._streams.done.values())

    async def store_done(self, records: Mapping[str, Done | None]) -> None:
        for key, done in records.items():
            self._streams.done.pop(key, None)
            if done is not None:
                self._streams.done[key] = done

    async def done_is_partial(self) -> bool:
        return False

    async def complete_done(self) -> None:
        """Memory loses nothing."""

    def _wake_child(self, name: str) -> None:
        bus = self._network.bus(self.path.child(name))
        if bus is not None:
            bus.wake()


def _slot(child: str, key: MailKey, kept: Kept) -> MailSlot:
    write = kept.mail
    assert write is not None
    hashed, content = write.payload_hash, write.has_body
    return MailSlot(child, key, kept.sequence, write.generation, hashed, content)
