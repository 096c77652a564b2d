"""The message bus on NATS JetStream keeps every promise of `relay.ports.Bus`.

The node holds two connections to that server: as account RELAY, which has the streams, and as
account UPLINK, at which the leaf link to the parent ends. The centre has no UPLINK.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from nats.errors import Error as NatsError

from relay.adapters.jetstream.asks import AskLines
from relay.adapters.jetstream.blobs import Blobs
from relay.adapters.jetstream.child_reports import ChildReportsReader
from relay.adapters.jetstream.connection import (
    CLUSTER_ANSWER_SECONDS,
    REQUEST_SECONDS,
    Connection,
    JetStreamRefused,
)
from relay.adapters.jetstream.copies import OwnCopies, read_copies
from relay.adapters.jetstream.fence import Tenure
from relay.adapters.jetstream.fenced_streams import FencedStreams
from relay.adapters.jetstream.jetstream_leader import until_led
from relay.adapters.jetstream.mailboxes import Mailboxes
from relay.adapters.jetstream.publish import Publisher
from relay.adapters.jetstream.records import (
    mail_slot,
    outgoing_done,
    outgoing_mail,
    outgoing_own,
    outgoing_reports,
    own_record,
)
from relay.adapters.jetstream.server_watch import ServerWatch
from relay.adapters.jetstream.stream_mending import (
    damaged_streams,
    go_on_mending,
    holds_messages,
    mend_stream,
)
from relay.adapters.jetstream.stream_reader import Stored, StreamDamaged, StreamReader
from relay.adapters.jetstream.streams import (
    children_heard,
    delete_message,
    delete_messages,
    erase_child,
    last_message,
    last_sequences,
    make_copies,
    make_streams,
    purge,
    purge_all,
    purge_through,
    stream_names,
)
from relay.adapters.jetstream.uplink import Uplink
from relay.core.asks.routing import AnswerArrived, AskArrived
from relay.core.effects import AckMail, ClearMail, DropReport, StoreOwn, WriteMail
from relay.core.events import (
    BlobArrived,
    MailSlot,
    MailWritten,
    OwnRecord,
    Remembered,
)
from relay.ports import BusBroken, Clock, CopiesPage, CopiesPlace, Dice
from relay.shell.inbox import Inbox
from schemas.content.blobs import Reference
from schemas.content.carried import without_carried
from schemas.reports.reports import Done
from schemas.values import subjects
from schemas.values.identity import ContentHash, NodePath
from schemas.values.wire import decode

if TYPE_CHECKING:
    from relay.adapters.jetstream.member_servers import MemberServer

logger = logging.getLogger(__name__)

T = TypeVar("T")


class ServerControl(Protocol):
    """The node's own server, as far as children come and go."""

    async def add_child(self, name: str, nkey: str) -> None: ...

    async def remove_child(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class BusAddress:
    """The node's own server, and the seeds that open its accounts; the centre has no uplink."""

    url: str
    relay_seed: str = field(repr=False)
    uplink_seed: str | None = field(default=None, repr=False)
    # With it the loss and return of the link are heard of at once; without it by asking.
    system_seed: str | None = field(default=None, repr=False)
    # At how many servers of the node its streams are kept: 3 if it has as many members.
    replicas: int = 1
    # Of the other members' servers, at which UPLINK goes on when `url` has no link to the parent.
    others: tuple[str, ...] = ()


class JetStreamBus:
    """A node's bus; see `relay.ports.Bus`."""

    def __init__(
        self,
        path: NodePath,
        address: BusAddress,
        server: ServerControl,
        *,
        clock: Clock,
        dice: Dice,
        tenure: Tenure | None = None,
    ) -> None:
        """With a `tenure` the node has several members, and this one is active for a time."""
        self.path = path
        self._server = server
        self._clock = clock
        self.inbox = Inbox()
        label = f"leafcast {path}"
        asked_again = CLUSTER_ANSWER_SECONDS if address.replicas > 1 else REQUEST_SECONDS
        url, seed = address.url, address.relay_seed
        self._relay = Connection(url, seed, label, "_INBOX.relay", asked_again)
        # What comes from below has a socket of its own: no answer waits behind a flood of it.
        self._below = Connection(url, seed, f"{label} below", "_INBOX.below", asked_again)
        self._connections = [self._relay, self._below]
        self._publisher = Publisher(self._relay)
        self._fenced = FencedStreams(self._relay, path, tenure) if tenure is not None else None
        self._uplink: Uplink | None = None
        self._system: Connection | None = None
        if address.system_seed is not None:
            prefix = "_INBOX.system"
            self._system = Connection(address.url, address.system_seed, f"{label} system", prefix)
            self._connections.append(self._system)
        if address.uplink_seed is not None:
            urls = ",".join([address.url, *address.others])
            up = Connection(urls, address.uplink_seed, f"{label} uplink", "_INBOX.uplink")
            self._connections.append(up)
            self._uplink = Uplink(up, path, self.inbox, clock, dice, self._system)
        self._copies = OwnCopies(self._uplink, path) if self._uplink is not None else None
        uplink = self._connections[-1] if self._uplink is not None else None
        self._asks = AskLines(path, self._below, uplink)
        self._blobs = Blobs(self._relay, path, self._uplink, address.replicas, self._fenced)
        self._reports = ChildReportsReader(self._below, clock, path, self.inbox)
        self._replicas = address.replicas
        self._mailboxes = Mailboxes(self._relay, clock, path, address.replicas, self._confirm)
        self._servers: ServerWatch | None = None
        if address.replicas > 1 and self._system is not None:
            self._servers = ServerWatch(self._system, clock, address.replicas)
            self._servers.when_ended.append(self._servers_ended)
        self._done_is_partial = self._own_was_mended = False
        self._running: asyncio.Task[None] | None = None

    @property
    def linked(self) -> bool:
        """Whether the parent answers; the centre has none, and lacks none."""
        return self._uplink is None or self._uplink.linked

    @property
    def is_parent_silent(self) -> bool:
        """Whether nothing answered when the parent was asked last, be it to refuse."""
        return self._uplink is not None and self._uplink.is_silent

    @property
    def server_version(self) -> str:
        """Of the node's nats-server, such as 2.15.1."""
        return self._relay.server_version

    async def member_servers(self) -> tuple[MemberServer, ...]:
        """The servers of the node's members; none if it has but one. Raises BusBroken."""
        if self._replicas <= 1:
            return ()
        # Here, as nearly all nodes have but one.
        from relay.adapters.jetstream.member_servers import member_servers  # noqa: PLC0415

        return await member_servers(self._relay)

    async def start(self) -> Remembered:
        try:
            return await self._start()
        except BaseException:
            await self.close()
            raise

    async def _start(self) -> Remembered:
        for connection in self._connections:
            await connection.open()
        await self._publisher.start()
        if self._replicas > 1:
            await until_led(self._relay, self._clock)
        await self._confirm()
        await self._make_streams()
        if self._servers is not None:
            await self._servers.ask()
        if self._fenced is not None:
            await self._fenced.take()
        await self._mailboxes.begin()
        await self._mend_what_others_read()
        heard = await children_heard(self._relay, self.path)
        self._reports.heard_before(heard.names, heard.last)
        remembered = await self._remember(heard.names)
        if self._uplink is not None:
            await self._uplink.start()
        await self._asks.start()
        # Owned by the bus from start to close, which no `async with` of a caller's can span.
        self._running = asyncio.get_running_loop().create_task(self._run(), name=f"bus:{self.path}")
        self._running.add_done_callback(self._ended)
        return remembered

    async def _make_streams(self) -> None:
        """Make the streams that are missing, and anew those that the server had left out.

        It leaves out one whose settings are damaged. Once that is made it has its messages again,
        but for those that lie behind a damaged one in a file, and says nothing of these.
        """
        if self._replicas > 1:
            await make_streams(self._relay, self.path, self._replicas)
            await until_led(self._relay, self._clock, subjects.STREAMS)
            return
        await go_on_mending(self._relay, self._clock)
        there = await stream_names(self._relay)
        await make_streams(self._relay, self.path)
        for stream in subjects.STREAMS:
            if stream not in there and await holds_messages(self._relay, stream):
                logger.error("%s: the settings of the stream %s are damaged", self.path, stream)
                await self._mend(stream)

    async def _mend(self, stream: str) -> None:
        """Keep of a stream what can be read."""
        cursor = ""
        if stream == "OWN":
            self._own_was_mended = True
            # Without its cursor the node has no memory: it reads its mailbox from the start, and
            # nothing goes for a record that was lost before it reaches a snapshot again.
            cursor = subjects.own(self.path, subjects.CURSOR_KEY)
        if stream == "DONE":
            # Noted first: whoever ends amid the mending finds the note again.
            note = StoreOwn(subjects.DONE_LOST_KEY, b"")
            await self._publisher.publish([outgoing_own(self.path, note)])
        await mend_stream(self._relay, self._clock, stream, without=cursor)

    async def _confirm(self) -> None:
        """Be sure that this member is the active one, before what no fence holds back.

        Raises BusBroken.
        """
        if self._fenced is not None:
            await self._fenced.tenure.confirm()

    async def _mend_what_others_read(self) -> None:
        """Make anew what is damaged of the streams that `_remember` does not read."""
        if self._replicas > 1:
            return
        copies = await stream_names(self._relay, subjects.children_copies(self.path))
        streams = ("STAT", "DONE", *copies)
        # Children reach their parent's server before its node has begun.
        for stream in await damaged_streams(self._relay, self._clock, streams):
            await self._mend(stream)

    async def _remember(self, heard: frozenset[str]) -> Remembered:
        """What the streams hold; those that are damaged are made anew of what can be read."""
        while True:
            try:
                own = tuple(await self._read_own())
                blobs = await self._blobs.addresses(self._clock)
                if self._fenced is not None:
                    await self._fenced.sweep()
                self._done_is_partial = any(it.key == subjects.DONE_LOST_KEY for it in own)
                mail = await self._read_mail()
                if self._uplink is None and self._own_was_mended:
                    own += tuple(await self._bring_back(own, mail))
                return Remembered(
                    own=own,
                    mail=tuple(mail),
                    blobs=blobs,
                    heard=heard,
                )
            except StreamDamaged as damage:
                if self._replicas > 1:
                    raise  # Read again at the next start, which may be at another server.
                logger.error("%s: %s", self.path, damage)  # noqa: TRY400 - it says all
                await self._mend(damage.stream)

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reports.run(), name=f"reports:{self.path}")
            group.create_task(self._mailboxes.keep(), name=f"mailboxes:{self.path}")
            if self._servers is not None:
                group.create_task(self._servers.run(), name=f"servers:{self.path}")
            if self._uplink is not None:
                group.create_task(self._uplink.run(), name=f"uplink:{self.path}")

    def _ended(self, running: asyncio.Task[None]) -> None:
        error = None if running.cancelled() else running.exception()
        self.inbox.fail(error or BusBroken("the bus is closed"))

    async def close(self) -> None:
        running, self._running = self._running, None
        self._asks.close()
        if running is not None:
            running.cancel()
            await asyncio.wait([running])
        for connection in self._connections:
            await connection.close()

    async def write(
        self,
        *,
        blobs: Mapping[ContentHash, bytes] | None = None,
        own: Iterable[StoreOwn] = (),
        mail: Sequence[WriteMail] = (),
    ) -> list[MailWritten]:
        # Only the last word on a key is kept. Of one connection the server takes content first.
        last = {write.key: write for write in own}
        kept = [outgoing_own(self.path, w) for w in last.values() if w.data is not None]
        erased = [subjects.own(self.path, w.key) for w in last.values() if w.data is None]
        content, letters = self._blobs.outgoing(blobs or {}), outgoing_mail(self.path, mail)
        if self._fenced is not None:
            await self._fenced.write(content, kept, erased)
            sequences = await self._publisher.publish([*letters])
        else:
            sequences = await self._publisher.publish([*content, *kept, *letters])
            await purge_all(self._relay, "OWN", erased)
        return [
            MailWritten(write.child, write.key, write.generation, sequence)
            for write, sequence in zip(mail, sequences[len(sequences) - len(mail) :], strict=True)
        ]

    async def clear_mail(self, clear: ClearMail) -> bool:
        return await delete_message(self._relay, "MAIL", clear.sequence)

    async def drop_reports(self, drops: Sequence[DropReport]) -> None:
        older = {
            subjects.stat(self.path.child(drop.child), drop.key): drop.sequence
            for drop in drops
            if drop.older
        }
        try:
            await delete_messages(self._relay, "STAT", [d.sequence for d in drops if not d.older])
            await purge_through(self._relay, "STAT", older)
        except BusBroken as error:
            logger.debug("%s: reports are erased at the next start: %s", self.path, error)

    async def ack_mail(self, ack: AckMail) -> None:
        if self._uplink is not None:
            await self._uplink.mailbox.acknowledge(ack.sequence)

    async def reset_mail(self, sequence: int) -> int:
        return await self._uplink.mailbox.read_from(sequence) if self._uplink else 0

    async def drop_blobs(self, addresses: Sequence[ContentHash]) -> None:
        await self._blobs.drop(addresses)

    async def load_blob(self, reference: Reference, *, fresh: bool = False) -> BlobArrived:
        return await self._blobs.load(reference, fresh=fresh)

    async def send_report(self, reports: Mapping[str, bytes]) -> bool:
        values = outgoing_reports(self.path, reports)
        return self._uplink is not None and await self._uplink.send(values)

    async def send_hello(self, data: bytes) -> bool:
        values = {subjects.node_self(self.path): data}
        return self._uplink is not None and await self._uplink.send(values)

    async def send_welcome(self, child: str, data: bytes) -> None:
        await self._relay.ready()
        try:
            await self._relay.client.publish(subjects.welcome(child), data)
        except (NatsError, OSError) as error:
            raise BusBroken(f"the welcome of {child} could not be sent: {error}") from error

    def asks(self) -> AsyncIterator[AskArrived | AnswerArrived]:
        return self._asks.heard()

    async def send_ask(self, child: str, verb: str, data: bytes) -> None:
        await self._asks.send_ask(child, verb, data)

    async def send_answer(self, ask: str, data: bytes) -> bool:
        if self._fenced is not None:
            await self._fenced.tenure.settled()
        return await self._asks.send_answer(ask, data)

    async def copies_place(self) -> CopiesPlace | None:
        return await self._copies.place() if self._copies is not None else None

    async def put_copy(self, key: str, data: bytes) -> int:
        return await self._copies.put(key, data) if self._copies is not None else 0

    async def erase_copies(self, *, key: str = "", before: int = 0) -> bool:
        return self._copies is not None and await self._copies.erase(key, before)

    async def open_copies(self, child: str) -> None:
        await self._confirm()
        try:
            await make_copies(self._relay, self.path, child, self._replicas)
        except JetStreamRefused as error:
            # Then the child finds no room, and says so; all else goes on.
            logger.warning("%s: no room for what %s brings up: %s", self.path, child, error)

    async def read_copies(self, child: str, first: int) -> CopiesPage:
        return await read_copies(self._relay, self.path, child, first)

    async def add_child(self, name: str, nkey: str) -> None:
        # Known before it can say anything.
        self._reports.joined(name)
        await self._confirm()
        await self._server.add_child(name, nkey)
        await self._mailboxes.add(name)

    async def remove_child(self, name: str) -> None:
        await self._confirm()
        await self._server.remove_child(name)
        self._mailboxes.forget(name)
        self._reports.left(name)
        through = None
        if self._fenced is not None:
            # Read before it is confirmed: what another member wrote since is not erased.
            through = await last_sequences(self._relay, ("MAIL", "STAT"))
            await self._confirm()
        await erase_child(self._relay, self.path, name, through)

    def _servers_ended(self, servers: frozenset[str]) -> None:
        """What reads a stream by a consumer at one of these hears nothing more of it."""
        self._mailboxes.servers_ended(servers)
        self._below.read_anew()

    async def load_done(self) -> list[Done]:
        return await self._read_last("DONE", lambda stored: decode(Done, stored.data))

    async def store_done(self, records: Mapping[str, Done | None]) -> None:
        kept = {key: done for key, done in records.items() if done is not None}
        gone = [subjects.done(self.path, key) for key in records.keys() - kept.keys()]
        if kept:
            messages = [outgoing_done(self.path, key, done) for key, done in kept.items()]
            await self._publisher.publish(messages)
        if gone:
            await purge_all(self._relay, "DONE", gone)

    async def done_is_partial(self) -> bool:
        return self._done_is_partial

    async def complete_done(self) -> None:
        await purge(self._relay, "OWN", subjects.own(self.path, subjects.DONE_LOST_KEY))
        self._done_is_partial = False

    async def _read_own(self) -> list[OwnRecord]:
        return await self._read_last("OWN", own_record)

    async def _read_last(self, stream: str, read: Callable[[Stored], T]) -> list[T]:
        """What the last message of each subject says, in their order.

        A server that was killed in the middle of a write may still have the one before it.
        """
        found: dict[str, T] = {}

        async def take(stored: Stored) -> None:
            found.pop(stored.subject, None)
            if self._reads(stream, stored):
                found[stored.subject] = read(stored)

        through = self._through(stream)
        await StreamReader(self._relay, self._clock, stream, through=through).read_all(take)
        return list(found.values())

    async def _bring_back(
        self, own: Collection[OwnRecord], mail: Iterable[MailSlot]
    ) -> list[OwnRecord]:
        """Keep again what children were sent and a ledger that was mended lacks.

        What was deleted in due form goes once more: the last snapshot does not list it.
        """
        kept = {it.key for it in own}
        sent = [it for it in mail if it.has_body and it.key not in kept and it.key[0] != "_"]
        writes: dict[str, StoreOwn] = {}
        newest = {it.key: it for it in sorted(sent, key=lambda it: it.generation)}
        for slot in newest.values():
            subject = subjects.mail(self.path.child(slot.child), slot.key)
            stored = await last_message(self._relay, "MAIL", subject)
            if stored is not None:
                data, _ = without_carried(b64decode(stored["data"]))
                writes[slot.key] = StoreOwn(
                    slot.key,
                    data,
                    slot.generation,
                    payload_hash=slot.payload_hash,
                    has_body=True,
                )
        if writes:
            logger.warning("%s: %d lost records lie in mailboxes", self.path, len(writes))
            await self._publisher.publish([outgoing_own(self.path, it) for it in writes.values()])
        return [OwnRecord(it.key, it.data or b"", "", 0) for it in writes.values()]

    def _through(self, stream: str) -> int:
        return self._fenced.through(stream) if self._fenced is not None else 0

    def _reads(self, stream: str, stored: Stored) -> bool:
        return self._fenced is None or self._fenced.reads(stream, stored)

    async def _read_mail(self) -> list[MailSlot]:
        """What the children's mailboxes hold; a slot that cannot be read is erased.

        All of it is derived from records: what is missing is written again.
        """
        found: list[MailSlot] = []
        damaged: list[int] = []

        async def take(stored: Stored) -> None:
            if not self._reads("MAIL", stored):
                return
            slot = mail_slot(stored)
            if slot is None:
                damaged.append(stored.sequence)
            else:
                found.append(slot)

        reader = StreamReader(
            self._relay, self._clock, "MAIL", headers_only=True, through=self._through("MAIL")
        )
        await reader.read_all(take)
        await delete_messages(self._relay, "MAIL", damaged)
        return found
