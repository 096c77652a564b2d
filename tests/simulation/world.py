"""A whole tree in virtual time, without sockets: the same seed is the same run.

The world knows time, chance and the links between hosts. Processes are tasks on its loop, which has
a seed of its own: what users, links and faults do comes one by one, and tasks go on between.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import Callable, Coroutine, Sequence
from heapq import heappop, heappush
from math import log
from random import Random
from typing import Any, TypeVar

from relay.core.effects import WriteMail
from relay.core.events import MailArrived
from relay.core.instant import Instant
from relay.space_port import Space
from schemas.content.blobs import Reference
from schemas.records.roots import Roots
from schemas.values.identity import MailKey, NodePath, TreeId
from tests.doubles.memory.streams import Kept
from tests.doubles.memory_space import MemorySpace
from tests.simulation.clocks import WorldDice
from tests.simulation.faults import NO_FAULTS, Faults
from tests.simulation.host import Host
from tests.simulation.ports import HONEST
from tests.simulation.virtual_time import VirtualLoop

CENTRE = NodePath.parse("/")
T = TypeVar("T")
WALL_MS = 1_750_000_000_000
STEPS_MAX = 300_000
CHECKED_EVERY = 3
"""Nodes are checked after each third step: that is half of what a world takes, and what is broken
stays so. A replay looks after each."""
QUIET_SECONDS, QUIET_CHECKED_EVERY = 600.0, 13
"""While nothing is done to a tree for longer, they are checked after each 13th."""


class LawBroken(AssertionError):
    """A safety property does not hold; `law` is its name in the architecture."""

    def __init__(self, law: str, what: str) -> None:
        super().__init__(f"{law}: {what}")
        self.law = law


class Watcher:
    """Is told of everything that the laws speak of; the oracle overrides what it checks."""

    def effect(self, host: Host, effect: object) -> None:
        """An effect is about to be carried out."""

    def started(self, host: Host) -> None:
        """A process is about to run on what the disk holds."""

    def decided(self, host: Host, effects: Sequence[object]) -> None:
        """A node said all of this at once; a crash may keep any part of it."""

    def handled(self, host: Host) -> None:
        """A batch was carried out."""

    def applying(self, host: Host, key: object, address: str, placements: tuple[str, ...]) -> None:
        """An edge is about to write an object."""

    def pruning(self, host: Host, key: object, *, made: bool) -> None:
        """An edge is about to delete an object, or to leave what it did not make."""

    def withheld(self, host: Host, key: MailKey) -> None:
        """A relay keeps a message of its mailbox from a host."""

    def model_changed(self) -> None:
        """What is wanted is about to change, or has."""

    def drifted(self, host: Host) -> None:
        """Someone else changed or deleted an object in a cluster."""

    def disk_lost(self, host: Host) -> None:
        """A host forgot everything but its cluster."""

    def disk_restored(self, host: Host) -> None:
        """A host remembers what it did once, and not what came after."""


class World:
    """Time, chance, hosts and links."""

    def __init__(
        self, seed: int | str, tree: TreeId, roots: Roots, faults: Faults = NO_FAULTS
    ) -> None:
        self.random = Random(seed)
        # Of clusters and syncers: what these draw leaves the world as it is.
        self.dice = WorldDice(Random(f"dice {seed}"))
        self.loop = VirtualLoop(Random(f"tasks {seed}"))
        self.tree, self.roots, self.faults = tree, roots, faults
        self.now = 0.0
        self.hosts: dict[NodePath, Host] = {}
        self.watcher = Watcher()
        self.lying: Callable[[Host, WriteMail, int], MailArrived | None] | None = None
        self.story: list[str] | None = None
        self.traced = False
        self.ports = HONEST
        self.centre_started: Callable[[], None] = _nothing
        self._heap: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self._ties = itertools.count()
        self.lying_blobs: Callable[[Host, Reference, bytes], bytes | None] | None = None
        self.lied = False
        self.withholds: Callable[[Host, Kept], bool] | None = None
        self.mute: dict[NodePath, str] = {}
        self._cut: dict[NodePath, None] = {}
        self._trace: Any = None
        self._steps, self.steps_max = 0, STEPS_MAX
        self._quiet_from = 0.0
        self._failure: BaseException | None = None

    @property
    def root(self) -> Host:
        return self.hosts[CENTRE]

    def instant(self, skew_ms: int = 0) -> Instant:
        """What a host's clocks read, if its wall clock is off by this much."""
        return Instant(self.now, WALL_MS + int(self.now * 1000) + skew_ms)

    def add(self, path: NodePath, *, attached: bool) -> Host:
        """A new host, whose process runs."""
        host = self.hosts[path] = Host(self, path, attached=attached)
        host.start()
        return host

    def door(self, _name: str, space: MemorySpace) -> Space:
        """A space of the centre's, as its process reaches it."""
        return space

    def at(self, time: float, action: Callable[..., None], *args: object) -> None:
        now = self.now
        heappush(self._heap, (max(now, time), next(self._ties), action, args))

    def after(self, seconds: float, action: Callable[..., None], *args: object) -> None:
        heappush(self._heap, (self.now + seconds, next(self._ties), action, args))

    def delay(self) -> float:
        """As `expovariate` draws it."""
        return -log(1.0 - self.random.random()) / (1 / self.faults.delay_mean)

    def batch(self, most: int) -> int:
        """As `randint` draws from 1 on, without its checks."""
        bits, draw = most.bit_length(), self.random.getrandbits
        drawn = draw(bits)
        while drawn >= most:
            drawn = draw(bits)
        return 1 + drawn

    def loses_report(self) -> bool:
        """Whether a report is lost now that is stored, as its child knows."""
        chance = self.faults.report_loss
        return bool(chance) and self.random.random() < chance

    @property
    def checks(self) -> bool:
        """Whether nodes assert their invariants now."""
        every = CHECKED_EVERY if self.now < self._quiet_from else QUIET_CHECKED_EVERY
        return self.traced or self._steps % every == 0

    def run(self, seconds: float) -> None:
        """Let virtual time pass."""
        until, heap, loop = self.now + seconds, self._heap, self.loop
        self._quiet_from = self.now + QUIET_SECONDS
        while True:
            self._run_tasks()
            due = loop.next_due()
            if heap and heap[0][0] <= until and (due is None or heap[0][0] <= due):
                time, _, action, args = heappop(heap)
                self._pass_to(time)
                self.stepped()
                action(*args)
            elif due is not None and due <= until:
                self._pass_to(due)
            else:
                break
        self._pass_to(until)

    def begin(self, coro: Coroutine[object, object, None], name: str) -> asyncio.Task[None]:
        """A process of a host; what it fails with ends the run."""
        task = self.loop.begin(coro, name)
        task.add_done_callback(self._ended)
        return task

    def finish(self, coro: Coroutine[object, object, T]) -> T:
        """What comes of something that lets no time pass; raises CancelledError if it was ended."""
        task = self.loop.create_task(coro)
        self.loop.run_ready(task)
        self._raise_failure()
        assert task.done(), f"{coro} waits for time to pass"
        return task.result()

    def stepped(self) -> None:
        """Something more was done; raises LawBroken if that never ends."""
        self._steps += 1
        if self._steps > self.steps_max:
            what = f"more than {self.steps_max} steps: the tree never rests"
            raise LawBroken("Bounded", what)

    def close(self) -> None:
        """End all processes: the world is over."""
        for host in self.hosts.values():
            host.run += 1
        self.loop.close()

    def _run_tasks(self) -> None:
        self.loop.run_ready()
        self._raise_failure()

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _pass_to(self, time: float) -> None:
        self.now = max(self.now, time)
        self.loop.step_to(self.now)

    def _ended(self, task: asyncio.Task[None]) -> None:
        failure = None if task.cancelled() else task.exception()
        while isinstance(failure, BaseExceptionGroup):
            failure = failure.exceptions[0]
        if self._failure is None:
            self._failure = failure

    def note(self, who: NodePath | str, what: str, data: bytes = b"") -> None:
        """Take a step into the trace: equal seeds have equal digests."""
        if not self.traced:
            return
        if self._trace is None:
            self._trace = hashlib.sha256()
        line = f"{self.now:.6f} {who} {what}"
        self._trace.update(line.encode())
        self._trace.update(data)
        if self.story is not None:
            self.story.append(line)

    def trace(self) -> str:
        """The digest of all steps; without a trace only of how many there were and how long."""
        if self._trace is None:
            return f"{self._steps}@{self.now:.3f}"
        return self._trace.hexdigest()[:16]

    def linkable(self, path: NodePath) -> bool:
        """Whether a host can reach its parent: both servers run, and the account is there."""
        if path.is_root or path in self._cut:
            return False
        host, parent = self.hosts.get(path), self.hosts.get(path.parent)
        if host is None or parent is None or not (host.serving and parent.serving):
            return False
        return host.nkey in parent.streams.children.get(path.name, "").split()

    def links_changed(self, path: NodePath) -> None:
        """Look again at the link of this host and of its children."""
        for other in list(self.hosts.values()):
            if other.path == path or (not other.path.is_root and other.path.parent == path):
                other.link_changed(up=self.linkable(other.path))

    def cut(self, path: NodePath) -> None:
        self.note(path, "cut")
        self._cut[path] = None
        self.links_changed(path)

    def heal(self, path: NodePath) -> None:
        if self._cut.pop(path, self) is not self:
            self.note(path, "heal")
            self.links_changed(path)

    def cut_one_way(self, path: NodePath, way: str) -> None:
        """Lose what goes `up` or `down` a link, without either end noticing."""
        self.note(path, f"cut {way}")
        self.mute[path] = way

    def heal_one_way(self, path: NodePath) -> None:
        """The link is made anew: what was lost on it is read or said again."""
        if self.mute.pop(path, None) is not None and path in self.hosts:
            self.note(path, "heal")
            self.hosts[path].link_changed(up=False)
            self.links_changed(path)

    def is_cut(self, path: NodePath) -> bool:
        return path in self._cut

    def heal_all(self) -> None:
        """End all faults: links, processes, refusals; what is slow stays slow."""
        for path in list(self._cut):
            self.heal(path)
        for path in list(self.mute):
            self.heal_one_way(path)
        for host in list(self.hosts.values()):
            host.armed = None
            host.space.refusing.clear()
            if host.node is None:
                host.start()

    @property
    def disturbed(self) -> bool:
        """Whether someone else may change what is in clusters now."""
        return bool(self.faults.drift_every)

    def remove(self, path: NodePath) -> None:
        """Take a host and all below it away for good."""
        for other in [p for p in self.hosts if path.holds(p)]:
            self.hosts[other].stop()
            del self.hosts[other]
            self._cut.pop(other, None)


def _nothing() -> None:
    """Nobody is to be told yet."""
