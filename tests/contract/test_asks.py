"""What every message bus promises of asks, and what a node does with them on any bus."""

import asyncio
import os
from contextlib import suppress

import pytest

from relay.adapters.clock import SystemClock
from relay.core.asks.routing import ASKS_MAX, AnswerArrived, AskArrived, AskRouter, LastHeard
from relay.core.records.trust import Trust, TrustVerdict
from relay.ports import BusBroken
from relay.shell.asker import Asker, AskFailed, open_answer
from schemas.content.answer_sealing import AnswerKey
from schemas.records.asks import GET, NODE, PART_DATA_MAX_BYTES, STATUS, AnswerPart
from schemas.records.records import API_ASK, AskRecord, KeyGrant, Source, encode_payload
from schemas.records.roots import Roots
from schemas.records.signing import Signer
from schemas.values.codec import OPENED_DEPTH_MAX
from schemas.values.identity import KeyId, NodePath, TreeId, random_id
from schemas.values.wire import encode
from tests.contract.buses import TREES, WAIT_SECONDS

SIGNER = Signer(TreeId("t" * 26), KeyId("k" * 26), b"s" * 32)
KEY = AnswerKey(b"a" * 32)
STRANGER = Signer(SIGNER.tree, SIGNER.key_id, b"x" * 32)


@pytest.fixture(params=TREES)
async def tree(request, tmp_path):
    async with request.param(tmp_path) as tree:
        await tree.plant("/")
        yield tree


class Ear:
    """Reads a bus's asks, and waits for what should be among them."""

    def __init__(self, bus) -> None:
        self.heard = []
        self._more = asyncio.Condition()
        self._task = asyncio.get_running_loop().create_task(self._read(bus))

    async def _read(self, bus) -> None:
        with suppress(BusBroken):
            async for heard in bus.asks():
                async with self._more:
                    self.heard.append(heard)
                    self._more.notify_all()

    async def until(self, *wanted):
        async with asyncio.timeout(WAIT_SECONDS), self._more:
            await self._more.wait_for(lambda: all(item in self.heard for item in wanted))


async def answered(bus, ear, child, ask, data) -> None:
    """Answer until the parent has heard: a new account's lines open a moment after its link."""
    async with asyncio.timeout(WAIT_SECONDS):
        while AnswerArrived(child, data) not in ear.heard:
            assert await bus.send_answer(ask, data)
            with suppress(TimeoutError):
                async with asyncio.timeout(0.2):
                    await ear.until(AnswerArrived(child, data))


async def test_only_the_addressed_child_hears_an_ask_whatever_its_verb(tree):
    centre, _ = await tree.open()
    emea, _ = await tree.sprout("/emea", centre)
    apac, _ = await tree.sprout("/apac", centre)
    emea_ear, apac_ear = Ear(emea), Ear(apac)

    for verb in (GET, STATUS, NODE, "newer"):
        await centre.send_ask("emea", verb, b"to emea")
    await centre.send_ask("apac", "get", b"to apac")

    await emea_ear.until(*(AskArrived(verb, b"to emea") for verb in (GET, STATUS, NODE, "newer")))
    await apac_ear.until(AskArrived("get", b"to apac"))
    assert apac_ear.heard == [AskArrived("get", b"to apac")]
    assert {heard.verb for heard in emea_ear.heard} <= {GET, STATUS, NODE, "newer"}


async def test_an_answer_names_the_child_it_came_through_and_reaches_the_parent_only(tree):
    centre, _ = await tree.open()
    emea, _ = await tree.sprout("/emea", centre)
    store, _ = await tree.sprout("/emea/s1", emea)
    ear, emea_ear = Ear(centre), Ear(emea)

    await answered(store, emea_ear, "s1", "q1", b"of s1")
    await answered(emea, ear, "emea", "q1", b"of emea")

    assert all(heard.child == "emea" for heard in ear.heard)
    assert all(heard.child == "s1" for heard in emea_ear.heard)


