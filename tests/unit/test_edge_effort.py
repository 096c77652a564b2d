"""What an edge does for a change costs as much as changed, however much it holds."""

import asyncio
from collections import Counter

import pytest

from relay.adapters.clock import SystemClock, SystemDice
from relay.core.destination.destination import LocalDestination
from relay.core.reporting import Reporting
from relay.shell.evaluator import BoundProgram
from relay.syncer import ruled
from relay.syncer.record import GATHER_SECONDS
from relay.syncer.syncer import Syncer
from schemas.objects.objects import BUILT_IN_KINDS
from schemas.values import codec
from schemas.values.identity import NodePath
from schemas.values.refusals import CodecError
from tests.contract.spaces import config_map, namespace
from tests.contract.syncing import Bench
from tests.doubles.memory_space import MemorySpace
from tests.memory_tree import memory_tree, placement

OBJECTS = 60
EDGE = NodePath.parse("/s-001")
READY = {
    "apiVersion": "control.kubestellar.io/v1alpha1",
    "kind": "StatusCollector",
    "metadata": {"name": "ready"},
    "spec": {
        "groupBy": [{"name": "ready", "def": "returned.status.ready"}],
        "combinedFields": [{"name": "n", "type": "COUNT"}],
    },
}


@pytest.fixture
def counted(monkeypatch):
    """Has a function count its calls, by its name."""
    calls = Counter()

    def count(owner, name):
        whole = getattr(owner, name)

        def counting(*args, **named):
            calls[name] += 1
            return whole(*args, **named)

        monkeypatch.setattr(owner, name, counting)
        return calls

    return count


async def test_a_syncer_decides_on_what_is_wanted_otherwise(counted):
    clock, dice = SystemClock(), SystemDice()
    bench = Bench(MemorySpace(clock, dice), clock, dice)
    maps = [config_map(f"c-{at}", a="1") for at in range(OBJECTS)]
    async with bench.running():
        bench.want(*maps)
        await bench.settled()
        calls = counted(Syncer, "_decide")
        bench.want(*maps[1:], config_map("c-0", a="2"))
        await bench.settled()
    assert (await bench.space.get(next(iter(bench.wanted)))) is not None
    assert 0 < calls["_decide"] < 8


class HeldClock(SystemClock):
    """Short pauses last until a test ends them."""

    def __init__(self):
        self.go_on = asyncio.Event()

    async def sleep(self, seconds):
        await (self.go_on.wait() if seconds <= GATHER_SECONDS else super().sleep(seconds))


async def test_what_is_done_while_others_are_at_work_is_told_and_kept_together(monkeypatch):
    clock, dice = HeldClock(), SystemDice()
    bench = Bench(MemorySpace(clock, dice), clock, dice)
    maps = [config_map(f"c-{at}", a="1") for at in range(10)]
    names = [obj["metadata"]["name"] for obj in maps]
    kept = []
    store_done = bench.done.store_done

    async def stored(records):
        kept.append(len(records))
        await store_done(records)

    monkeypatch.setattr(bench.done, "store_done", stored)
    async with bench.running():
        await bench.space.apply(namespace(), "they")
        bench.space.gates = {name: asyncio.Event() for name in names}
        bench.want(*maps)
        await bench.until(lambda: sorted(bench.space.applied[1:]) == names)
        intents, told = len(kept), len(bench.history)
        for name in names[:9]:
            bench.space.gates[name].set()
        record = bench.syncer._record.held
        made = [BUILT_IN_KINDS.key_of(obj) for obj in maps[:9]]
        await bench.until(lambda: all(record[key].uid for key in made))
        assert (kept[intents:], bench.history[told:]) == ([], [])
        clock.go_on.set()
        await bench.until(lambda: len(bench.history) == told + 9)
        await bench.until(lambda: kept[intents:] == [9])
        # Of the last one alone nothing else is waited for.
        clock.go_on.clear()
        bench.space.gates[names[9]].set()
        await bench.until(lambda: len(bench.history) == told + 10)
    # Who is stopped in good order keeps what it knows.
    assert all(done.uid for done in await bench.done.load_done())


def network_policies():
    return [
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": f"n-{at}", "namespace": "shop"},
            "spec": {"podSelector": {}},
        }
        for at in range(OBJECTS)
    ]


async def test_states_that_flip_together_cost_one_pass_and_one_report(tmp_path, counted):
    placed = placement("shop", "shop")
    placed["spec"]["downsync"][0]["statusCollectors"] = ["ready"]
    async with memory_tree(tmp_path, [str(EDGE)]) as tree:
        await tree.apply(READY, *network_policies(), placed)
        await tree.until(
            "shop", lambda count: count.exact and count.summary.states == {"synced": 1}
        )
        await tree.stop_controllers()
        counted(ruled, "look_at")
        counted(LocalDestination, "is_pending")
        counted(Reporting, "_report")
        calls = counted(BoundProgram, "_evaluated")
        space = tree.spaces[EDGE]
        conditions = [{"type": "Ready", "status": "False"}]
        for obj in (await space.list("networking.k8s.io", "networkpolicies")).objects:
            status = {"ready": 0, "conditions": conditions, "name": obj["metadata"]["name"]}
            await space.set_status(BUILT_IN_KINDS.key_of(obj), status)
        await tree.until(
            "shop", lambda count: count.exact and count.summary.health == {"degraded": 1}
        )
    assert calls["look_at"] == OBJECTS
    assert 0 < calls["is_pending"] <= 4
    assert calls["_report"] <= 2
    assert calls["_evaluated"] <= 2


def test_a_digest_is_of_what_is_said_and_not_of_its_order():
    said = {"b": [1, {"y": "ü", "x": None}], "a": True}
    assert codec.digest(said) == codec.digest({"a": True, "b": (1, {"x": None, "y": "ü"})})
    others = [{**said, "a": 1}, {**said, "b": [1, {"y": "u", "x": None}]}, {**said, "c": None}]
    assert len({codec.digest(each) for each in (said, *others)}) == 4


@pytest.mark.parametrize("said", [{"a": "\ud800"}, {1: 2}, {"a": {3}.__iter__}])
def test_what_cannot_be_said_has_no_digest(said):
    with pytest.raises(CodecError):
        codec.digest(said)
