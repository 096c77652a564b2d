"""A node of three members, each a process: the one that has the lease runs the node.

Lease, fences and batches are the real ones, over a cluster that knows JetStream's rules alone. What
stands here is what `leafcast.members.member` does with them, and `JetStreamBus` of such a node.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextvars import Context, copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

from leafcast.members.former_runs import RUNS_MAX
from relay.adapters.jetstream.fence import (
    FencedPublisher,
    Tenure,
    is_erased,
    take_fence,
)
from relay.adapters.jetstream.fenced_streams import FencedStreams
from relay.adapters.jetstream.lease_stream import LeaseKeeper, LeaseStream
from relay.adapters.jetstream.member_presence import (
    ACTIVE,
    CAME,
    HEARD,
    LOOK_SECONDS,
    ROLE,
    STANDBY,
    Facts,
    MemberPresence,
)
from relay.adapters.jetstream.publish import REPLACES, Outgoing, header_lines
from relay.adapters.jetstream.records import outgoing_own
from relay.adapters.jetstream.stream_reader import Stored
from relay.core import effects as fx
from relay.core.events import MailWritten, Remembered
from relay.core.instant import Instant
from relay.members.lease import MemberLease
from relay.ports import BusBroken, MailConflict, first_of
from relay.space_errors import SpaceError
from schemas.values import subjects
from schemas.values.identity import ContentHash, random_id
from tests.simulation.clocks import HostClock
from tests.simulation.cluster import (
    Answer,
    Cluster,
    ClusterClient,
    ClusterConnection,
)
from tests.simulation.disk import read_back
from tests.simulation.host import Host
from tests.simulation.hostbus import HostBus
from tests.simulation.laws import ONE_WRITER
from tests.simulation.member_ports import MemberPorts
from tests.simulation.member_spaces import SpaceWrite, fenced_spaces
from tests.simulation.virtual_time import PROCESS
from tests.simulation.world import LawBroken

if TYPE_CHECKING:
    from tests.simulation.trios import Trio, TrioWorld

REPLICAS = 3
AGAIN_SECONDS = 0.25
"""After a turn of a member, until the next."""
FENCED = frozenset({"OWN", "BLOB", "STATE"})


class Presence(MemberPresence):
    """Members ask each other, as far as they run and reach each other."""

    def __init__(self, member: Member) -> None:
        clock = HostClock(member.host)
        super().__init__(None, member.trio.path, member.name, clock, member.facts)  # type: ignore[arg-type]
        self._of = member

    async def look(self) -> dict[str, Facts]:
        trio = self._of.trio
        there = [it for it in trio.members.values() if it is self._of or trio.reach(self._of, it)]
        all_there = len(there) == len(trio.members)
        delay = min(trio.delay(), LOOK_SECONDS)
        await asyncio.sleep(delay)
        came = {CAME: self._of.host.instant().seconds}
        found: dict[str, Facts] = {it.name: {**it.presence.own(), **came} for it in there}
        if not all_there:
            await asyncio.sleep(LOOK_SECONDS - delay)
        return found

    async def tell(self, renewal: bytes) -> None:
        trio = self._of.trio
        for other in trio.members.values():
            if trio.reach(self._of, other):
                trio.world.after(trio.delay(), other.hear_renewal, other.presence, renewal)

    def clock_trouble(self) -> str:
        return self._of.ports.clock_trouble(super().clock_trouble())


class MemberHost(Host):
    """The machine of one member; its streams are those of all of them.

    For whoever stops and starts a host from outside it is the node: a process is killed, and comes
    again by itself.
    """

    world: TrioWorld

    def __init__(self, member: Member) -> None:
        super().__init__(member.trio.world, member.trio.path, attached=False)
        self.member, self.streams = member, member.trio.streams

    @property
    def incarnation(self) -> str:
        return f"{self.path}.{self.member.name}.{self.run}"

    @property
    def answers(self) -> bool:
        return super().answers and not self.member.is_stopped

    @property
    def is_current(self) -> bool:
        """Whether it runs the node, and no other member began since."""
        return self.world.hosts.get(self.path) is self

    def instant(self) -> Instant:
        now = super().instant()
        return Instant(now.seconds + self.member.seconds_ahead, now.wall_ms)

    def start(self) -> None:
        """Members start by themselves."""

    def stop(self, *, keep_disk: bool = True, server_too: bool = False) -> None:
        self.member.kill()

    def begin_run(self) -> None:
        """Be the node from now on."""
        self.world.hosts[self.path] = self
        super().start()

    def end_run(self) -> None:
        """Be it no more."""
        if self.node is not None:
            super().stop()

    def _crash(self) -> None:
        self._steps_left = self.armed = None
        self.member.kill()

    def new_bus(self) -> TrioBus:
        return TrioBus(self)

    def begin(self, coro: Coroutine[object, object, None], name: str) -> asyncio.Task[None]:
        async def until_broken() -> None:
            try:
                await coro
            except* (BusBroken, SpaceError):
                self.member.broke()

        return self.member.context().run(self.world.begin, until_broken(), name)

    def decided(self, run: int, made: Sequence[fx.Effect]) -> list[fx.Effect]:
        if self.is_current:
            return super().decided(run, made)
        if run != self.run:
            raise asyncio.CancelledError
        return [effect for honest in made for effect in self.world.ports.said(self, honest)]

    def handled(self) -> None:
        if self.is_current:
            super().handled()

    def write_mail(self, write: fx.WriteMail) -> int:
        held = self.streams.mail.get((write.child, str(write.key)))
        if (held.sequence if held else 0) != write.expected:
            raise MailConflict(f"{write.child} {write.key} was written by another since")
        self.tell_of(write)
        return super().write_mail(write)


class TrioBus(HostBus):
    """The bus of the active member; what it keeps of its own lands behind its fences, or not."""

    _host: MemberHost

    def __init__(self, host: MemberHost) -> None:
        super().__init__(host)
        self._member = host.member
        self._fenced = host.member.fenced

    async def start(self) -> Remembered:
        return self._member.remembered

    async def write(
        self,
        *,
        blobs: Mapping[ContentHash, bytes] | None = None,
        own: Iterable[fx.StoreOwn] = (),
        mail: Sequence[fx.WriteMail] = (),
    ) -> list[Any]:
        last = {write.key: write for write in own}
        content = [fx.KeepBlob(*blob) for blob in (blobs or {}).items()]
        for _ in (*content, *last.values()):
            self._host.step(self._run)
        kept = [self._means(write) for write in last.values() if write.data is not None]
        erased = [self._means(write).subject for write in last.values() if write.data is None]
        await self._fenced.write([self._means(blob) for blob in content], kept, erased)
        self._member.trio.acknowledged(last.values())
        answers = []
        for letter in mail:
            await self._member.step()
            self._host.step(self._run)
            sequence = self._host.write_mail(letter)
            answers.append(MailWritten(letter.child, letter.key, letter.generation, sequence))
        heard = self._host.world.ports.heard
        return [event for answer in answers for event in heard(self._host, answer)]

    def _means(self, effect: fx.StoreOwn | fx.KeepBlob) -> Outgoing:
        """The message that carries out an effect once it lands."""
        if isinstance(effect, fx.KeepBlob):
            message = Outgoing(subjects.blob(self.path, effect.address), effect.value)
        else:
            message = outgoing_own(self.path, effect)
        self._member.meant[message.subject, message.data] = effect
        return message

    def land(self, stored: Stored, effect: fx.Effect) -> None:
        """Have it so in the streams."""
        self._host.tell_of(effect)
        match effect:
            case fx.KeepBlob():
                self._streams.blobs[effect.address] = effect.value
            case fx.DropBlobs():
                for address in effect.addresses:
                    self._streams.blobs.pop(address, None)
            case fx.StoreOwn():
                assert is_erased(stored) is (effect.data is None)
                self._store(effect)

    async def drop_blobs(self, addresses: Sequence[ContentHash]) -> None:
        gone = []
        for address in addresses:
            self._host.step(self._run)
            subject = subjects.blob(self.path, address)
            self._member.meant[subject, b""] = fx.DropBlobs((address,))
            gone.append(subject)
        await self._fenced.drop_blobs(gone)

    async def add_child(self, name: str, nkey: str) -> None:
        await self._confirm(name)
        await super().add_child(name, nkey)

    async def remove_child(self, name: str) -> None:
        streams, path = self._streams, self.path.child(name)
        mail, stat = streams.mail.last, streams.stat.last
        await self._confirm(name)
        self._about_to(fx.RemoveChild(path))
        streams.children.pop(name, None)
        for stream, last in ((streams.mail, mail), (streams.stat, stat)):
            for slot, kept in stream.items():
                if slot[0] == name and kept.sequence <= last:
                    stream.erase(slot)
        self._host.world.links_changed(path)

    async def _confirm(self, child: str) -> None:
        """What no fence holds back is done only by who has the lease just then."""
        await self._member.step()
        if self._member.ports.confirms():
            await self._fenced.tenure.confirm()
        if self._host.node is not None and not self._host.is_current:
            what = f"{self.path}: {self._member.name} changes the account of {child}"
            raise LawBroken(ONE_WRITER, what)


class Member:
    """One member: its process, and what it has on its machine."""

    def __init__(self, trio: Trio, name: str, seconds_ahead: float) -> None:
        self.trio, self.name, self.seconds_ahead = trio, name, seconds_ahead
        self.host = MemberHost(self)
        self.presence = Presence(self)
        # Files that are the node's, and what of them the stream of state is known to hold.
        self.files: dict[str, Any] = {}
        self._known: dict[str, Any] = {}
        # What is carried out once a message of this subject and data lands.
        self.meant: dict[tuple[str, bytes], fx.Effect | SpaceWrite] = {}
        self.spaces: dict[str, FencedPublisher] = {}
        self.fenced: FencedStreams
        self.remembered: Remembered
        self.is_active = False
        self.started_at = 0.0
        # When its process was stopped or ended last, or went on after that.
        self.disturbed_at = float("-inf")
        # After so many steps more its process is stopped for so many seconds.
        self.armed: tuple[int, float] | None = None
        # What it sends next to a stream arrives so late, and it is stopped meanwhile for so long.
        self.late: tuple[str, float, float] | None = None
        self._lease: MemberLease | None = None
        # On its data directory, each over before the next one begins.
        self._runs = deque[str](maxlen=RUNS_MAX)
        self._process: object = None
        self._task: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()
        self._waiting: list[Callable[[], None]] = []

    @property
    def ports(self) -> MemberPorts:
        ports = self.trio.world.ports
        assert isinstance(ports, MemberPorts)
        return ports

    # The process.

    @property
    def runs(self) -> bool:
        return self._task is not None

    @property
    def is_stopped(self) -> bool:
        return self.trio.world.loop.is_stopped(self._process)

    def context(self) -> Context:
        """Where tasks of the process begin."""
        context = copy_context()
        context.run(PROCESS.set, self._process)
        return context

    def start(self) -> None:
        """Start the process, unless it runs."""
        if self._task is None:
            self._process, self.presence = object(), Presence(self)
            self.started_at = self.trio.world.now
            name = f"member {self.name} of {self.trio.path}"
            self._task = self.context().run(self.trio.world.begin, self._run(), name)

    def kill(self) -> None:
        """End the process at once; it starts again in a while."""
        world, task = self.trio.world, self._task
        self.note("killed")
        self.resume()
        self._process, self._task, self.is_active = None, None, False
        self.disturbed_at = world.now
        self.host.end_run()
        if task is not None:
            task.cancel()
        world.after(self.trio.restart_seconds(), self.start)

    def stop_for(self, seconds: float) -> None:
        """Stop the process for a while."""
        self.note(f"stopped for {seconds:.1f} s")
        world = self.trio.world
        self.armed, self.disturbed_at = None, world.now
        world.loop.stop_process(self._process)
        world.after(seconds, self._resume, self._process)

    def _resume(self, process: object) -> None:
        if process is self._process:
            self.resume()

    def resume(self) -> None:
        """Have it go on, if it was stopped."""
        world = self.trio.world
        if self.is_stopped:
            self.note("goes on")
            self.disturbed_at = world.now
            world.loop.go_on(self._process)
            waiting, self._waiting = self._waiting, []
            for act in waiting:
                act()

    async def step(self, process: object = None) -> None:
        """Between two steps of the process: perhaps it is stopped here, or has ended."""
        if self.armed is not None and self.is_active:
            left, seconds = self.armed
            self.armed = (left - 1, seconds)
            if left <= 0:
                self.stop_for(seconds)
        if self.is_stopped:
            await asyncio.sleep(0)
        if (process or self._process) is not self._process or self._process is None:
            raise asyncio.CancelledError

    def hear_renewal(self, presence: Presence, renewal: bytes) -> None:
        """What was told the process, unless it has ended; one that is stopped hears it later."""
        if presence is not self.presence:
            return
        if self.is_stopped:
            self._waiting.append(partial(self.hear_renewal, presence, renewal))
            return
        presence.when_told(renewal)

    def note(self, what: str) -> None:
        self.trio.world.note(self.trio.path, f"{self.name} {what}")

    def facts(self) -> Facts:
        heard = self._lease.heard_at if self._lease is not None else float("-inf")
        ago = None if heard == float("-inf") else self.host.instant().seconds - heard
        return {ROLE: ACTIVE if self.is_active else STANDBY, HEARD: ago}

    # Turns.

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.presence.compare_clocks())
            while True:
                await self._take_turn()
                await asyncio.sleep(AGAIN_SECONDS)

    async def _take_turn(self) -> None:
        trio, process = self.trio, self._process
        run = random_id(trio.world.dice.entropy(16))
        lease = self._lease = self.ports.lease(self.name, run, tuple(self._runs))
        self._runs.append(run)
        asking = ClusterConnection(self._client(process, lease.run, trio.delay))
        stream = LeaseStream(asking, trio.path, REPLICAS)
        keeper = LeaseKeeper(stream, lease, HostClock(self.host), self.presence)
        try:
            await keeper.take()
            self.note("takes the lease")
            self.is_active = True
            async with asyncio.TaskGroup() as group:
                running = group.create_task(self._run_node(keeper, process))
                await keeper.keep()
                self.note("has lost the lease")
                running.cancel()
        except* BusBroken as broken:
            self.note(f"ends: {first_of(broken)}")
            self.disturbed_at = trio.world.now
        finally:
            if process is self._process and process is not None:
                self.is_active = False
                self.host.end_run()
                await keeper.give_back()

    async def _run_node(self, keeper: LeaseKeeper, process: object) -> None:
        trio, token = self.trio, keeper.lease.run
        client = self._client(process, token)
        client.late, client.expects = self._goes_late, self.ports.expects_fence
        connection = ClusterConnection(client)
        await keeper.confirm()
        state = await self._take_state(connection, Tenure(token, keeper.confirm, _nothing))
        settled = partial(self._settle, state) if self.ports.settles() else _nothing
        tenure = Tenure(token, keeper.confirm, settled)
        await settled()
        self.fenced = FencedStreams(connection, trio.path, tenure)
        before = read_back(trio.streams)
        trio.before_fences()
        await self.fenced.take()
        if trio.path.is_root:
            self.spaces = await fenced_spaces(connection, tenure)
        self.remembered = read_back(trio.streams) if self.ports.reads_to_fence() else before
        self._ended = asyncio.Event()
        trio.world.at(trio.world.now, self._begin_run, process)
        await self._ended.wait()
        raise BusBroken("the node ended its run")

    def _begin_run(self, process: object) -> None:
        """Outside of all tasks: the node's own begin here."""
        if process is not self._process or not self.is_active:
            return
        if self.is_stopped:
            self._waiting.append(partial(self._begin_run, process))
            return
        self.trio.judge_takeover(self)
        # What begins it lets no time pass.
        armed, late, self.armed, self.late = self.armed, self.late, None, None
        try:
            self.context().run(self.host.begin_run)
        except (BusBroken, SpaceError) as broken:
            self.note(f"cannot begin: {broken}")
            self.host.end_run()
            self.broke()
            return
        self.armed, self.late = armed, late
        self.trio.judge_tenure(self)

    def broke(self) -> None:
        """The node cannot go on: the lease is given back, and the member stands by."""
        self.disturbed_at = self.trio.world.now
        self._ended.set()

    def _client(
        self, process: object, token: str, delay: Callable[[], float] | None = None
    ) -> ClusterClient:
        step = partial(self.step, process)
        return ClusterClient(
            self.trio.cluster, self.name, step, partial(self._landed, token), delay
        )

    def _goes_late(self, stream: str, arrive: Callable[[], Answer]) -> bool:
        if self.late is None or stream != self.late[0] or not self.host.answers:
            return False
        (_, late, stopped), self.late = self.late, None
        self.trio.send_late(late, arrive)
        self.stop_for(stopped)
        return True

    def _landed(self, token: str, stream: str, stored: Stored) -> None:
        """The cluster keeps something that a tenure of this member wrote."""
        trio, said = self.trio, (stored.subject, stored.data)
        if stored.subject.rsplit(".", 1)[1] == subjects.FENCE_KEY:
            trio.fences[stream] = token
            return
        if (stream in FENCED or stream.startswith("KV_")) and trio.fences.get(stream) != token:
            what = f"{trio.path}: {self.name} writes {stored.subject} behind another's fence"
            raise LawBroken(ONE_WRITER, what)
        effect = self.meant.pop(said, None)
        if isinstance(effect, SpaceWrite):
            effect.carry_out()
        elif effect is not None:
            trio.landed(effect)
            bus = self.host.bus
            assert isinstance(bus, TrioBus)
            bus.land(stored, effect)

    # The state of the node.

    async def _take_state(self, connection: ClusterConnection, tenure: Tenure) -> FencedPublisher:
        """Be the one who writes state from now on, with files as the stream has them."""
        path, state = self.trio.path, self.trio.cluster.stream("STATE")
        subject = subjects.fence(path, "STATE")
        fence = await take_fence(connection, tenure, "STATE", subject, replaces=True)
        kept = {
            name: self.trio.values[int(it.data)]
            for name, it in _named(state.kept.items())
            if it.subject != subject
        }
        if kept and self.ports.lays_state():
            self.files = dict(kept)
        self._known = dict(kept)
        return FencedPublisher(connection, fence, tenure)

    async def _settle(self, state: FencedPublisher) -> None:
        """Have the stream hold what the files do."""
        changed = {n: v for n, v in self.files.items() if self._known.get(n) is not v}
        if not changed:
            return
        lines, values, messages = header_lines(REPLACES), self.trio.values, []
        for name, value in changed.items():
            values.append(value)
            data = str(len(values) - 1).encode()
            messages.append(Outgoing(subjects.state(self.trio.path, name), data, lines))
        await state.publish(messages)
        self._known |= changed


def stream_of(subject: str) -> str:
    """The stream of a trio that captures a subject."""
    if subject.startswith("$KV."):
        return f"KV_{subject.split('.')[1]}"
    return subject.rsplit(".", 2)[-2].removeprefix("_").upper()


def new_cluster() -> Cluster:
    return Cluster(stream_of)


def _named(kept: Iterable[tuple[str, Stored]]) -> Iterator[tuple[str, Stored]]:
    for subject, stored in kept:
        yield subject.rsplit(".", 1)[1], stored


async def _nothing() -> None:
    """There is nothing to wait for."""