async def test_an_answer_of_the_largest_size_passes(tree):
    centre, _ = await tree.open()
    emea, _ = await tree.sprout("/emea", centre)
    ear = Ear(centre)
    part = AnswerPart("a" * 26, 1, last=True, data=os.urandom(PART_DATA_MAX_BYTES))

    await answered(emea, ear, "emea", part.ask, encode(part))


async def test_answers_to_all_that_may_be_under_way_come_at_once(tree):
    centre, _ = await tree.open()
    emea, _ = await tree.sprout("/emea", centre)
    ear = Ear(centre)
    await answered(emea, ear, "emea", "first", b"first")

    wanted = [f"{said} {number}".encode() for number in range(ASKS_MAX) for said in ("it", "is")]
    for each in wanted:
        assert await emea.send_answer("q", each)

    await ear.until(*(AnswerArrived("emea", each) for each in wanted))


async def test_an_ask_to_a_child_that_is_cut_off_harms_no_later_one(tree):
    centre, _ = await tree.open()
    emea, listener = await tree.sprout("/emea", centre)
    ear = Ear(emea)
    await tree.cut("/emea")
    await emea.send_hello(b"notice")
    await listener.linked(up=False)
    await centre.send_ask("emea", "get", b"lost")
    await tree.heal("/emea")
    await listener.linked()
    ear.heard.clear()

    await centre.send_ask("emea", "get", b"heard")

    await ear.until(AskArrived("get", b"heard"))


class Place:
    """What an asker knows of its node: one key, and children that are heard or silent."""

    def __init__(self, children=None) -> None:
        self.children = children or {}
        grant = KeyGrant(SIGNER.key_id, SIGNER.public_key, ("ask",))
        self._trust = Trust(SIGNER.tree, Roots({}), {SIGNER.key_id: grant})

    def disbelief(self, envelope, record) -> str:
        verdict = self._trust.judge(envelope, record)
        return "" if verdict is TrustVerdict.BELIEVED else verdict.value

    def heard(self, child):
        return self.children.get(child)


def ask_record(path, verb="node", expires_ms=None):
    ask = random_id(os.urandom(16))
    now_ms = SystemClock().now().wall_ms
    source = Source(API_ASK, SIGNER.tree, "", ask)
    expires = now_ms + 30_000 if expires_ms is None else now_ms + expires_ms
    where = NodePath.parse(path)
    return AskRecord(source, now_ms, "", "", verb, where, expires, {"q": "1"}, KEY.public)


class Questions:
    """Askers at nodes of a tree; `ask` is put in at the centre."""

    def __init__(self, group) -> None:
        self._group = group
        self._tasks = []
        self.answers = {}

    def serve(self, bus, place) -> None:
        path = str(bus.path)

        async def node(record):
            return self.answers.get(path, {"path": path, "arguments": dict(record.arguments)})

        asker = Asker(bus, lambda: place, lambda _child: None, SystemClock(), {"node": node})
        if path == "/":
            self.asker = asker
        self._tasks.append(self._group.create_task(asker.run()))

    async def ask(self, path, *, signer=SIGNER, verb="node", subject_verb=None, **fields):
        record = ask_record(path, verb, **fields)
        envelope = signer.seal("ask", encode_payload(record))
        async with asyncio.timeout(WAIT_SECONDS):
            return await self.asker.ask(record.source.name, subject_verb or verb, envelope, KEY)

    async def stop_and_wait(self) -> None:
        self.stop()
        await asyncio.wait(self._tasks)

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()


@pytest.fixture
async def questions(tree):
    """A centre, a relay and an edge that answer asks; the centre knows of a silent node as well."""
    centre, _ = await tree.open()
    emea, _ = await tree.sprout("/emea", centre)
    store, _ = await tree.sprout("/emea/s1", emea)
    here = LastHeard(SystemClock().now().wall_ms, silent=False)
    async with asyncio.TaskGroup() as group:
        served = Questions(group)
        served.serve(centre, Place({"emea": here, "away": LastHeard(1234, silent=True)}))
        served.serve(emea, Place({"s1": here, "deaf": LastHeard(5678, silent=False)}))
        served.serve(store, Place())
        await answering(served, "/emea/s1")
        yield served
        served.stop()


