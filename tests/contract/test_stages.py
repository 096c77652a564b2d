"""The driver carries out a batch of effects stage after stage, here and in the simulation."""

import asyncio
from collections import Counter, deque
from random import Random

import pytest

from relay.adapters.clock import SystemClock
from relay.core import effects as fx
from relay.core.config import NodeConfig
from relay.core.events import BlobArrived, HelloArrived, Remembered, Tick
from relay.core.node import Node
from relay.ports import BusBroken
from relay.shell.driver import BATCH_MAX, Driver
from schemas.content.blobs import OBJECT, store
from schemas.records.roots import Roots
from schemas.values.identity import NodePath, TreeId, random_id
from tests.contract.buses import key, letter
from tests.doubles.memory.bus import MemoryBus, MemoryNetwork

BLOB = store(OBJECT, b"x" * 100)
(ADDRESS,) = BLOB.values
OTHER = store(OBJECT, b"y" * 100).reference.address
WRITTEN = [
    letter("emea", 1),
    fx.StoreOwn("a", b"1"),
    fx.StoreOwn("a", b"2"),
    fx.KeepBlob(ADDRESS, BLOB.values[ADDRESS]),
]
LATER = [
    fx.AckMail(1),
    fx.ClearMail("emea", key(9), 1),
    fx.DropBlobs((OTHER,)),
    fx.ResetMail(1),
    fx.AckMail(2),
]
CHANGES = [fx.AddChild(NodePath(("emea",)), "nkey"), fx.RemoveChild(NodePath(("apac",)))]
CALLS = {
    "add_child": fx.AddChild,
    "remove_child": fx.RemoveChild,
    "ack_mail": fx.AckMail,
    "drop_blobs": fx.DropBlobs,
    "clear_mail": fx.ClearMail,
    "reset_mail": fx.ResetMail,
}
STAGES = {fx.KeepBlob: 0, fx.StoreOwn: 0, fx.WriteMail: 0, fx.AckMail: 4, fx.DropBlobs: 5}
CHANGING_STAGES = STAGES | {fx.AddChild: 1, fx.RemoveChild: 1, fx.WriteMail: 2}
"""Of a batch in which children come or go: their mail waits for that."""
KINDS = {"blobs": fx.KeepBlob, "own": fx.StoreOwn, "mail": fx.WriteMail}


class Noting:
    """A bus that notes what is asked of it, and may fail at one thing."""

    def __init__(self, bus, failing=None) -> None:
        self.calls = []
        self._bus, self._failing = bus, failing

    def __getattr__(self, name):
        honest = getattr(self._bus, name)
        if name not in CALLS:
            return honest

        async def noted(*given):
            await self._note([(CALLS[name], given)])
            return await honest(*given)

        return noted

    async def write(self, **given):
        what = [(KINDS[name], tuple(value)) for name, value in given.items() if value]
        await self._note(what)
        return await self._bus.write(**given)

    async def _note(self, calls):
        self.calls += calls
        await asyncio.sleep(0)
        if any(kind is self._failing for kind, _ in calls):
            raise BusBroken(str(self._failing))


CONFIG = NodeConfig(NodePath(), TreeId(random_id(bytes(16))), Roots({}), "run")


async def performed(effects, failing=None):
    """The calls that the driver makes for a batch, in order; with whether it broke."""
    bus = MemoryBus(MemoryNetwork(), NodePath())
    noting = Noting(bus, failing)
    driver = Driver(noting, CONFIG, SystemClock())
    await bus.start()
    try:
        async with asyncio.TaskGroup() as group:
            await driver._perform(effects, group)
    except* BusBroken:
        assert failing is not None
    finally:
        await bus.close()
    return noting.calls


