"""The simulated hosts carry out a batch of effects as the driver does, stage after stage."""

import asyncio
from random import Random

import pytest

from relay.adapters.clock import SystemClock
from relay.adapters.memory.bus import MemoryBus, MemoryNetwork
from relay.core import effects as fx
from relay.core.state import NodeConfig
from relay.driver import Driver
from relay.ports import BusBroken
from schemas.blobs import OBJECT, store
from schemas.identity import NodePath, TreeId, random_id
from tests.contract.buses import key, letter
from tests.simulation.stages import STAGES, staged

BLOB = store(OBJECT, b"x" * 100)
(ADDRESS,) = BLOB.values
EFFECTS = [
    fx.AckMail(1),
    fx.ClearMail("emea", key(9), 1),
    letter("emea", 1),
    fx.DropBlobs((ADDRESS,)),
    fx.StoreOwn("a", b"1"),
    fx.RemoveChild(NodePath(("apac",))),
    fx.ResetMail(1),
    fx.StoreOwn("a", b"2"),
    fx.AckMail(2),
    fx.KeepBlob(ADDRESS, BLOB.values[ADDRESS]),
    fx.AddChild(NodePath(("emea",)), "nkey"),
]
CALLS = {
    "keep_blobs": fx.KeepBlob,
    "store_own": fx.StoreOwn,
    "add_child": fx.AddChild,
    "remove_child": fx.RemoveChild,
    "write_mail": fx.WriteMail,
    "ack_mail": fx.AckMail,
    "drop_blobs": fx.DropBlobs,
    "clear_mail": fx.ClearMail,
    "reset_mail": fx.ResetMail,
}


class Noting:
    """A bus that notes what is asked of it, and may fail at one thing."""

    def __init__(self, bus, failing="") -> None:
        self.calls = []
        self._bus, self._failing = bus, failing

    def __getattr__(self, name):
        honest = getattr(self._bus, name)
        if name not in CALLS:
            return honest

        async def noted(*given):
            self.calls.append((CALLS[name], given))
            await asyncio.sleep(0)
            if name == self._failing:
                raise BusBroken(name)
            return await honest(*given)

        return noted


async def performed(effects, failing=""):
    """The calls that the driver makes for a batch, in order."""
    bus = MemoryBus(MemoryNetwork(), NodePath())
    noting = Noting(bus, failing)
    config = NodeConfig(NodePath(), TreeId(random_id(bytes(16))), {}, "run", attached=False)
    driver = Driver(noting, config, SystemClock())
    await bus.start()
    try:
        async with asyncio.TaskGroup() as group:
            await driver._perform(effects, group)
    finally:
        await bus.close()
    return noting.calls


def stage(kind):
    return STAGES.get(kind, len(STAGES))


async def test_the_world_carries_a_batch_out_as_the_driver_does():
    for seed in range(5):
        effects = EFFECTS[:]
        Random(seed).shuffle(effects)
        calls = await performed(effects)
        of_world = staged(effects)
        assert [stage(kind) for kind, _ in calls] == [stage(type(effect)) for effect in of_world]
        assert sorted(kind.__name__ for kind, _ in calls) == sorted(
            type(effect).__name__ for effect in of_world
        )
        (acked,) = [given[0] for kind, given in calls if kind is fx.AckMail]
        assert acked == [effect for effect in effects if isinstance(effect, fx.AckMail)][-1]
        assert acked in of_world
        last = [effect for effect in effects if isinstance(effect, fx.StoreOwn)][-1]
        assert [given[0] for kind, given in calls if kind is fx.StoreOwn] == [[last]]
        assert last in of_world


@pytest.mark.parametrize("failing", ["keep_blobs", "store_own", "add_child", "write_mail"])
async def test_nothing_follows_what_could_not_be_kept(failing):
    bus = MemoryBus(MemoryNetwork(), NodePath())
    noting = Noting(bus, failing)
    config = NodeConfig(NodePath(), TreeId(random_id(bytes(16))), {}, "run", attached=False)
    driver = Driver(noting, config, SystemClock())
    await bus.start()
    with pytest.raises(ExceptionGroup) as broken:
        async with asyncio.TaskGroup() as group:
            await driver._perform(EFFECTS, group)
    await bus.close()
    assert broken.group_contains(BusBroken)
    after = [kind for kind, _ in noting.calls if stage(kind) > stage(CALLS[failing])]
    assert not after
