"""Trees of which some nodes have three members; members are killed, stopped, cut off, and lied to.

| law | what is asked |
| --- | --- |
| Of two members one is active | whoever can run has stopped the node before another begins it |
| Nothing lands of who is not active any more | at each message that a stream takes |
| What is acknowledged is kept | the successor read all that landed, and nothing of it is gone |
| Who is well stays active | nobody takes over from a member that nothing happened to |
| Nobody becomes active whose clock is wrong | by the median of three |
| Each tenure is a term of its own | and its generations are above all that landed |

All others hold, too: in the end all is as wanted, and every count is exact.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from functools import partial
from random import Random
from statistics import median
from typing import Any, TypeVar

from relay.adapters.spaces.bucket import stream_of
from relay.core import effects as fx
from relay.core.records.accepted import read_record
from relay.members.lease import CLOCK_SECONDS_MAX, SILENT_SECONDS
from relay.ports import BusBroken
from relay.space_port import Space
from schemas.values.identity import NodePath
from tests.doubles.memory.streams import MemoryStreams
from tests.doubles.memory_space import MemorySpace
from tests.simulation import faults
from tests.simulation.books import is_signed
from tests.simulation.chaos import Chaos
from tests.simulation.cluster import Answer
from tests.simulation.host import Host
from tests.simulation.keys import KeysInMemory
from tests.simulation.laws import (
    ACKNOWLEDGED,
    CONVERGENCE,
    NEW_TERM,
    ONE_ACTIVE,
    RIGHT_CLOCKS,
    WELL_STAYS,
)
from tests.simulation.member_ports import MemberPorts
from tests.simulation.member_spaces import MemberSpace, SpaceWrite
from tests.simulation.members import Member, MemberHost, new_cluster
from tests.simulation.model import WORKLOADS
from tests.simulation.run import Outcome, Run, broken_by
from tests.simulation.signatures import cheap_signatures
from tests.simulation.sizes import SMALL, Size
from tests.simulation.world import CENTRE, LawBroken, World

T = TypeVar("T")
NAMES = ("m1", "m2", "m3")
ACTIVE_SECONDS_MAX = 120.0
"""So long it takes at most until somebody is active where nothing goes wrong any more."""
CALM_SECONDS = SILENT_SECONDS + 10.0
"""So long after the last fault nobody takes over from anybody."""
COMPARED_SECONDS = 15.0
"""So long a clock is wrong until all members surely know."""
NEAR = 4
"""So many times sooner members hear each other than other nodes."""
TRIO = replace(
    SMALL, name="trio", rounds=((3, 7), (0, 3)), gap_seconds=5.0, tail_seconds=20.0, rest_every=16
)


class Trio:
    """The three members of one node, their cluster, and what they are held to."""

    def __init__(self, world: TrioWorld, path: NodePath) -> None:
        self.world, self.path = world, path
        self.streams, self.cluster = MemoryStreams(), new_cluster()
        # By the numbers under which state says them.
        self.values: list[Any] = []
        # Whose fence is the last one in each stream.
        self.fences: dict[str, str] = {}
        self._landed: dict[str, fx.StoreOwn] = {}
        self._acknowledged: dict[str, fx.StoreOwn] = {}
        # What was ever to be written into the centre's spaces.
        self.writes: list[SpaceWrite] = []
        self._on_the_way: list[Callable[[], Answer]] = []
        # How much of what is late comes just before a fence.
        self.late_share = 1 / 3
        self.disturbed_at = float("-inf")
        self._clock_set_at = float("-inf")
        self.takeovers = 0
        self._former: Member | None = None
        self.members = {n: Member(self, n, 1000.0 * at) for at, n in enumerate(NAMES)}

    @property
    def active(self) -> Member | None:
        """Who runs the node, and can."""
        return next((it for it in self.members.values() if it.host.answers), None)

    def reach(self, one: Member, other: Member) -> bool:
        """Whether one member hears another one."""
        away = self.cluster.cut_off
        return one.name not in away and other.name not in away and self._can_run(other)

    @staticmethod
    def _can_run(member: Member) -> bool:
        return member.runs and not member.is_stopped

    def delay(self) -> float:
        """Of a message between members, which are near each other."""
        return self.world.delay() / NEAR

    def restart_seconds(self) -> float:
        return self.world.random.uniform(0.5, 8.0)

    # What befalls it.

    def disturb(self) -> None:
        self.disturbed_at = self.world.now

    def cut_off(self, member: Member, seconds: float) -> None:
        """A member does not reach the cluster, nor the others."""
        member.note(f"cut off for {seconds:.1f} s")
        self.disturb()
        self.cluster.cut_off[member.name] = None
        self.world.after(seconds, self.reached_again, member)

    def reached_again(self, member: Member) -> None:
        self.disturb()
        self.cluster.cut_off.pop(member.name, None)

    def elect(self, seconds: float) -> None:
        """The stream of the lease has no leader for a while, and nobody is to be deposed by it."""
        self.world.note(self.path, f"no leader of the lease for {seconds:.1f} s")
        self.cluster.leads_lease = False
        self.world.after(seconds, self._elected)

    def _elected(self) -> None:
        self.cluster.leads_lease = True

    def lose_lease(self) -> None:
        self.world.note(self.path, "the lease is lost")
        self.disturb()
        self.cluster.lose_lease()

    def put_back_lease(self, copy: Any) -> None:
        """The lease is as it was once."""
        self.world.note(self.path, "the lease is put back")
        self.disturb()
        self.cluster.streams["LEASE"] = copy

    def set_clock(self, member: Member, seconds: float) -> None:
        member.note(f"has its clock {seconds:.0f} s off")
        self._clock_set_at = self.world.now
        self.disturb()
        member.host.skew_ms = int(seconds * 1000)

    def send_late(self, seconds: float, arrive: Callable[[], Answer]) -> None:
        """A batch is under way; who sent it is stopped, and hears no answer."""
        self._on_the_way.append(arrive)
        self.world.after(seconds, self._arrive, arrive)

    def _arrive(self, arrive: Callable[[], Answer]) -> None:
        if arrive in self._on_the_way:
            self._on_the_way.remove(arrive)
            self.world.note(self.path, "a late batch arrives")
            arrive()

    def before_fences(self) -> None:
        """What is late comes just before the successor's fences, or after these."""
        for arrive in list(self._on_the_way):
            if self.world.random.random() < self.late_share:
                self._arrive(arrive)

    def heal(self) -> None:
        """End all faults of members."""
        for member in self.members.values():
            if member.host.skew_ms:
                self.set_clock(member, 0.0)
            if member.is_stopped:
                member.resume()
            member.armed = member.late = None
            self.reached_again(member)
            member.start()
        self._elected()

    def end(self) -> None:
        """It is taken away."""
        for member in self.members.values():
            member.kill()

    # What it is held to.

    def landed(self, effect: fx.Effect) -> None:
        if isinstance(effect, fx.StoreOwn):
            self._landed[effect.key] = effect

    def acknowledged(self, writes: Iterable[fx.StoreOwn]) -> None:
        """These were said to be kept."""
        for write in writes:
            self._acknowledged[write.key] = write

    def judge_takeover(self, member: Member) -> None:
        """A member is about to be the node."""
        now, former = self.world.now, self._former
        self.takeovers += 1
        self.world.note(self.path, f"{member.name} becomes active")
        for other in self.members.values():
            runs = other is not member and other.host.answers and self._can_run(other)
            if runs and now > other.disturbed_at:
                what = f"{self.path}: {member.name} begins while {other.name} goes on"
                raise LawBroken(ONE_ACTIVE, what)
        if former is not None:
            disturbed = max(self.disturbed_at, *(it.disturbed_at for it in self.members.values()))
            if now - disturbed > CALM_SECONDS:
                what = f"{self.path}: {member.name} takes over from {former.name}"
                raise LawBroken(WELL_STAYS, what)
        self._judge_clock(member)
        self._judge_read(member)
        self._former = member
        self.world.tenure_begins(self, member)

    def _judge_clock(self, member: Member) -> None:
        skews = [it.host.skew_ms / 1000 for it in self.members.values()]
        apart = abs(member.host.skew_ms / 1000 - median(skews))
        known_since = max(self._clock_set_at, *(it.started_at for it in self.members.values()))
        is_known = self.world.now - known_since > COMPARED_SECONDS
        others = [it for it in self.members.values() if it is not member]
        if apart > CLOCK_SECONDS_MAX + 1 and is_known and all(map(self._can_run, others)):
            what = f"{self.path}: {member.name}, whose clock is {apart:.0f} s off"
            raise LawBroken(RIGHT_CLOCKS, what)

    def _judge_read(self, member: Member) -> None:
        """It read all that ever landed, and of that nothing is lost that was acknowledged."""
        read = {it.key: it.data for it in member.remembered.own}
        for key, write in self._acknowledged.items():
            last = self._landed.get(key)
            if last is None:
                raise LawBroken(
                    ACKNOWLEDGED, f"{self.path}: {key} never landed: {write.data!r:.40}"
                )
        if member.remembered.blobs != frozenset(self.streams.blobs):
            what = f"{self.path}: {member.name} did not read all content that landed"
            raise LawBroken(ACKNOWLEDGED, what)
        for key, write in self._landed.items():
            if read.get(key) != write.data:
                what = f"{self.path}: {member.name} did not read what landed under {key}"
                raise LawBroken(ACKNOWLEDGED, what)

    def judge_tenure(self, member: Member) -> None:
        """A member is the node."""
        self.world.tenure_began(self, member)

    @property
    def highest(self) -> int:
        """The highest generation of a record that landed."""
        said = [it.data for key, it in self._landed.items() if is_signed(key) and key[0] != "_"]
        found = [read_record(data)[1].generation for data in said if data is not None]
        return max(found, default=0)