async def answering(served, path) -> None:
    """The lines of a new account open a moment after its link."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            with suppress(AskFailed):
                await served.ask(path)
                return


async def test_what_is_nested_without_end_is_said_to_be_so_and_its_node_goes_on(
    questions,
):
    for levels in (OPENED_DEPTH_MAX, 600, 5_000):
        deep = []
        for _ in range(levels):
            deep = [deep]
        questions.answers["/emea/s1"] = deep
        with pytest.raises(AskFailed) as failed:
            await questions.ask("/emea/s1")
        assert failed.value.fault.reason == "Unsayable"
        assert f"deeper than {OPENED_DEPTH_MAX} levels" in failed.value.fault.message
        del questions.answers["/emea/s1"]
        assert (await questions.ask("/emea/s1"))["path"] == "/emea/s1"
        # Of a node that says it all the same.
        with pytest.raises(AskFailed, match="the answer is unreadable"):
            open_answer(b"\x91" * levels + b"\x90", KEY)


async def test_an_ask_is_answered_at_its_path_at_every_depth(questions):
    for path in ("/", "/emea", "/emea/s1"):
        assert await questions.ask(path) == {"path": path, "arguments": {"q": "1"}}


async def test_an_answer_larger_than_a_message_comes_whole(questions):
    text = os.urandom(1_500_000).hex()
    questions.answers["/emea/s1"] = {"text": text}
    assert await questions.ask("/emea/s1") == {"text": text}


async def test_a_relay_on_the_way_reads_nothing_of_an_answer(questions, monkeypatch):
    passed = []
    hear = AskRouter.answer

    def overheard(router, event, now):
        passed.append(event.data)
        return hear(router, event, now)

    monkeypatch.setattr(AskRouter, "answer", overheard)
    known = "what only the centre may read"
    questions.answers["/emea/s1"] = {"page": [known] * 30_000}
    assert (await questions.ask("/emea/s1"))["page"][-1] == known
    # Both the relay and the centre were handed all of it, in parts.
    assert sum(map(len, passed)) > 2 * 30_000 * len(known)
    assert not [data for data in passed if known.encode() in data]


async def test_an_expired_a_forged_and_a_misaddressed_ask_are_refused(questions):
    for options, reason in (
        ({"expires_ms": -120_000}, "Expired"),
        ({"signer": STRANGER}, "Unbelieved"),
        ({"subject_verb": "status"}, "WrongVerb"),
        ({"verb": "status"}, "UnknownVerb"),
    ):
        with pytest.raises(AskFailed) as failed:
            await questions.ask("/emea/s1", **options)
        assert failed.value.fault.reason == reason
    assert questions.asker.refused == 3


async def test_a_node_that_is_away_or_unknown_is_named_and_since_when(questions):
    for path, reason, about, since_ms in (
        ("/away/s9", "Unreachable", "/away", 1234),
        ("/emea/deaf", "Unreachable", "/emea/deaf", 5678),
        ("/emea/nobody", "NoSuchNode", "/emea/nobody", 0),
    ):
        with pytest.raises(AskFailed) as failed:
            await questions.ask(path)
        fault = failed.value.fault
        assert (fault.reason, fault.path) == (reason, about)
        assert abs(fault.since_ms - since_ms) < 10


async def test_who_waits_for_an_answer_hears_that_the_run_has_ended(questions):
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(failure_of(questions.ask("/emea/deaf")))
        await asyncio.sleep(0)  # it has asked
        await questions.stop_and_wait()
    assert waiting.result() == "Restarting"
    assert await failure_of(questions.ask("/")) == "Restarting"


async def failure_of(asking) -> str:
    with pytest.raises(AskFailed) as failed:
        await asking
    return failed.value.fault.reason
