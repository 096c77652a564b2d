"""One host: what it keeps on disk, and the process that runs a node on it, as the driver would.

Effects of a batch are carried out in the driver's stages; a crash may cut them at any place. The
streams are those that the bus contract tests hold to the real ones.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from relay.core import effects as fx
from relay.core.config import NodeConfig
from relay.core.events import (
    Event,
    HelloArrived,
    Instant,
    LinkChanged,
    MailArrived,
    MailWritten,
    OwnRecord,
    ReportArrived,
    Tick,
    Welcomed,
)
from relay.core.node import Node
from schemas.content.blobs import Reference
from schemas.reports.link import Welcome
from schemas.values.identity import MailKey, NodePath
from schemas.values.wire import decode
from tests.doubles.memory.streams import MemoryStreams
from tests.simulation.collectors import EVALUATOR
from tests.simulation.customizing import customize
from tests.simulation.disk import looked_up, read_back, staged
from tests.simulation.sealing import nkey_of, private_key_of
from tests.simulation.space import EdgeSpace
from tests.simulation.telling import bytes_of, told_effect, told_event

if TYPE_CHECKING:
    from tests.simulation.world import World

BATCH_MAX = 8
HELLO = "_node.self"
KEPT = (HELLO, "_progress")
"""What no fault takes out of a stream that goes on: who lost these would not know it."""


class Host:
    """One node's machine."""

    def __init__(self, world: World, path: NodePath, *, attached: bool) -> None:
        self.world, self.path, self.attached = world, path, attached
        self._above = None if path.is_root else path.parent
        self.streams = MemoryStreams()
        self.space = EdgeSpace(world, self)
        self.node: Node | None = None
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
        self._inbox: deque[Event] = deque()
        self._busy = False
        self._tick_at: float | None = None
        # Up to where the mailbox was sent here; None until it is read from somewhere in this link.
        self._read: int | None = None
        self._read_epoch = self._reports_read = self._reports_of_before = 0
        self._clocks: dict[str, float] = {}
        self._outgoing: dict[str, bytes] = {}

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
        now = self.instant()
        done = list(self.streams.done.values())
        node = Node(config, read_back(self.streams), done, now, EVALUATOR)
        self.node = node
        self._tick_at, self._busy, self._reports_read = None, False, 0
        self._reports_of_before = self.streams.stat.last
        self.linked = False
        self.world.watcher.started(self)
        self._perform(list(node.start()))
        if self.node is not node:
            return
        self.world.links_changed(self.path)
        self.read_reports(self.run)
        self.space.started()
        if self.path.is_root:
            self.world.centre_started()
        self._wake()

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
        self._inbox.clear()
        self._outgoing.clear()
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
    def incarnation(self) -> str:
        return f"{self.path}.{self.run}"

    def instant(self) -> Instant:
        return self.world.instant(self.skew_ms)

    def tell(self, event: Event) -> None:
        """Put an event before the node."""
        if self.node is None or (self.deaf and isinstance(event, MailArrived)):
            return
        self._inbox.extend(self.world.ports.heard(self, event))
        self._wake()

    def _wake(self) -> None:
        if self._busy or self.node is None:
            return
        if self._inbox:
            self._busy = True
            self.world.after(self.slow, self._work, self.run)
            return
        due = self.node.deadline()
        if due is not None and (self._tick_at is None or due < self._tick_at):
            self._tick_at = due
            self.world.at(due, self._tick, self.run, due)

    def _tick(self, run: int, due: float) -> None:
        if run == self.run and self._tick_at == due:
            self._tick_at = None
            now = self.node.deadline() if self.node else None
            if now is not None and now <= self.world.now and not self._inbox:
                self.tell(Tick())
            self._wake()

    def _work(self, run: int) -> None:
        node = self.node
        if run != self.run or node is None:
            return
        world, inbox = self.world, self._inbox
        batch = [inbox.popleft() for _ in range(min(len(inbox), world.batch(BATCH_MAX)))]
        if world.traced:
            for event in batch:
                world.note(self.path, told_event(event))
        made = node.handle(batch, world.instant(self.skew_ms))
        if fx.ResetMail in map(type, made):
            self._inbox = deque(e for e in inbox if not isinstance(e, MailArrived))
        self._perform(list(made))
        self._busy = False
        if self.node is node:
            if world.checks:
                node.check()
            world.watcher.handled(self)
            self._wake()

    def _restart(self, run: int) -> None:
        if run == self.run and self.node is None:
            self.start()

    # Effects, in stages.

    def _perform(self, made: list[fx.Effect]) -> None:
        ports, run = self.world.ports, self.run
        doomed = self.world.random if self.armed is not None else None
        self.world.watcher.decided(self, made)
        said = [effect for honest in made for effect in ports.said(self, honest)]
        todo = ports.ordered(self, staged(said, doomed) if len(said) > 1 else said)
        cut = None
        if self.armed is not None and todo:
            cut = self.world.random.randint(0, len(todo))
        for at, effect in enumerate(todo):
            if at == cut or run != self.run:
                break
            if self.world.traced:
                self.world.note(self.path, told_effect(effect), bytes_of(effect))
            self.world.watcher.effect(self, effect)
            self._perform_one(effect)
        if cut is not None and self.armed is not None:
            keep_disk, lasts = self.armed
            self.stop(keep_disk=keep_disk, server_too=self._server_too())
            self.world.after(lasts, self._restart, self.run)

    def _server_too(self) -> bool:
        return self.world.random.random() < self.world.faults.server_stops

    def _perform_one(self, effect: fx.Effect) -> None:  # noqa: C901, PLR0912
        streams = self.streams
        match effect:
            case fx.KeepBlob():
                streams.blobs[effect.address] = effect.value
            case fx.DropBlobs():
                for address in effect.addresses:
                    streams.blobs.pop(address, None)
            case fx.StoreOwn():
                streams.own.pop(effect.key, None)
                if effect.data is not None:
                    at = (effect.incarnation, effect.sequence)
                    streams.own[effect.key] = OwnRecord(effect.key, effect.data, *at)
            case fx.AddChild():
                streams.children[effect.path.name] = effect.nkey
                self.world.links_changed(effect.path)
            case fx.RemoveChild():
                self._remove_child(effect.path)
            case fx.WriteMail():
                self._write(effect)
            case fx.ClearMail():
                kept = streams.mail.get((effect.child, effect.key))
                if kept is not None and kept.sequence == effect.sequence:
                    streams.mail.erase((effect.child, effect.key))
            case fx.DropReport():
                kept = streams.stat.get((effect.child, effect.key))
                if kept is not None and kept.sequence <= effect.sequence:
                    streams.stat.erase((effect.child, effect.key))
            case fx.ResetMail():
                self._reset(effect.sequence)
            case fx.LoadBlob():
                self.world.after(self.world.delay(), self._load, self.run, effect.reference)
            case fx.SendReport():
                self._send(effect.key, effect.data)
            case fx.SendHello():
                self._send(HELLO, effect.data)
            case fx.SendWelcome():
                self._send_welcome(effect)
            case fx.SnapshotShown():
                self.world.snapshot_shown(effect.rank.generation)
            case fx.WantsChanged():
                self.space.told()
            case _:
                pass

    # Mail: the children's, and the own.

    def _write(self, write: fx.WriteMail) -> None:
        slot = (write.child, str(write.key))
        before = self.streams.mail.get(slot)
        if (before.sequence if before else 0) != write.expected:
            held = before.sequence if before else 0
            what = f"{write.child} {write.key}: {held} is there, {write.expected} was expected"
            raise AssertionError(f"MailConflict at {self.path}: {what}")
        sequence = self.streams.mail.put(slot, write.data, write)
        self.tell(MailWritten(write.child, write.key, write.generation, sequence))
        child = self.world.hosts.get(self.path.child(write.child))
        if child is None:
            return
        child.read_mail()
        lie = self.world.lying(self, write, sequence) if self.world.lying else None
        if lie is not None and child.linked:
            child.receive_mail(lie)

    def _remove_child(self, path: NodePath) -> None:
        streams = self.streams
        streams.children.pop(path.name, None)
        streams.mail.erase_child(path.name)
        streams.stat.erase_child(path.name)
        self.world.links_changed(path)

    def read_mail(self) -> None:
        """Have what the mailbox holds after the place of reading sent here, in order."""
        parent = self._parent()
        if parent is None or not self.linked or self.node is None or self._read is None:
            return
        unread = parent.streams.mail.after(self._read, self.path.name)
        for pending, ((_, key), kept) in zip(range(len(unread))[::-1], unread, strict=True):
            self._read = kept.sequence
            if self.world.withholds is not None and self.world.withholds(parent, kept):
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

    def _reset(self, sequence: int) -> None:
        parent = self._parent()
        if parent is not None and self.linked:
            self._read = max(sequence - 1, 0)
            self._read_epoch += 1
            self.read_mail()

    def _load(self, run: int, reference: Reference) -> None:
        if run != self.run:
            return
        found = looked_up(self, self._parent(), reference)
        if found.value is None and not found.unheard:
            self.denied[f"{reference.kind} {reference.address[:12]}"] = self.link_epoch
        self.tell(found)

    # The link: what comes down and goes up.

    def link_changed(self, *, up: bool) -> None:
        if self.node is None or up == self.linked:
            return
        self.linked = up
        self.link_epoch += 1
        self._read, self._read_epoch = None, self._read_epoch + 1
        self.tell(LinkChanged(up=up))

    def _parent(self) -> Host | None:
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

    def _send_welcome(self, effect: fx.SendWelcome) -> None:
        child = self.world.hosts.get(self.path.child(effect.child))
        lost = self.world.random.random() < self.world.faults.loss
        if child is not None and child.linked and not lost:
            child.welcome(effect.data)

    def welcome(self, data: bytes) -> None:
        """Have the parent's answer come over the link."""
        self._arrive("welcome", Welcomed(decode(Welcome, data)))

    def _send(self, key: str, data: bytes) -> None:
        if not self._outgoing:
            self.world.after(0, self._send_up, self.run)
        # What is said last of a slot goes in its last place: progress after what it speaks of.
        self._outgoing.pop(key, None)
        self._outgoing[key] = data

    def _send_up(self, run: int) -> None:
        if run != self.run or not self._outgoing:
            return
        said, self._outgoing = self._outgoing, {}
        if not self.linked:
            self.tell(LinkChanged(up=False))
            return
        time = self.world.now + self.world.delay()
        self._clocks["up"] = time = max(time, self._clocks.get("up", 0.0))
        self.world.at(time, self._sent, self.link_epoch, said)

    def _sent(self, link: int, said: dict[str, bytes]) -> None:
        parent = self._parent()
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