class TrioWorld(World):
    """A world in which the centre and its regions have three members each."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.ports = MemberPorts()
        self.trios: dict[NodePath, Trio] = {}
        # Told before a member runs a node, and once it does.
        self.tenure_begins: Callable[[Trio, Member], None] = lambda _trio, _member: None
        self.tenure_began: Callable[[Trio, Member], None] = lambda _trio, _member: None

    def add(self, path: NodePath, *, attached: bool) -> Host:
        if attached or len(path.names) > 1:
            return super().add(path, attached=attached)
        trio = self.trios[path] = Trio(self, path)
        self.hosts[path] = trio.members[NAMES[0]].host
        for member in trio.members.values():
            member.start()
        self.until_active(trio)
        return self.hosts[path]

    def until_active(self, trio: Trio) -> None:
        """Let time pass until some member runs the node."""
        until = self.now + ACTIVE_SECONDS_MAX
        while trio.active is None:
            if self.now > until:
                raise LawBroken(ONE_ACTIVE, f"{trio.path}: nobody becomes active")
            self.run(0.5)

    def finish(self, coro: Coroutine[object, object, T]) -> T:
        """As in other worlds; the process may be stopped amid it, and goes on later."""
        host = self.root
        assert isinstance(host, MemberHost)
        task = host.member.context().run(self.loop.create_task, coro)
        self.loop.run_ready(task)
        if not task.done() and host.member.is_stopped:
            task.add_done_callback(_forget)
            raise asyncio.CancelledError
        self._raise_failure()
        assert task.done(), f"{coro} waits for time to pass"
        try:
            return task.result()
        except BusBroken:
            host.member.broke()
            raise

    def heal_all(self) -> None:
        super().heal_all()
        for trio in self.trios.values():
            trio.heal()

    def door(self, name: str, space: MemorySpace) -> Space:
        host = self.root
        assert isinstance(host, MemberHost)
        return MemberSpace(space, name, host.member)

    def close(self) -> None:
        super().close()
        for trio in self.trios.values():
            for write in trio.writes:
                write.close()

    def remove(self, path: NodePath) -> None:
        for other in [it for it in self.trios if path.holds(it)]:
            self.trios.pop(other).end()
        super().remove(path)


def _forget(task: asyncio.Task[Any]) -> None:
    """Nobody waits any more for what it says."""
    if not task.cancelled():
        task.exception()


class TrioChaos(Chaos):
    """The faults of other worlds, and those of members."""

    def start(self) -> None:
        super().start()
        self._later(8.0, self._befall, self._round)

    def _befall(self) -> None:
        world, random = self._world, self._world.random
        assert isinstance(world, TrioWorld)
        trio = random.choice(list(world.trios.values()))
        BEFALLS[random.randrange(len(BEFALLS))](trio)


def _kill(trio: Trio) -> None:
    _one_of(trio).kill()


def _stop(trio: Trio) -> None:
    member = _one_of(trio)
    if member.runs and not member.is_stopped:
        member.stop_for(trio.world.random.uniform(1.0, 40.0))


def _stop_amid(trio: Trio) -> None:
    """Whoever is active is stopped between two steps of what it writes next."""
    random, member = trio.world.random, trio.active
    if member is not None:
        member.armed = random.randrange(12), random.uniform(5.0, 30.0)


def _be_late(trio: Trio) -> None:
    """The next batch comes late, and whoever sent it is stopped meanwhile."""
    random, member = trio.world.random, trio.active
    if member is not None:
        seconds = random.uniform(5.0, 30.0)
        stream = random.choice(("OWN", stream_of(WORKLOADS)))
        member.late = stream, random.uniform(0.0, seconds), seconds


def _hand_over(trio: Trio) -> None:
    if trio.active is not None:
        trio.active.broke()


def _cut_off(trio: Trio) -> None:
    trio.cut_off(_one_of(trio), trio.world.random.uniform(1.0, 30.0))


def _elect(trio: Trio) -> None:
    trio.elect(trio.world.random.uniform(4.0, 9.0))


def _lose_lease(trio: Trio) -> None:
    trio.lose_lease()


def _restore_lease(trio: Trio) -> None:
    copy = trio.cluster.stream("LEASE").copy()
    trio.world.after(trio.world.random.uniform(1.0, 20.0), trio.put_back_lease, copy)


def _set_clock(trio: Trio) -> None:
    trio.set_clock(_one_of(trio), trio.world.random.choice((-3600.0, 60.0, 3600.0)))


BEFALLS: tuple[Callable[[Trio], None], ...] = (
    _kill,
    _stop,
    _stop_amid,
    _stop_amid,
    _be_late,
    _hand_over,
    _cut_off,
    _elect,
    _lose_lease,
    _restore_lease,
    _set_clock,
)


def _one_of(trio: Trio) -> Member:
    """Mostly who is active."""
    random, active = trio.world.random, trio.active
    if active is not None and random.random() < 2 / 3:
        return active
    return random.choice(list(trio.members.values()))


class TrioRun(Run):
    """A run in such a world."""

    world_of = TrioWorld
    world: TrioWorld

    def __init__(
        self,
        seed: int | str,
        size: Size = TRIO,
        *,
        calm: bool = False,
        story: bool = False,
        ports: MemberPorts | None = None,
    ) -> None:
        chosen = faults.NO_FAULTS if calm else _drawn(seed, size)
        super().__init__(seed, chosen, size, story=story, ports=ports or MemberPorts())
        self.chaos = TrioChaos(self.world, self.centre, brief=True)
        self._keys(self.world.trios[CENTRE])
        self.world.tenure_begins, self.world.tenure_began = self._begins, self._began

    def judge_settled(self) -> None:
        for trio in self.world.trios.values():
            if trio.active is None:
                raise LawBroken(CONVERGENCE, f"{trio.path}: nobody is active")
        super().judge_settled()

    def _keys(self, trio: Trio) -> None:
        """Whoever made the tree made its keys, and all members were given them."""
        for member in trio.members.values():
            member.files["keys"] = self.centre.keys.ring
        self._adopt(self.active_at(CENTRE))

    def active_at(self, path: NodePath) -> Member:
        """Who runs a node."""
        host = self.world.hosts[path]
        assert isinstance(host, MemberHost)
        return host.member

    def _adopt(self, member: Member) -> None:
        """What the centre's process changes of its keys is in the files of this member."""
        keys = self.centre.keys

        def kept() -> None:
            member.files["keys"] = keys.ring
            self.centre.kept_keys("kept")

        keys._on_kept = kept

    def _begins(self, trio: Trio, member: Member) -> None:
        """The centre's process has the keys that this member's files hold."""
        if trio.path.is_root:
            kept = partial(self.centre.kept_keys, "kept")
            ring, sealing = member.files["keys"], self.centre.keys.sealing.announced
            self.centre.keys = KeysInMemory(ring, sealing, kept)
            self._adopt(member)

    def _began(self, trio: Trio, member: Member) -> None:
        if trio.path.is_root:
            terms, highest = self.centre.terms, self.centre.highest
            if len(set(terms)) < len(terms):
                raise LawBroken(NEW_TERM, f"{member.name} goes on with the term {terms[-1]}")
            if highest < trio.highest:
                raise LawBroken(NEW_TERM, f"{member.name} begins below {trio.highest}: {highest}")


def _drawn(seed: int | str, size: Size) -> faults.Faults:
    """As other seeds draw them, but what one machine suffers alone, and what moves."""
    drawn = faults.with_keys(
        size.draw(Random(f"faults {seed}")), Random(f"keys {seed}"), brief=True
    )
    alone = {"disk_loss": 0.0, "restore_every": 0.0, "moving": 0.0, "liar": False}
    # What drifts again and again in so long a life is repaired ever more rarely.
    return replace(drawn, drift_every=0.0, **alone)


def run_trio(
    seed: int, *, size: Size = TRIO, story: bool = False, ports: MemberPorts | None = None
) -> Outcome:
    """Run one seed; the outcome says which law it broke, if any."""
    with cheap_signatures(), (ports or MemberPorts()).planted():
        one = TrioRun(seed, size, story=story, ports=ports)
        law, what = broken_by(one.build)
        if not law:
            law, what = broken_by(partial(one.live, rest=seed % size.rest_every == 0))
        one.close()
    world = one.world
    return Outcome(
        seed, size.name, world.trace(), world.now, law, what, one.faults, world.story or []
    )
