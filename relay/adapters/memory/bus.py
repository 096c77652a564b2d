"""The message bus in memory: the same promises as on JetStream, for a whole tree in one process.

What streams would keep lies in the `MemoryNetwork` and survives the buses, which come and go like
the relays' processes. A bus holds only how far it has read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

from relay.adapters.memory.streams import Kept, MemoryStreams
from relay.core.asking import AnswerArrived, AskArrived
from relay.core.effects import AckMail, ClearMail, DropReport, StoreOwn, WriteMail
from relay.core.events import (
    BlobArrived,
    Event,
    HeartbeatArrived,
    LinkChanged,
    MailArrived,
    MailSlot,
    MailWritten,
    OwnRecord,
    Remembered,
    ReportArrived,
    SessionArrived,
)
from relay.ports import BusBroken, MailConflict
from schemas.blobs import Reference, parts_of
from schemas.identity import ContentHash, MailKey, NodePath
from schemas.refusals import BlobRefused, RecordRefused
from schemas.reports import Done, SessionMessage, decode
from schemas.subjects import NODE_SELF

SESSIONS_MAX = 64
ASKS_MAX = 64
_HEARTBEAT = "_node." + NODE_SELF


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
        self._network = network
        self._streams = network.streams(path)
        self._news = asyncio.Event()
        self._links: deque[bool] = deque()
        self._linked = False
        self._sessions: deque[SessionMessage] = deque(maxlen=SESSIONS_MAX)
        self._asks: deque[AskArrived | AnswerArrived] = deque(maxlen=ASKS_MAX)
        self._asked = asyncio.Event()
        self._reports_read = 0
        self._mail_read = 0
        self._reading = 0
        self._started = False

    async def start(self) -> Remembered:
        self._network.attach(self)
        self._started = True
        if not self.path.is_root:
            parent = self._network.streams(self.path.parent)
            self._mail_read = parent.acknowledged.get(self.path.name, 0)
        self.link_changed(up=self._network.is_linked(self.path))
        return Remembered(
            own=tuple(self._streams.own.values()),
            mail=tuple(
                _slot(child, MailKey(key), kept)
                for (child, key), kept in self._streams.mail.items()
            ),
            blobs=frozenset(self._streams.blobs),
            heard=frozenset(
                child for (child, key), _ in self._streams.stat.items() if key == _HEARTBEAT
            ),
        )

    async def close(self) -> None:
        self._network.detach(self)
        self._started = False
        self._news.set()
        self._asked.set()

    def link_changed(self, *, up: bool) -> None:
        """The network's word; the node learns of each change."""
        if up != self._linked:
            self._linked = up
            self._links.append(up)
        self._news.set()

    def session_came(self, message: SessionMessage) -> None:
        self._sessions.append(message)
        self._news.set()

    def wake(self) -> None:
        """Something that this bus reads has changed."""
        self._news.set()

    async def events(self) -> AsyncIterator[Event]:
        for event in self._new_reports():
            yield event
        while self._started:
            self._news.clear()
            quiet = True
            for source in (self._new_links, self._new_sessions, self._new_reports, self._new_mail):
                for event in source():
                    quiet = False
                    yield event
            if quiet:
                await self._news.wait()
        raise BusBroken("the bus is closed")

    def _new_links(self) -> Iterator[Event]:
        while self._links:
            yield LinkChanged(up=self._links.popleft())

    def _new_sessions(self) -> Iterator[Event]:
        while self._sessions:
            yield SessionArrived(self._sessions.popleft())

    def _new_reports(self) -> Iterator[Event]:
        for (child, key), kept in self._streams.stat.after(self._reports_read):
            self._reports_read = kept.sequence
            if key == _HEARTBEAT:
                yield HeartbeatArrived(child, kept.data)
            else:
                yield ReportArrived(child, key, kept.data, kept.sequence)

    def _new_mail(self) -> Iterator[Event]:
        if not self._network.is_linked(self.path):
            return
        mail = self._network.streams(self.path.parent).mail
        while self._linked:
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
                hops, more = (kept.mail.hops, kept.mail.more) if kept.mail else ((), False)
                yield MailArrived(
                    kept.sequence, MailKey(key), kept.data, pending, self._reading, hops, more
                )

    async def store_own(self, writes: Sequence[StoreOwn]) -> None:
        for write in writes:
            self._streams.own.pop(write.key, None)
            if write.data is not None:
                record = OwnRecord(
                    write.key, write.data, write.incarnation, write.sequence, write.hops
                )
                self._streams.own[write.key] = record

    async def write_mail(self, writes: Sequence[WriteMail]) -> list[MailWritten]:
        written = []
        for write in writes:
            slot = (write.child, str(write.key))
            before = self._streams.mail.get(slot)
            if (before.sequence if before else 0) != write.expected:
                raise MailConflict(f"{write.child} {write.key} was written by another since")
            sequence = self._streams.mail.put(slot, write.data, write)
            written.append(MailWritten(write.child, write.key, write.generation, sequence))
            self._wake_child(write.child)
        return written

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
            if kept is not None and kept.sequence == drop.sequence:
                stat.erase((drop.child, drop.key))

    async def ack_mail(self, ack: AckMail) -> None:
        if self._linked:
            acknowledged = self._network.streams(self.path.parent).acknowledged
            name = self.path.name
            acknowledged[name] = max(acknowledged.get(name, 0), ack.sequence)

    async def reset_mail(self, sequence: int) -> int:
        self._reading += 1
        self._mail_read = max(sequence - 1, 0)
        if self._linked:
            self._network.streams(self.path.parent).acknowledged[self.path.name] = self._mail_read
        self._news.set()
        return self._reading

    async def keep_blobs(self, values: Mapping[ContentHash, bytes]) -> None:
        self._streams.blobs.update(values)

    async def drop_blobs(self, addresses: Sequence[ContentHash]) -> None:
        for address in addresses:
            self._streams.blobs.pop(address, None)

    def blob_at_hand(self, reference: Reference) -> BlobArrived | None:  # noqa: ARG002 - none is
        return None

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

    async def send_heartbeat(self, data: bytes) -> bool:
        return self._send({_HEARTBEAT: data})

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

    async def send_session(self, child: str, data: bytes) -> None:
        bus = self._network.bus(self.path.child(child))
        if bus is None or not self._network.is_linked(bus.path):
            return
        try:
            bus.session_came(decode(SessionMessage, data))
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

    async def send_answer(self, ask: str, data: bytes) -> bool:  # noqa: ARG002 - the port's
        if not self._linked:
            return False
        parent = self._network.bus(self.path.parent)
        if parent is not None:
            parent.asked(AnswerArrived(self.path.name, data))
        return True

    async def add_child(self, name: str, nkey: str) -> None:
        self._streams.children[name] = nkey
        self._network.link_changed(self.path.child(name))

    async def remove_child(self, name: str) -> None:
        self._streams.children.pop(name, None)
        self._streams.acknowledged.pop(name, None)
        self._streams.mail.erase_child(name)
        self._streams.stat.erase_child(name)
        self._network.link_changed(self.path.child(name))

    async def load_done(self) -> list[Done]:
        return list(self._streams.done.values())

    async def store_done(self, key: str, done: Done | None) -> None:
        self._streams.done.pop(key, None)
        if done is not None:
            self._streams.done[key] = done

    def _wake_child(self, name: str) -> None:
        bus = self._network.bus(self.path.child(name))
        if bus is not None:
            bus.wake()


def _slot(child: str, key: MailKey, kept: Kept) -> MailSlot:
    write = kept.mail
    assert write is not None
    hashed, content = write.payload_hash, write.has_body
    return MailSlot(child, key, kept.sequence, write.generation, hashed, content, write.more)
