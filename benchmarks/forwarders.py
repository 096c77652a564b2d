"""What the forwarding benchmark measures, each in a process of its own: two loops and the relay.

The bare loop consumes, republishes and acknowledges. The dutiful loop also checks each signature
and stores what it read before it republishes, as a relay must, and decides nothing.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from nats.aio.client import Client
from nats.aio.msg import Msg

from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream.bus import BusAddress, JetStreamBus
from relay.core.config import NodeConfig
from relay.core.effects import AckMail, StoreOwn, WriteMail
from relay.core.events import Event, MailArrived, MailWritten
from relay.shell.driver import Driver
from schemas.records.roots import Roots
from schemas.records.signing import decode_envelope
from schemas.values.identity import ContentHash, KeyId, NodePath, TreeId, random_id

WINDOW = 512
ACKS = "_INBOX.here.acks"


@dataclass(frozen=True, slots=True)
class Job:
    """What to read, where to write, and with which credentials."""

    kind: str
    url: str
    tree: str
    root: str
    root_key: str
    signing_key: str
    path: str
    child: str
    first: int
    count: int
    relay_seed: str = field(repr=False)
    uplink_seed: str = field(repr=False)
    system_seed: str = field(repr=False)

    def dumps(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def loads(cls, text: str) -> Job:
        return cls(**json.loads(text))


class BareLoop:
    """Takes what is delivered, publishes a window, waits for its acknowledgements, acknowledges."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._up, self._here = Client(), Client()
        self._queue: asyncio.Queue[Msg] = asyncio.Queue()
        self._missing = 0
        self._complete = asyncio.Event()
        self._watch = Watch()

    async def run(self) -> None:
        job = self._job
        await self._up.connect(job.url, nkeys_seed_str=job.uplink_seed, inbox_prefix="_INBOX.up")
        await self._here.connect(job.url, nkeys_seed_str=job.relay_seed, inbox_prefix="_INBOX.here")
        name = NodePath.parse(job.path).name
        await self._up.subscribe(f"lc._d.{name}.m", cb=self._came)
        await self._here.subscribe(ACKS, cb=self._kept)
        await self._up.flush()
        await self._here.flush()
        await self._up.request("up.reset", json.dumps({"seq": job.first}).encode(), timeout=5)
        done = 0
        while done < job.count:
            batch = [await self._queue.get()]
            while len(batch) < WINDOW and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            if job.kind == "dutiful":
                self._check(batch)
                # DONE takes what a relay would store in OWN: nobody reads it here.
                await self._publish(batch, "_done")
            await self._publish(batch, f"{job.child}._mail")
            await self._up.publish(batch[-1].reply)
            done += len(batch)
        await self._up.flush()
        self._watch.stop()
        self._watch.say()
        await self._up.close()
        await self._here.close()

    def _check(self, batch: list[Msg]) -> None:
        key = bytes.fromhex(self._job.signing_key)
        for message in batch:
            assert decode_envelope(message.data).verify(TreeId(self._job.tree), key)

    async def _publish(self, batch: list[Msg], to: str) -> None:
        self._missing = len(batch)
        self._complete.clear()
        prefix = f"{NodePath.parse(self._job.path).prefix}.{to}."
        for message in batch:
            subject = prefix + message.subject.rpartition(".")[2]
            headers = {k: v for k, v in (message.headers or {}).items() if k[:5] != "Nats-"}
            await self._here.publish(subject, message.data, ACKS, headers)
        await self._complete.wait()

    async def _came(self, message: Msg) -> None:
        if not message.reply.startswith("$JS.ACK."):
            if message.reply:
                await self._up.publish(message.reply)
            return
        if message.headers and message.headers.get("Lc-Gen") and "._mail._" not in message.subject:
            self._watch.start()
            self._queue.put_nowait(message)

    async def _kept(self, answer: Msg) -> None:
        assert "error" not in json.loads(answer.data), answer.data
        self._missing -= 1
        if not self._missing:
            self._complete.set()


class Watch:
    """Seconds by the clock and of the processor, from the first start on."""

    def __init__(self) -> None:
        self._began: tuple[float, float] | None = None
        self._took: tuple[float, float] | None = None

    def start(self) -> None:
        if self._began is None:
            self._began = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        assert self._began is not None
        now = time.perf_counter(), time.process_time()
        self._took = now[0] - self._began[0], now[1] - self._began[1]

    def say(self) -> None:
        assert self._took is not None
        print(json.dumps({"seconds": self._took[0], "cpu": self._took[1]}), flush=True)


class WatchedBus(JetStreamBus):
    """The real bus; notes the first delta that comes in, and when all is written and answered."""

    def watch(self, job: Job) -> None:
        self.clock = Watch()
        self.over = asyncio.Event()
        self._job = job
        self._came: set[str] = set()
        self._written: set[str] = set()
        self._read_to = 0
        self._acked = 0
        put = self.inbox.put

        async def note_and_put(event: Event) -> None:
            self._note(event)
            await put(event)

        setattr(self.inbox, "put", note_and_put)  # noqa: B010 - as a test would

    def _note(self, event: Event) -> None:
        if isinstance(event, MailArrived) and event.sequence >= self._job.first:
            self.clock.start()
            if not event.key.startswith("_"):
                self._read_to = max(self._read_to, event.sequence)
                self._came.add(event.key)

    async def write(
        self,
        *,
        blobs: Mapping[ContentHash, bytes] | None = None,
        own: Iterable[StoreOwn] = (),
        mail: Sequence[WriteMail] = (),
    ) -> list[MailWritten]:
        written = await super().write(blobs=blobs, own=own, mail=mail)
        self._written.update(write.key for write in mail)
        self._look()
        return written

    async def ack_mail(self, ack: AckMail) -> None:
        await super().ack_mail(ack)
        self._acked = max(self._acked, ack.sequence)
        self._look()

    def _look(self) -> None:
        read = len(self._came) == self._job.count and self._acked >= self._read_to
        if read and self._came <= self._written and not self.over.is_set():
            self.clock.stop()
            self.over.set()


class _Server:
    """The server has the child's account already."""

    async def add_child(self, name: str, nkey: str) -> None:
        pass

    async def remove_child(self, name: str) -> None:
        pass


async def run_loop(job: Job) -> None:
    await BareLoop(job).run()


async def run_relay(job: Job) -> None:
    """Start the relay on its streams, let it forward everything, and end."""
    clock, dice = SystemClock(), SystemDice()
    path = NodePath.parse(job.path)
    address = BusAddress(job.url, job.relay_seed, job.uplink_seed, job.system_seed)
    bus = WatchedBus(path, address, _Server(), clock=clock, dice=dice)
    bus.watch(job)
    roots = Roots({KeyId(job.root): bytes.fromhex(job.root_key)})
    config = NodeConfig(path, TreeId(job.tree), roots, random_id(dice.entropy(16)))
    driver = Driver(bus, config, clock)
    task = asyncio.create_task(driver.run())
    over = asyncio.create_task(bus.over.wait())
    try:
        await asyncio.wait([task, over], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        bus.clock.say()
    finally:
        task.cancel()
        over.cancel()
        await asyncio.wait([task, over])
        await bus.close()