@pytest.mark.parametrize("changes", [[], CHANGES], ids=["at rest", "children change"])
async def test_the_world_carries_a_batch_out_as_the_driver_does(changes):
    for seed in range(5):
        effects = [*WRITTEN, *LATER, *changes]
        Random(seed).shuffle(effects)
        stages = CHANGING_STAGES if changes else STAGES
        calls = await performed(effects)

        def stage(kind, stages=stages):
            return stages.get(kind, 9)

        assert [stage(kind) for kind, _ in calls] == sorted(stage(kind) for kind, _ in calls)
        # Own records are kept once a key, and mail is acknowledged once.
        kinds = [type(effect) for effect in effects]
        kinds.remove(fx.StoreOwn)
        kinds.remove(fx.AckMail)
        assert Counter(kind for kind, _ in calls) == Counter(kinds)
        (acked,) = [given[0] for kind, given in calls if kind is fx.AckMail]
        assert acked == [effect for effect in effects if isinstance(effect, fx.AckMail)][-1]
        last = [effect for effect in effects if isinstance(effect, fx.StoreOwn)][-1]
        assert [given for kind, given in calls if kind is fx.StoreOwn] == [(last,)]


@pytest.mark.parametrize("failing", [fx.KeepBlob, fx.StoreOwn, fx.AddChild, fx.WriteMail])
async def test_nothing_follows_what_could_not_be_kept(failing):
    effects = [*WRITTEN, *LATER, *CHANGES]
    calls = await performed(effects, failing)
    stages = CHANGING_STAGES
    assert not [kind for kind, _ in calls if stages.get(kind, 9) > stages[failing]]


async def test_a_batch_without_new_children_is_written_in_one_round():
    calls = await performed(WRITTEN)
    assert {kind for kind, _ in calls} == {fx.KeepBlob, fx.StoreOwn, fx.WriteMail}
    assert len(calls) == 3


async def test_blobs_that_are_kept_again_are_not_dropped():
    keep = fx.KeepBlob(ADDRESS, BLOB.values[ADDRESS])
    drop = fx.DropBlobs((OTHER, ADDRESS))
    assert fx.still_meant([drop, keep]) == [fx.DropBlobs((OTHER,)), keep]
    assert fx.still_meant([keep, drop]) == [keep, drop]


async def test_content_that_came_goes_before_all_that_waits():
    bus, clock = MemoryBus(MemoryNetwork(), NodePath()), SystemClock()
    driver = Driver(bus, CONFIG, clock)
    node = Node(CONFIG, await bus.start(), [], clock.now())
    try:
        for _ in range(BATCH_MAX + 1):
            await bus.inbox.put(Tick())
        async with asyncio.TaskGroup() as group:
            await driver._perform([fx.LoadBlob(BLOB.reference)], group)
        batch = await driver._next_batch(node)
    finally:
        await bus.close()
    assert [type(event) for event in batch] == [BlobArrived, *[Tick] * BATCH_MAX]


async def test_content_wakes_a_node_that_waits_for_nothing_else():
    bus, clock = MemoryBus(MemoryNetwork(), NodePath()), SystemClock()
    driver = Driver(bus, CONFIG, clock)
    node = Node(CONFIG, await bus.start(), [], clock.now())
    try:
        async with asyncio.TaskGroup() as group:
            waiting = group.create_task(driver._next_batch(node))
            await asyncio.sleep(0)
            await driver._perform([fx.LoadBlob(BLOB.reference)], group)
    finally:
        await bus.close()
    assert BlobArrived in map(type, waiting.result())


class Paid:
    """An inbox with one child's word in it, whose turn costs what is done in it."""

    def __init__(self, done) -> None:
        self.cost = None
        self._done = done

    async def next_batch(self, most, seconds):
        if self.cost is not None:
            raise BusBroken("the end")
        return deque([HelloArrived("emea", b"")])

    def weigh(self, batch):
        return iter(batch)

    def handled(self):
        self.cost = list(self._done)


class Answering(Node):
    """One that has something written whatever it is told."""

    def deadline(self):
        return None

    def handle(self, events, now):
        return (fx.StoreOwn("a", b"1"),) if list(events) else ()


async def test_what_comes_of_a_childs_words_is_carried_out_in_its_turn():
    bus = Noting(MemoryBus(MemoryNetwork(), NodePath()))
    bus.inbox = Paid(bus.calls)
    clock = SystemClock()
    node = Answering(CONFIG, Remembered(), (), clock.now())
    async with asyncio.TaskGroup() as group:
        with pytest.raises(BusBroken):
            await Driver(bus, CONFIG, clock)._loop(node, group)
    assert [kind for kind, _ in bus.inbox.cost] == [fx.StoreOwn]
