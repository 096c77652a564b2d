"""A host's part of the message bus, and its real driver: the world stands between each two steps.

What a bus keeps lies in the host's streams, which outlive it. A crash comes before any of its steps
and leaves nothing after it; of what is kept side by side any part may be kept then.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from relay.core import effects as fx
from relay.core.config import NodeConfig
from relay.core.events import (
    BlobArrived,
    Event,
    HelloArrived,
    MailArrived,
    MailWritten,
    OwnRecord,
    Remembered,
    ReportArrived,
)
from relay.core.node import Node
from relay.shell.driver import Driver
from relay.shell.inbox import Inbox
from schemas.content.blobs import Reference, open_value
from schemas.reports.reports import Done
from schemas.values.identity import ContentHash
from schemas.values.wire import replace
from tests.simulation.clocks import HostClock
from tests.simulation.collectors import EVALUATOR
from tests.simulation.disk import looked_up, read_back
from tests.simulation.issuing import BookedPublisher
from tests.simulation.telling import told_event

if TYPE_CHECKING:
    from tests.simulation.host import Host

BATCH_MAX = 8
HELLO = "_node.self"
WAITS_FOR_NOTHING = (
    fx.SendReport,
    fx.SendHello,
    fx.CountChanged,
    fx.SnapshotShown,
    fx.WantsChanged,
    fx.Noted,
)
"""Effects that the driver carries out itself, or hands on; all others are steps of its bus."""


def _no_time() -> float:
    """What anything takes of the processor here: whoever costs much is a matter of real time."""
    return 0.0


class HostInbox(Inbox):
    """The real one, which gives a few events at a time, as many as chance has it."""

    def __init__(self, host: Host) -> None:
        super().__init__(_no_time, _no_time)
        self._host = host

    def take(self, event: Event) -> None:
        """Put an event of whatever kind; there is always room."""
        if isinstance(event, ReportArrived | HelloArrived):
            assert self.offer(event), f"{self._host.path}: {event.child} said too much at once"
            return
        if isinstance(event, MailArrived):
            event = replace(event, reading=self.reading)
        try:
            self.put(event).send(None)
        except StopIteration:
            return
        raise AssertionError(f"{self._host.path}: too much came at once")

    async def next_batch(self, most: int, seconds: float | None = None) -> deque[Event]:
        host = self._host
        batch = await super().next_batch(min(most, host.world.batch(BATCH_MAX)), seconds)
        if host.slow and batch:
            await asyncio.sleep(host.slow)
        return batch

    def weigh(self, batch: Iterable[Event]) -> Iterator[Event]:
        host = self._host
        for event in super().weigh(batch):
            if host.world.traced:
                host.world.note(host.path, told_event(event))
            yield event

    def handled(self) -> None:
        super().handled()
        self._host.handled()


class HostDriver(Driver):
    """The real driver; the world hears of all that is decided, and of what waits for nothing."""

    def __init__(self, host: Host, bus: HostBus, config: NodeConfig) -> None:
        super().__init__(
            bus,
            config,
            HostClock(host),
            on_wants=host.space.told,
            evaluator=EVALUATOR,
            used=_no_time,
        )
        self._host, self._run = host, host.run
        if self._publisher is not None:
            tree, watch = config.tree, self._publisher.watch
            publisher = self._publisher = BookedPublisher(
                bus, self._clock, tree, lambda: self.node, self._kept, self.counters, watch
            )
            publisher.host = host

    @property
    def publisher(self) -> BookedPublisher:
        assert isinstance(self._publisher, BookedPublisher)
        return self._publisher

    @property
    def machine(self) -> Node:
        """The node itself, which a run has that began."""
        assert self._machine is not None
        return self._machine

    async def _perform(self, effects: Sequence[fx.Effect], group: asyncio.TaskGroup) -> None:
        host = self._host
        if host.node is None:
            host.begun(self._run, self.node)
        await super()._perform(host.decided(self._run, effects), group)
        host.performed(self._run)

    def _tell(self, effect: fx.Effect) -> None:
        if isinstance(effect, WAITS_FOR_NOTHING):
            self._host.about_to(self._run, effect)
        super()._tell(effect)

    async def _kept(self, reference: Reference) -> bytes | None:
        """What lies in the centre's own store is read at once."""
        value = self._host.streams.blobs.get(reference.address)
        return None if value is None else open_value(reference, value)


