"""Answers of any size come back whole, on a real server."""

import asyncio

import nats
import pytest

from relay.adapters.jetstream.request_reply import PIECE_BYTES, Unanswered, ask, serve

pytestmark = pytest.mark.nats


@pytest.fixture
async def client(nats_url):
    connection = await nats.connect(nats_url)
    yield connection
    await connection.close()


async def test_an_answer_comes_back_whole_whatever_its_size(client):
    async def answer(subject, question):
        return (subject.encode() + b":")[: int(question)] * int(question)

    async with asyncio.TaskGroup() as group:
        serving = group.create_task(serve(client, "echo.*", answer))
        await client.flush()
        for size in (0, 1, PIECE_BYTES // 7, PIECE_BYTES // 7 + 1, PIECE_BYTES):
            found = await ask(client, "echo.x", str(size).encode(), 20)
            assert found == b"echo.x:"[:size] * size
        serving.cancel()


async def test_a_question_that_nobody_serves_is_known_to_be_so_at_once(client):
    with pytest.raises(Unanswered) as unanswered:
        await ask(client, "nobody", b"", 20)
    assert unanswered.value.nobody


async def test_a_question_that_gets_no_answer_ends_in_time(client):
    await client.subscribe("silent")
    with pytest.raises(Unanswered) as unanswered:
        await ask(client, "silent", b"", 0.2)
    assert not unanswered.value.nobody
