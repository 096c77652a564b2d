"""A question that someone kept is answered once; and none waits behind a flood of answers."""

import asyncio
from contextlib import suppress
from types import SimpleNamespace

import pytest

from leafcast.node import runtime as node_runtime
from leafcast.node.options import NodeEnvironment, NodeIdentity
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.server.guard import ProcessGuard
from relay.core.asks.routing import AnswerArrived, AskArrived
from relay.shell.asker import AT_HAND, Asker
from schemas.records.asks import RECEIPT, AnswerPart
from schemas.records.records import API_ASK, AskRecord, Source, encode_payload
from schemas.records.roots import Roots
from schemas.records.signing import Signer
from schemas.values.identity import KeyId, NodePath, TreeId, random_id
from schemas.values.wire import decode

EMEA = NodePath.parse("/emea")
SIGNER = Signer(TreeId(random_id(b"t" * 16)), KeyId(random_id(b"k" * 16)), b"s" * 32)


class Bus:
    """Brings one question, and notes what is answered."""

    path = EMEA

    def __init__(self, arrived) -> None:
        self.arrived, self.answered, self.taken = arrived, [], asyncio.Event()

    async def asks(self):
        yield self.arrived
        self.taken.set()
        await asyncio.Event().wait()

    async def send_answer(self, ask, data):
        part = decode(AnswerPart, data)
        if part.number != RECEIPT:
            self.answered.append((ask, part.fault))


class View:
    def disbelief(self, envelope, record):
        return ""

    def heard(self, child):
        return None


def no_junk(child):
    raise AssertionError(f"{child} was asked nothing")


async def answers(arrived, remembered):
    """What a run of the node says to this question."""

    async def node(_record):
        return {"ready": True}

    bus = Bus(arrived)
    asker = Asker(bus, View, no_junk, SystemClock(), {"node": node}, remembered)
    running = asyncio.create_task(asker.run())
    await bus.taken.wait()
    for _ in range(50):
        await asyncio.sleep(0)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    return bus.answered


async def test_a_captured_question_is_answered_once_in_all_runs_of_a_node():
    source = Source(API_ASK, SIGNER.tree, "", random_id(b"a" * 16))
    expires = SystemClock().now().wall_ms + 60_000
    record = AskRecord(source, 1, "", "", "node", EMEA, expires, {})
    arrived = AskArrived("node", SIGNER.seal("ask", encode_payload(record)).encode())
    remembered = {}
    assert await answers(arrived, remembered) == [(source.name, None)]
    assert await answers(arrived, remembered) == []
    assert await answers(arrived, {}) == [(source.name, None)], "another program"


async def test_what_a_child_floods_waits_where_it_is_bounded_and_none_here_waits_behind_it():
    brought, held = [], asyncio.Event()

    class Flooded(Bus):
        async def asks(self):
            yield self.arrived
            await self.taken.wait()
            for number in range(100):
                brought.append(number)
                yield AnswerArrived("cod", b"junk")

        async def send_answer(self, ask, data):
            self.taken.set()
            await held.wait()
            await super().send_answer(ask, data)

    async def answerer(_record):
        return {"ready": True}

    junk = []
    source = Source(API_ASK, SIGNER.tree, "", random_id(b"a" * 16))
    expires = SystemClock().now().wall_ms + 60_000
    record = AskRecord(source, 1, "", "", "node", EMEA, expires, {})
    bus = Flooded(AskArrived("node", SIGNER.seal("ask", encode_payload(record)).encode()))
    asker = Asker(bus, View, junk.append, SystemClock(), {"node": answerer})
    async with asyncio.TaskGroup() as group:
        running = group.create_task(asker.run())
        await bus.taken.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        assert len(brought) <= AT_HAND + 1
        held.set()
        while not bus.answered:
            await asyncio.sleep(0)
        assert len(junk) < 20, "what was found waits behind few of them"
        running.cancel()


async def test_each_run_of_a_node_is_told_what_the_former_ones_answered(tmp_path, monkeypatch):
    told = []

    class Ended(Exception):
        pass

    def asker(*said):
        told.append(dict(said[-1]))
        said[-1][f"asked {len(told)}"] = 7
        raise Ended

    monkeypatch.setattr(node_runtime, "Asker", asker)
    roots = Roots({SIGNER.key_id: SIGNER.public_key})
    world = NodeEnvironment(ProcessGuard(), SystemClock(), SystemDice(), SIGNER.tree, roots)
    runtime = node_runtime.NodeRuntime(world, NodeIdentity(NodePath(), tmp_path))
    runtime.hosted._server = SimpleNamespace(url="nats://127.0.0.1:1", leaf_urls=())
    for _ in range(3):
        with pytest.raises(Ended):
            await runtime._run_once()
    assert told == [{}, {"asked 1": 7}, {"asked 1": 7, "asked 2": 7}]