class HostBus:
    """What a node's driver needs of `relay.ports.Bus`."""

    def __init__(self, host: Host) -> None:
        self.path = host.path
        self.inbox = HostInbox(host)
        self._host, self._run = host, host.run
        self._streams = host.streams

    def _about_to(self, effect: fx.Effect) -> None:
        self._host.about_to(self._run, effect)

    async def start(self) -> Remembered:
        return read_back(self._streams)

    async def load_done(self) -> list[Done]:
        return list(self._streams.done.values())

    async def store_done(self, records: Mapping[str, Done | None]) -> None:
        if self._host.run != self._run:
            raise asyncio.CancelledError
        for key, done in records.items():
            self._streams.done.pop(key, None)
            if done is not None:
                self._streams.done[key] = done

    async def done_is_partial(self) -> bool:
        return False

    async def complete_done(self) -> None:
        """Memory loses nothing."""

    async def write(
        self,
        *,
        blobs: Mapping[ContentHash, bytes] | None = None,
        own: Iterable[fx.StoreOwn] = (),
        mail: Sequence[fx.WriteMail] = (),
    ) -> list[Any]:
        host = self._host
        kept: list[fx.Effect] = [fx.KeepBlob(*blob) for blob in (blobs or {}).items()]
        erased: list[fx.Effect] = []
        for record in own:
            (kept if record.data is not None else erased).append(record)
        kept += mail
        if host.armed is not None:
            host.world.random.shuffle(kept)
        written: dict[tuple[str, str], MailWritten] = {}
        for effect in host.world.ports.ordered(host, kept + erased):
            self._about_to(effect)
            match effect:
                case fx.KeepBlob():
                    self._streams.blobs[effect.address] = effect.value
                case fx.StoreOwn():
                    self._store(effect)
                case fx.WriteMail():
                    sequence = host.write_mail(effect)
                    done = MailWritten(effect.child, effect.key, effect.generation, sequence)
                    written[effect.child, effect.key] = done
        answers = [written[letter.child, letter.key] for letter in mail]
        return [event for answer in answers for event in host.world.ports.heard(host, answer)]

    def _store(self, record: fx.StoreOwn) -> None:
        own = self._streams.own
        own.pop(record.key, None)
        if record.data is not None:
            at = (record.incarnation, record.sequence)
            own[record.key] = OwnRecord(record.key, record.data, *at)

    async def clear_mail(self, clear: fx.ClearMail) -> bool:
        self._about_to(clear)
        slot = (clear.child, clear.key)
        kept = self._streams.mail.get(slot)
        if kept is None or kept.sequence != clear.sequence:
            return False
        self._streams.mail.erase(slot)
        return True

    async def drop_reports(self, drops: Sequence[fx.DropReport]) -> None:
        for drop in drops:
            self._about_to(drop)
            kept = self._streams.stat.get((drop.child, drop.key))
            if kept is not None and kept.sequence <= drop.sequence:
                self._streams.stat.erase((drop.child, drop.key))

    async def ack_mail(self, ack: fx.AckMail) -> None:
        """Nothing hangs on it."""
        self._about_to(ack)

    async def reset_mail(self, sequence: int) -> int:
        self._about_to(fx.ResetMail(sequence))
        reading = self.inbox.forget_mail()
        self._host.read_from(sequence)
        return reading

    async def drop_blobs(self, addresses: Sequence[ContentHash]) -> None:
        self._about_to(fx.DropBlobs(tuple(addresses)))
        for address in addresses:
            self._streams.blobs.pop(address, None)

    async def load_blob(self, reference: Reference, *, fresh: bool = False) -> BlobArrived:
        host = self._host
        self._about_to(fx.LoadBlob(reference, fresh=fresh))
        await asyncio.sleep(host.world.delay())
        loaded = looked_up(host, host.parent(), reference, fresh=fresh)
        if loaded.value is None and not loaded.unheard:
            host.denied[f"{reference.kind} {reference.address[:12]}"] = host.link_epoch
        (heard,) = host.world.ports.heard(host, loaded)
        assert isinstance(heard, BlobArrived)
        return heard

    async def send_report(self, reports: Mapping[str, bytes]) -> bool:
        return self._host.send(dict(reports))

    async def send_hello(self, data: bytes) -> bool:
        return self._host.send({HELLO: data})

    async def send_welcome(self, child: str, data: bytes) -> None:
        self._about_to(fx.SendWelcome(child, data))
        self._host.send_welcome(child, data)

    async def open_copies(self, child: str) -> None:
        """Nothing is brought up in this world."""

    async def add_child(self, name: str, nkey: str) -> None:
        path = self.path.child(name)
        self._about_to(fx.AddChild(path, nkey))
        self._streams.children[name] = nkey
        self._host.world.links_changed(path)

    async def remove_child(self, name: str) -> None:
        path, streams = self.path.child(name), self._streams
        self._about_to(fx.RemoveChild(path))
        streams.children.pop(name, None)
        streams.mail.erase_child(name)
        streams.stat.erase_child(name)
        self._host.world.links_changed(path)
