"""One host: what it keeps on disk, its links, and the process on it, which is the real driver's.

A crash may cut what a batch leads to at any place. The streams are those that the bus contract
tests hold to the real ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING

from relay.core import effects as fx
from relay.core.config import NodeConfig
from relay.core.events import Event, HelloArrived, LinkChanged, MailArrived, ReportArrived, Welcomed
from relay.core.instant import Instant
from relay.core.view import NodeView
from schemas.reports.link import Welcome
from schemas.values.identity import MailKey, NodePath
from schemas.values.wire import decode
from tests.doubles.memory.streams import MemoryStreams
from tests.simulation.customizing import customize
from tests.simulation.hostbus import HELLO, HostBus, HostDriver
from tests.simulation.sealing import nkey_of, private_key_of
from tests.simulation.space import EdgeSpace
from tests.simulation.telling import bytes_of, told_effect

if TYPE_CHECKING:
    from tests.simulation.world import World

KEPT = (HELLO, "_progress")
"""What no fault takes out of a stream that goes on: who lost these would not know it."""


class Host:
    """One node's machine."""

    def __init__(self, world: World, path: NodePath, *, attached: bool) -> None:
        self.world, self.path, self.attached = world, path, attached
        self._above = None if path.is_root else path.parent
        self.streams = MemoryStreams()
        self.space = EdgeSpace(world, self)
        self.node: NodeView | None = None
        # Whether the machine's nats-server runs.
        self.serving = True
        # Which machine it is: a copied disk has another.
        self.machine = f"machine of {path}"
        # Seconds that each event costs.
        self.slow = 0.0
        self.skew_ms = 0
        # Whether the next batch is cut by a crash: it keeps the disk, and lasts so many seconds.
        self.armed: tuple[bool, float] | None = None
        # Takes nothing from its inbox: runs, says hello, and reads no mail.
        self.deaf = False
        self.former: tuple[NodePath, ...] = ()
        # Which keys of its own it has: the one in use, and one that is to take its place.
        self.own_keys: tuple[int, ...] = (0,)
        self.run = 0
        self.linked, self.link_epoch = False, 0
        self.denied: dict[str, int] = {}
        self.bus: HostBus
        self.driver: HostDriver
        self._running: asyncio.Task[None] | None = None
        self._beside: asyncio.Task[None] | None = None
        # How many more steps are taken before the crash, if one is to cut this batch.
        self._steps_left: int | None = None
        # Up to where the mailbox was sent here; None until it is read from somewhere in this link.
        self._read: int | None = None
        self._read_epoch = self._reports_read = self._reports_of_before = 0
        self._clocks: dict[str, float] = {}

    # The process: start, stop, and the loop.

    def start(self) -> None:
        """Start the process on what the disk holds."""
        self.run += 1
        self.serving = True
        self.world.note(self.path, f"start {self.run}")
        config = NodeConfig(
            self.path,
            self.world.tree,
            self.world.roots,
            self.incarnation,
            attached=self.attached,
            home=self.machine,
            former=self.former,
            customize=self.world.ports.customize(self, customize),
            private_keys=self._private_keys,
        )
        run = self.run
        self._reports_read, self._reports_of_before = 0, self.streams.stat.last
        self.linked, self._steps_left = False, None
        self.bus = self.new_bus()
        self.driver = HostDriver(self, self.bus, config)
        self._running = self.begin(self.driver.run(), f"driver of {self.incarnation}")
        if self.run != run or self.node is None:
            return
        self.world.links_changed(self.path)
        self.read_reports(self.run)
        self.space.started()
        if self.path.is_root:
            self.world.centre_started()

    def run_beside(self, coro: Coroutine[object, object, None], name: str) -> None:
        """Have something more run in the process, and end with it."""
        self._beside = self.begin(coro, f"{name} of {self.incarnation}")

    def begin(self, coro: Coroutine[object, object, None], name: str) -> asyncio.Task[None]:
        """Begin something in the process."""
        return self.world.begin(coro, name)

    def new_bus(self) -> HostBus:
        """The bus of a process that starts."""
        return HostBus(self)

    def begun(self, run: int, node: NodeView) -> None:
        """The driver's word: a node has begun on what the disk holds."""
        if run == self.run:
            self.node = node
            self.world.watcher.started(self)
            self.space.begun()

    @property
    def nkey(self) -> str:
        """By which its parent knows it."""
        return nkey_of(self.path, self.own_keys[0])

    def _private_keys(self) -> tuple[bytes, ...]:
        own = [private_key_of(self.path, number) for number in self.own_keys]
        return (*own, *map(private_key_of, self.former))

    def stop(self, *, keep_disk: bool = True, server_too: bool = False) -> None:
        """Kill the process at once; what streams hold stays, unless the disk goes with it."""
        self.world.note(self.path, f"stop disk={keep_disk} server={server_too}")
        self.node = None
        self.run += 1
        self.armed = None
        for task in filter(None, (self._running, self._beside)):
            task.cancel()
        self._running = self._beside = None
        self.space.stop()
        self.linked = False
        self.link_epoch += 1
        self.serving = not server_too
        if not keep_disk:
            self.world.watcher.disk_lost(self)
            self.streams = MemoryStreams()
        self.world.links_changed(self.path)

    def hang(self, path: NodePath, former: tuple[NodePath, ...]) -> None:
        """Be the machine of another path, while no process runs."""
        self.path, self._above, self.former = path, path.parent, former

    @property
    def answers(self) -> bool:
        """Whether the process runs, and takes what people ask."""
        return self.node is not None

    @property
    def incarnation(self) -> str:
        return f"{self.path}.{self.run}"

    def instant(self) -> Instant:
        return self.world.instant(self.skew_ms)

    def tell(self, event: Event) -> None:
        """Put an event before the node."""
        if self.node is None or (self.deaf and isinstance(event, MailArrived)):
            return
        for heard in self.world.ports.heard(self, event):
            self.bus.inbox.take(heard)

    def handled(self) -> None:
        """The driver's word: a batch is dealt with, and what came of it is carried out."""
        self.world.stepped()
        if self.node is not None:
            if self.world.checks:
                self.driver.machine.assert_invariants()
            self.world.watcher.handled(self)

    def _restart(self, run: int) -> None:
        if run == self.run and self.node is None:
            self.start()

    # Effects, as the driver carries them out.

    def decided(self, run: int, made: Sequence[fx.Effect]) -> list[fx.Effect]:
        """What becomes of all that a node decided at once."""
        if run != self.run:
            raise asyncio.CancelledError
        self.world.watcher.decided(self, made)
        said = [effect for honest in made for effect in self.world.ports.said(self, honest)]
        self.cut_amid(len(said))
        return said

    def cut_amid(self, steps: int) -> None:
        """Of so many steps that come now only some are taken, if a crash is to cut them."""
        if self.armed is not None and steps:
            self._steps_left = self.world.random.randint(0, steps)

    def about_to(self, run: int, effect: fx.Effect) -> None:
        """An effect is about to be carried out; raises CancelledError if the process ended."""
        self.step(run)
        self.tell_of(effect)

    def step(self, run: int) -> None:
        """A step of the process; raises CancelledError if it has ended, perhaps just now."""
        if run == self.run and self._steps_left is not None:
            if not self._steps_left:
                self._crash()
            else:
                self._steps_left -= 1
        if run != self.run:
            raise asyncio.CancelledError

    def tell_of(self, effect: fx.Effect) -> None:
        """Have the world know what is about to be done."""
        if self.world.traced:
            self.world.note(self.path, told_effect(effect), bytes_of(effect))
        self.world.watcher.effect(self, effect)

    def performed(self, run: int) -> None:
        """All of a batch is carried out; a crash that was to come in it comes now."""
        if run == self.run and self._steps_left is not None:
            self._crash()
        if run != self.run:
            raise asyncio.CancelledError

    def _crash(self) -> None:
        self._steps_left = None
        if self.armed is not None:
            keep_disk, lasts = self.armed
            self.stop(keep_disk=keep_disk, server_too=self._server_too())
            self.world.after(lasts, self._restart, self.run)

    def _server_too(self) -> bool:
        return self.world.random.random() < self.world.faults.server_stops

    # Mail: the children's, and the own.

    def write_mail(self, write: fx.WriteMail) -> int:
        """Write to a child's mailbox; the sequence there."""
        slot = (write.child, str(write.key))
        before = self.streams.mail.get(slot)
        if (before.sequence if before else 0) != write.expected:
            held = before.sequence if before else 0
            what = f"{write.child} {write.key}: {held} is there, {write.expected} was expected"
            raise AssertionError(f"MailConflict at {self.path}: {what}")
        sequence = self.streams.mail.put(slot, write.data, write)
        child = self.world.hosts.get(self.path.child(write.child))
        if child is not None:
            child.read_mail()
            lie = self.world.lying(self, write, sequence) if self.world.lying else None
            if lie is not None and child.linked:
                child.receive_mail(lie)
        return sequence

    def read_mail(self) -> None:
        """Have what the mailbox holds after the place of reading sent here, in order."""
        parent = self.parent()
        if parent is None or not self.linked or self.node is None or self._read is None:
            return
        unread = parent.streams.mail.after(self._read, self.path.name)
        for pending, ((_, key), kept) in zip(range(len(unread))[::-1], unread, strict=True):
            self._read = kept.sequence
            if self.world.withholds is not None and self.world.withholds(parent, kept):
                self.world.watcher.withheld(self, MailKey(key))
                continue
            event = MailArrived(kept.sequence, MailKey(key), kept.data, pending)
            self._arrive("mail", event, self._read_epoch)
            if self.world.random.random() < self.world.faults.duplicate:
                self._arrive("mail", event, self._read_epoch)

    @property
    def read_through(self) -> int:
        return self._read or 0

    def receive_mail(self, event: MailArrived) -> None:
        """Have a message of the mailbox come over the link, in its place."""
        self._arrive("mail", event, self._read_epoch)

    def read_from(self, sequence: int) -> None:
        """Read the mailbox from there on; what was sent before and has not come yet is void."""
        if self.parent() is not None and self.linked:
            self._read = max(sequence - 1, 0)
            self._read_epoch += 1
            self.read_mail()

    # The link: what comes down and goes up.

    def link_changed(self, *, up: bool) -> None:
        if self.node is None or up == self.linked:
            return
        self.linked = up
        self.link_epoch += 1
        self._read, self._read_epoch = None, self._read_epoch + 1
        self.tell(LinkChanged(up=up))

    def parent(self) -> Host | None:
        return None if self._above is None else self.world.hosts.get(self._above)

    def _arrive(self, lane: str, event: Event, read_epoch: int | None = None) -> None:
        """Have an event come over the link, in its lane's order, unless the link breaks before."""
        if self.world.mute.get(self.path) == "down":
            return
        time, last = self.world.now + self.world.delay(), self._clocks.get(lane, 0.0)
        self._clocks[lane] = time = max(last, time)
        self.world.at(time, self._arrived, self.run, self.link_epoch, read_epoch, event)

    def _arrived(self, run: int, link: int, read_epoch: int | None, event: Event) -> None:
        now = run == self.run and link == self.link_epoch
        if now and (read_epoch is None or read_epoch == self._read_epoch):
            self.tell(event)

    def send_welcome(self, name: str, data: bytes) -> None:
        """Answer a child's hello, unless that is lost."""
        child = self.world.hosts.get(self.path.child(name))
        lost = self.world.random.random() < self.world.faults.loss
        if child is not None and child.linked and not lost:
            child.welcome(data)

    def welcome(self, data: bytes) -> None:
        """Have the parent's answer come over the link."""
        self._arrive("welcome", Welcomed(decode(Welcome, data)))

    def send(self, said: Mapping[str, bytes]) -> bool:
        """Have values put into slots at the parent; False if there is no link.

        What is lost on its way is taken for sent.
        """
        if not self.linked:
            return False
        time = self.world.now + self.world.delay()
        self._clocks["up"] = time = max(time, self._clocks.get("up", 0.0))
        self.world.at(time, self._sent, self.link_epoch, said)
        return True

    def _sent(self, link: int, said: Mapping[str, bytes]) -> None:
        parent = self.parent()
        if link != self.link_epoch or parent is None or self.world.mute.get(self.path) == "up":
            return
        for key, data in said.items():
            if key in KEPT or not self.world.loses_report():
                parent.streams.stat.put((self.path.name, key), data)
        self.world.after(self.world.delay(), parent.read_reports, parent.run)

    def read_reports(self, run: int) -> None:
        """Have the node told of what its children said."""
        if run != self.run or self.node is None:
            return
        for (child, key), kept in self.streams.stat.after(self._reports_read):
            self._reports_read = kept.sequence
            if key == HELLO:
                is_former = kept.sequence <= self._reports_of_before
                self.tell(HelloArrived(child, kept.data, 0 if is_former else None))
            else:
                self.tell(ReportArrived(child, key, kept.data, kept.sequence))
