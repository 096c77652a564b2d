"""The shell around a node: event → core → effects → ports, over one bounded queue.

Of a batch, blobs, own records and mail are written side by side; only the acknowledgement to the
parent waits for all of it. What the bus cannot keep ends the run; the next one starts from the
streams.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from relay.core.collectors.ports import Evaluator
from relay.core.config import NodeConfig
from relay.core.effects import (
    AckMail,
    AddChild,
    ClearMail,
    CountChanged,
    DropBlobs,
    DropReport,
    Effect,
    KeepBlob,
    LoadBlob,
    Noted,
    OpenCopies,
    RemoveChild,
    ResetMail,
    SendHello,
    SendReport,
    SendWelcome,
    SnapshotShown,
    StoreOwn,
    WantsChanged,
    WriteMail,
    still_meant,
)
from relay.core.events import Ending, Event, LinkChanged, Tick
from relay.core.node import Node
from relay.core.view import NodeView
from relay.ports import Bus, BusBroken, Clock, first_of
from relay.shell.batch_news import BatchNews
from relay.shell.centre_watch import CentreWatch
from relay.shell.counters import Counters
from relay.shell.edge_look import EdgeLook
from relay.shell.first_evaluator import FirstEvaluator
from relay.shell.note_log import NoteLog
from relay.shell.outbox import Outbox
from relay.shell.propagation_times import PropagationTimes
from relay.shell.publisher import CentrePublisher
from relay.shell.report_cleanup import ReportCleanup
from relay.shell.trace_ring import TraceRing
from schemas.content.blobs import Reference, open_value
from schemas.content.sealing import SealingKey
from schemas.values.bounded_cache import BoundedCache
from schemas.values.identity import ContentHash
from schemas.values.refusals import BlobRefused

BATCH_MAX = 512
LOADS_AT_ONCE = 32
LEAVE_SECONDS = 1.0
RECENT_BYTES_MAX = 256 * 1024
"""Of blobs that were kept just now: the syncer asks for them next."""

E = TypeVar("E", bound=Effect)


class Driver:
    """Runs one node on a bus; at the centre `publisher` is what the controllers publish through."""

    def __init__(
        self,
        bus: Bus,
        config: NodeConfig,
        clock: Clock,
        *,
        on_wants: Callable[[NodeView], None] | None = None,
        on_noted: Callable[[Noted], None] | None = None,
        evaluator: Evaluator | None = None,
        used: Callable[[], float] = time.thread_time,
    ) -> None:
        """`evaluator` may be shared by nodes of one process; `used` is the processor's time."""
        self.config = config
        self.counters = Counters()
        self.times = PropagationTimes(is_centre=config.path.is_root, is_edge=config.attached)
        self.traces = TraceRing(is_edge=config.attached, began_ms=clock.now().wall_ms)
        self._edge_look = EdgeLook() if config.attached else None
        self.started = asyncio.Event()
        self._bus = bus
        self._clock = clock
        self._on_wants = on_wants
        self._on_noted = on_noted
        self._evaluator = evaluator or FirstEvaluator()
        self._machine: Node | None = None
        # What follows from effects, and goes before all that comes in: content, too, or what waits
        # for it would wait for all mail that came meanwhile.
        self._back: deque[Event] = deque()
        self._loads = asyncio.Semaphore(LOADS_AT_ONCE)
        self._progress = asyncio.Event()
        self._outbox, self._cleanup = Outbox(bus), ReportCleanup(bus, used)
        self._notes = NoteLog(config.path, clock)
        self._recent = BoundedCache[ContentHash, bytes](RECENT_BYTES_MAX)
        self._publisher: CentrePublisher | None = None
        if config.path.is_root:
            watch = CentreWatch(self.times, self.traces, clock)
            self._publisher = CentrePublisher(
                bus, clock, config.tree, lambda: self.node, self.load, self.counters, watch
            )

    @property
    def node(self) -> NodeView:
        """What the node knows; raises BusBroken before the run has begun."""
        if self._machine is None:
            raise BusBroken(f"node {self.config.path} has not started")
        return self._machine.view

    @property
    def publisher(self) -> CentrePublisher:
        """At the centre only."""
        assert self._publisher is not None
        return self._publisher

    @property
    def now_ms(self) -> int:
        """By the node's own clock, ms since 1970."""
        return self._clock.now().wall_ms

    async def run(self) -> None:
        """Run until cancelled; raises BusBroken if the bus gives out."""
        remembered = await self._bus.start()
        done = await self._bus.load_done() if self.config.attached else []
        now = self._clock.now()
        node = self._machine = Node(self.config, remembered, done, now, self._evaluator)
        if self._publisher is not None:
            self._publisher.restore(remembered)
        broken = None
        try:
            async with asyncio.TaskGroup() as group:
                await self._perform(node.start(), group)
                group.create_task(self._send_up(), name=f"send {self.config.path}")
                group.create_task(self._cleanup.run(), name=f"cleanup {self.config.path}")
                self.started.set()
                await self._loop(node, group)
        except* BusBroken as failed:
            broken = first_of(failed)
        if broken is not None:
            raise BusBroken(f"node {self.config.path}: {broken}") from broken

    async def leave(self) -> None:
        """Once the run is over: tell the parent that it ended, if it can be soon."""
        effects = self._machine.handle((Ending(),), self._clock.now()) if self._machine else ()
        with suppress(TimeoutError, BusBroken):
            async with asyncio.timeout(LEAVE_SECONDS):
                for effect in effects:
                    if isinstance(effect, SendHello):
                        await self._bus.send_hello(effect.data)

    async def until(self, met: Callable[[NodeView], bool]) -> None:
        """Wait until the node is in a state that meets the condition."""
        while self._machine is None or not met(self._machine.view):
            await self._progress.wait()

    async def progress(self) -> None:
        """Wait until the node has dealt with something more."""
        await self._progress.wait()

    async def observe(self, event: Event) -> None:
        """Take the word of who works beside the node: of an object."""
        await self._bus.inbox.put(event)

    def count_junk(self, child: str) -> None:
        """A child said something that is no answer to what it was asked."""
        if self._machine is not None:
            self._machine.count_junk(child)

    async def load(self, reference: Reference, key: SealingKey | None = None) -> bytes | None:
        """A blob's plain bytes, checked and opened; None if it is missing or damaged."""
        value = self._recent.pop(reference.address)
        if value is not None:
            with suppress(BlobRefused):
                return _opened(reference, open_value(reference, value), key)
        loaded = await self._bus.load_blob(reference)
        try:
            if loaded.value is None:
                return None
            stored = open_value(reference, loaded.value, dict(loaded.parts))
            return _opened(reference, stored, key)
        except BlobRefused as error:
            self._note(Noted("BadBlob", reference.address[:12], error.reason))
            return None

    async def _loop(self, node: Node, group: asyncio.TaskGroup) -> None:
        inbox = self._bus.inbox
        while True:
            batch = await self._next_batch(node)
            effects = node.handle(inbox.weigh(batch), self._clock.now())
            if effects:
                await self._perform(still_meant(effects), group)
            inbox.handled()
            self._note_times(batch, effects, node.view)
            if self._publisher is not None:
                for event in batch:
                    self._publisher.handled(event)
            progress, self._progress = self._progress, asyncio.Event()
            progress.set()

    def _note_times(
        self, batch: Sequence[Event], effects: Sequence[Effect], view: NodeView
    ) -> None:
        now, look = self._clock.now(), self._edge_look
        news = BatchNews(batch, effects)
        touched = look.after(news, view) if look is not None else None
        self.times.look(news, view, now, touched)
        self.traces.look(news, view, now, touched)

    async def _next_batch(self, node: Node) -> deque[Event]:
        due = node.deadline()
        wait = None if due is None else max(0.0, due - self._clock.now().seconds)
        came = await self._bus.inbox.next_batch(BATCH_MAX, 0 if self._back else wait)
        batch, self._back = self._back, deque()
        batch += came
        if due is not None and due <= self._clock.now().seconds:
            batch.append(Tick())
        return batch

    async def _perform(self, effects: Sequence[Effect], group: asyncio.TaskGroup) -> None:
        bus = self._bus
        sorted_out = _ByKind(effects)
        for load in sorted_out.of(LoadBlob):
            # Reading need not wait for what is written first.
            group.create_task(self._load(load))
        await self._write(sorted_out)
        acks = sorted_out.of(AckMail)
        if acks:
            await bus.ack_mail(acks[-1])
        for drop in sorted_out.of(DropBlobs):
            await (self._publisher or bus).drop_blobs(drop.addresses)
        for effect in sorted_out.said:
            if isinstance(effect, SendWelcome):
                await bus.send_welcome(effect.child, effect.data)
            elif isinstance(effect, ResetMail):
                await bus.reset_mail(effect.sequence)
            else:
                self._tell(effect)
        # Whoever hears of wants looks at all of them, as they are after the batch.
        if self._on_wants is not None and sorted_out.of(WantsChanged):
            self._on_wants(self.node)
        if clears := sorted_out.of(ClearMail):
            async with asyncio.TaskGroup() as clearing:
                for clear in clears:
                    clearing.create_task(bus.clear_mail(clear))

    def _tell(self, effect: Effect) -> None:
        """Carry out what waits for nothing."""
        match effect:
            case SendReport(key, data):
                self._outbox.report(key, data)
            case SendHello(data):
                self._outbox.hello(data)
            case DropReport():
                self._cleanup.add(effect)
            case CountChanged(key):
                self.publisher.count_changed(key)
            case SnapshotShown():
                self.publisher.snapshot_shown(effect)
            case Noted():
                self._note(effect)
            case _:
                pass

    async def _write(self, effects: _ByKind) -> None:
        """Keep blobs and own records, and write mail, after accounts were opened and closed."""
        blobs = {effect.address: effect.value for effect in effects.of(KeepBlob)}
        own = {effect.key: effect for effect in effects.of(StoreOwn)}
        mail = effects.of(WriteMail)
        changes = [e for e in effects.said if isinstance(e, AddChild | RemoveChild)]
        self.counters.blobs_kept += len(blobs)
        self.counters.wrote(mail)
        if self.config.attached:
            for address, value in blobs.items():
                self._recent.put(address, value, len(value))
        if changes:
            await self._bus.write(blobs=blobs, own=own.values())
            await self._change_children(changes)
            blobs, own = {}, {}
        for room in effects.of(OpenCopies):
            await self._bus.open_copies(room.child)
        if blobs or own or mail:
            self._back += await self._bus.write(blobs=blobs, own=own.values(), mail=mail)

    async def _change_children(self, changes: Iterable[AddChild | RemoveChild]) -> None:
        """Open and close accounts: different children at once, one child in order."""
        by_name: dict[str, list[AddChild | RemoveChild]] = {}
        for change in changes:
            by_name.setdefault(change.path.name, []).append(change)
        async with asyncio.TaskGroup() as group:
            for ordered in by_name.values():
                group.create_task(self._change_child(ordered))

    async def _change_child(self, changes: list[AddChild | RemoveChild]) -> None:
        for change in changes:
            try:
                if isinstance(change, AddChild):
                    await self._bus.add_child(change.path.name, change.nkey)
                else:
                    await self._bus.remove_child(change.path.name)
            except ValueError as error:
                # A record whose key no server takes: the others go on without this child.
                self._note(Noted("BadChild", str(change.path), str(error)))

    def _note(self, noted: Noted) -> None:
        self.counters.noted[noted.reason] += 1
        if self._on_noted is not None:
            self._on_noted(noted)
        self._notes.write(noted)

    async def _load(self, effect: LoadBlob) -> None:
        async with self._loads:
            loaded = await self._bus.load_blob(effect.reference, fresh=effect.fresh)
        self._back.append(loaded)
        self._bus.inbox.wake()

    async def _send_up(self) -> None:
        while True:
            if not await self._outbox.send():
                await self._bus.inbox.put(LinkChanged(up=False))


def _opened(reference: Reference, stored: bytes, key: SealingKey | None) -> bytes:
    return stored if key is None else key.unseal(reference.kind, stored)


class _ByKind:
    """The effects of a batch by their kinds, and in their order where several kinds share one."""

    def __init__(self, effects: Iterable[Effect]) -> None:
        self._by_kind: dict[type, list[Any]] = {}
        # What is neither kept nor written.
        self.said: list[Effect] = []
        for effect in effects:
            kind = type(effect)
            found = self._by_kind.get(kind)
            if found is None:
                found = self._by_kind[kind] = []
            found.append(effect)
            if kind not in _KEPT:
                self.said.append(effect)

    def of(self, kind: type[E]) -> list[E]:
        return self._by_kind.get(kind, [])


_KEPT = frozenset({KeepBlob, StoreOwn, WriteMail})
