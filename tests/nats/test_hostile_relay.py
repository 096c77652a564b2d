"""A relay that was broken into speaks upward with its own seeds: each attack was carried out."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from leafcast.ask.client import CentreAsks, api_error
from relay.core.asks.routing import ASKS_MAX
from relay.shell.asker import AskFailed
from schemas.records.asks import (
    NODE,
    PART_MAX_BYTES,
    TEXT_MAX_CHARACTERS,
    AnswerPart,
    AskFault,
    failure,
    receipt,
)
from schemas.records.records import decode_payload
from schemas.records.signing import decode_envelope
from schemas.reports.reports import ExceptionSample, Summary
from schemas.values import subjects
from schemas.values.identity import NodePath
from schemas.values.wire import encode, replace
from tests.awaiting import eventually
from tests.nats.driven_tree import driven_tree
from tests.nats.test_hostile_child import Liar, liar_at, refused

pytestmark = [pytest.mark.nats, pytest.mark.timeout(180)]

EVIL, HONEST = NodePath.parse("/evil"), NodePath.parse("/honest")


@asynccontextmanager
async def asked_tree(folder):
    """A centre that asks, an honest relay, and one that is a liar: the tree, the asks, the liar."""
    async with driven_tree(folder) as tree:
        await tree.add("/honest")
        tree.serve_asks("/honest")
        asker = tree.serve_asks("/")
        asks = CentreAsks(lambda: asker, lambda: tree._keys, tree.clock, tree.dice, lambda _: ())
        async with liar_at(tree, "/evil") as liar:
            await liar.greet()
            yield tree, asks, liar


async def on_asks(liar: Liar, asks: CentreAsks, answer):
    """Have the liar give these parts to each question that comes to it, from now on."""
    now = [lambda ask: (failure(ask, 1, AskFault("NotYet", "", "")),)]

    async def say(message):
        envelope = decode_envelope(message.data)
        ask = decode_payload(envelope.kind, envelope.payload).source.name
        for part in now[0](ask):
            await liar.client.publish(subjects.answer(liar.path, ask), encode(part))

    await liar.client.subscribe(subjects.ask(liar.path.name, ">"), cb=say)
    # Until its parent's server knows of the subscription, questions are lost.
    while (await refusal(asks, EVIL)).reason != "NotYet":
        pass
    now[0] = answer


async def test_a_relay_that_keeps_questions_waiting_leaves_room_for_those_to_another(tmp_path):
    async with asked_tree(tmp_path) as (_, asks, liar), asyncio.TaskGroup() as group:
        heard: list[str] = []

        def taken(ask):
            heard.append(ask)
            return (receipt(ask),)

        await on_asks(liar, asks, taken)
        waiting = [group.create_task(refusal(asks, EVIL)) for _ in range(ASKS_MAX)]
        await eventually(lambda: len(set(heard)) == ASKS_MAX)
        # It answers what it does not know.
        assert (await refusal(asks, HONEST)).reason == "UnknownVerb"
        assert (await waiting[0]).reason == "Busy"
        for each in waiting:
            each.cancel()


async def test_why_there_is_no_answer_is_bounded_whoever_says_it(tmp_path):
    async with asked_tree(tmp_path) as (_, asks, liar):
        long = "\x1b[2J" * (PART_MAX_BYTES // 10)
        said = AskFault(long, long[:9_000], long[:9_000], 2**63 - 1)
        part = AnswerPart("", 1, last=True, data=b"", fault=said)
        await on_asks(liar, asks, lambda ask: (replace(part, ask=ask),))
        fault = await refusal(asks, EVIL)
        for text in (fault.reason, fault.message, fault.path):
            assert 0 < len(text) <= TEXT_MAX_CHARACTERS
        assert "9999" in api_error(fault).message


@pytest.mark.parametrize("elsewhere", ["/honest", "/honest/site", "/evilx", "/", "/evil/../honest"])
async def test_a_relay_names_nobody_beside_those_below_it_as_one_that_is_wrong(tmp_path, elsewhere):
    async with driven_tree(tmp_path) as tree, liar_at(tree, "/evil") as liar:
        key = await tree.place()
        await liar.greet()
        generation = tree.centre.node.records[key].generation
        for revision, path in enumerate((elsewhere, "/evil/site"), 1):
            sample = ExceptionSample(1, "x", "it says so", 1, path)
            said = Summary({"failing": 1}, {"degraded": 1}, {}, (sample,))
            await liar.report(key, generation, said, revision=revision)
            # The next one would take its place before it is read.
            await eventually(lambda: refused(tree.centre, "evil") == 1)
        async with asyncio.timeout(60):
            while not tree.centre.node.count(key).summary.exceptions:
                await liar.progress(await liar.greet())
                await asyncio.sleep(0.1)
        (told,) = tree.centre.node.count(key).summary.exceptions
        assert told.path == "/evil/site"
        assert refused(tree.centre, "evil") == 1


async def refusal(asks: CentreAsks, path: NodePath) -> AskFault:
    """Why a node does not answer."""
    with pytest.raises(AskFailed) as failed:
        await asks.ask(path, NODE, {})
    return failed.value.fault
