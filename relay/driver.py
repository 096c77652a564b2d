"""The shell around a node: event → core → effects → ports, with bounded queues.

Effects of a batch are carried out in stages, each kept before the next: blobs and own records,
mail, acknowledgements. What the bus cannot keep ends the run; the next one starts from the streams.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from relay.core.book import read_record, to_keep
from relay.core.effects import (
    AckMail,
    AddChild,
    ClearMail,
    DropBlobs,
    DropReport,
    Effect,
    KeepBlob,
    LoadBlob,
    Noted,
    RemoveChild,
    ResetMail,
    SendHeartbeat,
    SendReport,
    SendSession,
    StoreOwn,
    SummaryChanged,
    WantsChanged,
    WriteMail,
    still_meant,
)
from relay.core.events import (
    Ending,
    Event,
    Issued,
    LinkChanged,
    MailArrived,
    Tick,
)
from relay.core.node import Node
from relay.core.state import NodeConfig
from relay.core.turns import together
from relay.counters import Counters
from relay.ports import Bus, BusBroken, Clock, first_of
from relay.recent import Recent
from schemas.blobs import Reference, open_value
from schemas.identity import ContentHash, MailKey, NodePath, TreeId
from schemas.refusals import BlobRefused
from schemas.reports import ObjectResult, Summary, greeting
from schemas.signing import Envelope, decode_envelope

INBOX_MAX = 1_024
"""A change waits behind what is in it: of a flood by a child behind no more than that."""
BATCH_MAX = 512
LOADS_AT_ONCE = 32
LEAVE_SECONDS = 1.0

IN_STAGES = frozenset({KeepBlob, StoreOwn, WriteMail, AckMail, LoadBlob, DropReport})
"""Effects that are carried out many at a time, each kind at its own stage."""

log = logging.getLogger("leafcast.relay")


class Superseded(Exception):
    """Another run of this same node has the session: a newer one, or if `second` an older."""

    def __init__(self, path: NodePath, *, second: bool) -> None:
        why = "another run of it is up" if second else "a newer run with its identity took over"
        super().__init__(f"node {path}: {why}; this one stops")
        self.second = second


class Driver:
    """Runs one node on a bus. At the centre it is what the controllers publish through."""

    def __init__(
        self,
        bus: Bus,
        config: NodeConfig,
        clock: Clock,
        *,
        on_wants: Callable[[Node], None] | None = None,
        on_noted: Callable[[Noted], None] | None = None,
    ) -> None:
        self.config = config
        self.counters = Counters()
        self.started = asyncio.Event()
        self._bus = bus
        self._clock = clock
        self._on_wants = on_wants
        self._on_noted = on_noted
        self._node: Node | None = None
        self._inbox: asyncio.Queue[Event] = asyncio.Queue(INBOX_MAX)
        self._back: deque[Event] = deque()
        self._reports: dict[str, bytes] = {}
        self._heartbeat: bytes | None = None
        self._loads = asyncio.Semaphore(LOADS_AT_ONCE)
        self._summaries: dict[MailKey, None] = {}
        self._outgoing, self._summarized = asyncio.Event(), asyncio.Event()
        self._progress = asyncio.Event()
        self._reading = 0
        self._publishing: list[frozenset[ContentHash]] = []
        self._sweeping, self._issuing = asyncio.Lock(), asyncio.Lock()
        self._recent = Recent(wanted=config.attached)

    @property
    def node(self) -> Node:
        """The state machine; raises BusBroken before the run has begun."""
        if self._node is None:
            raise BusBroken(f"node {self.config.path} has not started")
        return self._node

    @property
    def tree(self) -> TreeId:
        return self.config.tree

    async def run(self) -> None:
        """Run until cancelled; raises BusBroken if the bus gives out, or Superseded."""
        remembered = await self._bus.start()
        done = await self._bus.load_done() if self.config.attached else []
        node = self._node = Node(self.config, remembered, done, self._clock.now())
        try:
            async with asyncio.TaskGroup() as group:
                await self._perform(node.start(), group)
                group.create_task(self._pump(), name=f"pump {self.config.path}")
                group.create_task(self._send_up(), name=f"send {self.config.path}")
                self.started.set()
                await self._loop(node, group)
        except* BusBroken as broken:
            raise BusBroken(f"node {self.config.path}: {first_of(broken)}") from broken
        except* Superseded as stopped:
            raise Superseded(self.config.path, second=self.node.second) from stopped

    async def leave(self, last: Sequence[Effect] = ()) -> None:
        """Once the run is over: tell the parent its last, or that it ended, if it can be soon."""
        effects = last or (self._node.handle(Ending(), self._clock.now()) if self._node else ())
        with suppress(TimeoutError, BusBroken):
            async with asyncio.timeout(LEAVE_SECONDS):
                for effect in effects:
                    if isinstance(effect, SendHeartbeat):
                        await self._bus.send_heartbeat(effect.data)

    async def until(self, met: Callable[[Node], bool]) -> None:
        """Wait until the node is in a state that meets the condition."""
        while self._node is None or not met(self._node):
            await self._progress.wait()

    async def progress(self) -> None:
        """Wait until the node has dealt with something more."""
        await self._progress.wait()

    async def observe(self, event: Event) -> None:
        """Take the word of who works beside the node: of an object, or of the ledger."""
        await self._inbox.put(event)

    async def greet(self, child: str) -> None:
        """Tell a child that this run is new; one that hears it begins a session."""
        await self._bus.send_session(child, greeting(self.config.incarnation))

    async def load(self, reference: Reference) -> bytes | None:
        """The plain bytes of a blob, checked; None if it is missing or damaged."""
        loaded = self._recent.pop(reference.address)
        if loaded is None:
            loaded = await self._bus.load_blob(reference)
        try:
            if loaded.value is None:
                return None
            return open_value(reference, loaded.value, dict(loaded.parts))
        except BlobRefused as error:
            self._note(Noted("BadBlob", reference.address[:12], error.reason))
            return None

    def lacks(self, addresses: Iterable[ContentHash]) -> frozenset[ContentHash]:
        """Which of these blobs are not kept here."""
        return self.node.lacks(addresses).difference(*self._publishing)

    def ledger(self) -> Mapping[str, Envelope]:
        """All records held, by OWN key."""
        return {key: decode_envelope(held.data) for key, held in self.node.records.items()}

    async def publish(
        self, blobs: Mapping[ContentHash, bytes], envelopes: Sequence[Envelope]
    ) -> None:
        """Keep blobs, then records in the ledger, then send them to whom they concern."""
        hops, fresh = (self._clock.now().wall_ms,), frozenset(blobs)
        more = together([envelope.kind for envelope in envelopes])
        issued = [Issued(e.encode(), hops, more=m) for e, m in zip(envelopes, more, strict=True)]
        if issued and blobs:
            issued[-1] = replace(issued[-1], blobs=fresh)
            self._publishing.append(fresh)
        if blobs:
            self.counters.blobs_kept += len(blobs)
            async with self._sweeping:
                await self._bus.keep_blobs(blobs)
        await self._bus.store_own([to_keep(read_record(e.data, 0, hops)[1]) for e in issued])
        async with self._issuing:
            for event in issued:
                await self._inbox.put(event)

    def summary(self, key: MailKey) -> Summary | None:
        """What is known of a placement in the whole tree; None if it is not in force."""
        return self.node.summary(key) if key in self.node.records else None

    def results(self, key: MailKey) -> Sequence[ObjectResult]:
        """The objects' returned states for a placement."""
        return tuple(self.node.results(key).values())

    async def summaries_changed(self) -> frozenset[MailKey]:
        """Wait until summaries changed since the last call, and name them."""
        await self._summarized.wait()
        self._summarized.clear()
        changed, self._summaries = self._summaries, {}
        return frozenset(changed)

    async def _loop(self, node: Node, group: asyncio.TaskGroup) -> None:
        while True:
            effects: list[Effect] = []
            published: list[frozenset[ContentHash]] = []
            batch = await self._next_batch(node)
            while batch:
                event = batch.popleft()
                if isinstance(event, MailArrived) and event.reading < self._reading:
                    continue
                made = node.handle(event, self._clock.now())
                effects.extend(self._come_already(made, batch))
                if isinstance(event, Issued) and event.blobs:
                    published.append(event.blobs)
                if any(isinstance(effect, ResetMail) for effect in made):
                    self._back.extend(batch)
                    break
            await self._perform(still_meant(effects), group)
            for fresh in published:
                self._publishing.remove(fresh)
            progress, self._progress = self._progress, asyncio.Event()
            progress.set()
            if node.superseded:
                await self.leave(effects)
                raise Superseded(self.config.path, second=node.second)

    def _come_already(self, made: Sequence[Effect], batch: deque[Event]) -> list[Effect]:
        """What is left to be done: blobs that came unasked are dealt with in the same batch."""
        left: list[Effect] = []
        for effect in made:
            if isinstance(effect, LoadBlob) and (came := self._bus.blob_at_hand(effect.reference)):
                self._recent.put(came)
                batch.append(came)
            else:
                left.append(effect)
        return left

    async def _next_batch(self, node: Node) -> deque[Event]:
        batch = self._back
        self._back = deque()
        if not batch:
            due = node.deadline()
            wait = None if due is None else max(0.0, due - self._clock.now().seconds)
            try:
                async with asyncio.timeout(wait):
                    batch.append(await self._inbox.get())
            except TimeoutError:
                batch.append(Tick())
        while len(batch) < BATCH_MAX and not self._inbox.empty():
            batch.append(self._inbox.get_nowait())
        due = node.deadline()
        if due is not None and due <= self._clock.now().seconds:
            batch.append(Tick())
        return batch

    async def _perform(self, effects: Sequence[Effect], group: asyncio.TaskGroup) -> None:
        bus = self._bus
        for effect in effects:
            if isinstance(effect, LoadBlob):
                # Reading need not wait for what is written first.
                group.create_task(self._load(effect))
        await self._keep(effects)
        await self._change_children([e for e in effects if isinstance(e, AddChild | RemoveChild)])
        await self._write([e for e in effects if isinstance(e, WriteMail)])
        acks = [e for e in effects if isinstance(e, AckMail)]
        if acks:
            await bus.ack_mail(acks[-1])
        for drop in effects:
            if isinstance(drop, DropBlobs):
                await self._drop(drop)
        told = False
        for effect in effects:
            # Whoever hears of wants looks at all of them, as they are after the batch.
            if type(effect) not in IN_STAGES and not (told and isinstance(effect, WantsChanged)):
                told = told or isinstance(effect, WantsChanged)
                await self._perform_one(effect)
        if drops := [effect for effect in effects if isinstance(effect, DropReport)]:
            await bus.drop_reports(drops)

    async def _keep(self, effects: Sequence[Effect]) -> None:
        """Keep blobs and own records; neither waits for the other."""
        blobs = {e.address: e.value for e in effects if isinstance(e, KeepBlob)}
        own = {e.key: e for e in effects if isinstance(e, StoreOwn)}
        self.counters.blobs_kept += len(blobs)
        async with asyncio.TaskGroup() as group:
            if blobs:
                group.create_task(self._bus.keep_blobs(blobs))
            if own:
                group.create_task(self._bus.store_own(list(own.values())))

    async def _change_children(self, changes: list[AddChild | RemoveChild]) -> None:
        """Open and close accounts: different children at once, one child in order."""
        if not changes:
            return
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

    async def _write(self, writes: list[WriteMail]) -> None:
        if not writes:
            return
        self.counters.wrote(writes)
        self._back.extend(await self._bus.write_mail(writes))

    async def _perform_one(self, effect: Effect) -> None:
        match effect:
            case ClearMail():
                await self._bus.clear_mail(effect)
            case ResetMail():
                self._reading = await self._bus.reset_mail(effect.sequence)
            case SendReport():
                self._reports[effect.key] = effect.data
                self._outgoing.set()
            case SendHeartbeat():
                self._heartbeat = effect.data
                self._outgoing.set()
            case SendSession():
                await self._bus.send_session(effect.child, effect.data)
            case SummaryChanged():
                self._summaries[effect.key] = None
                self._summarized.set()
            case WantsChanged():
                if self._on_wants is not None:
                    self._on_wants(self.node)
            case Noted():
                self._note(effect)
            case _:
                pass

    async def _drop(self, drop: DropBlobs) -> None:
        """Erase what no record leads to, but not what a record names that is on its way here."""
        async with self._sweeping:
            coming = frozenset[ContentHash]().union(*self._publishing)
            gone = [address for address in drop.addresses if address not in coming]
            self.counters.blobs_dropped += len(gone)
            await self._bus.drop_blobs(gone)

    def _note(self, noted: Noted) -> None:
        self.counters.noted[noted.reason] += 1
        if self._on_noted is not None:
            self._on_noted(noted)
        log.info("%s: %s: %s: %s", self.config.path, noted.reason, noted.subject, noted.detail)

    async def _load(self, effect: LoadBlob) -> None:
        async with self._loads:
            loaded = await self._bus.load_blob(effect.reference, fresh=effect.fresh)
        self._recent.put(loaded)
        await self._inbox.put(loaded)

    async def _pump(self) -> None:
        async for event in self._bus.events():
            await self._inbox.put(event)

    async def _send_up(self) -> None:
        """Send reports, then the heartbeat that speaks of them; the newest of each slot counts."""
        while True:
            await self._outgoing.wait()
            self._outgoing.clear()
            reports, self._reports = self._reports, {}
            heartbeat, self._heartbeat = self._heartbeat, None
            sent = True
            if reports:
                sent = await self._bus.send_report(reports)
            if heartbeat is not None:
                sent = await self._bus.send_heartbeat(heartbeat) and sent
            if not sent:
                await self._inbox.put(LinkChanged(up=False))
