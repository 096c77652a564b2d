"""Answers of any size come back whole, on a real server."""

import asyncio
from contextlib import asynccontextmanager

import nats
import pytest

from relay.adapters.asking import CannotConnect, TooLong, asking
from relay.adapters.jetstream.request_reply import PIECE_BYTES, QuestionUnanswered, ask, serve
from relay.adapters.server.nkey_pairs import new_user_nkey

pytestmark = pytest.mark.nats


@pytest.fixture
async def client(nats_url):
    connection = await nats.connect(nats_url)
    yield connection
    await connection.close()


@asynccontextmanager
async def by_library(url):
    connection = await nats.connect(url)
    yield lambda *asked: ask(connection, *asked)
    await connection.close()


@asynccontextmanager
async def by_command(url):
    async with asking(url, new_user_nkey(bytes(32))[0], "test") as connection:
        yield connection.ask


@pytest.fixture(params=[by_library, by_command])
async def ask_it(request, nats_url):
    """Asks as a program that stays does, and as a command does."""
    async with request.param(nats_url) as asked:
        yield asked


async def test_an_answer_comes_back_whole_whatever_its_size(client, ask_it):
    async def answer(subject, question):
        return (subject.encode() + b":")[: int(question)] * int(question)

    async with asyncio.TaskGroup() as group:
        serving = group.create_task(serve(client, "echo.*", answer, ""))
        await client.flush()
        for size in (0, 1, PIECE_BYTES // 7, PIECE_BYTES // 7 + 1, PIECE_BYTES):
            found = await ask_it("echo.x", str(size).encode(), 20)
            assert found == b"echo.x:"[:size] * size
        serving.cancel()


async def test_a_question_that_nobody_serves_is_known_to_be_so_at_once(ask_it):
    with pytest.raises(QuestionUnanswered) as unanswered:
        await ask_it("nobody", b"", 20)
    assert unanswered.value.nobody


async def test_a_question_that_gets_no_answer_ends_in_time(client, ask_it):
    await client.subscribe("silent")
    await client.flush()
    with pytest.raises(QuestionUnanswered) as unanswered:
        await ask_it("silent", b"", 0.2)
    assert not unanswered.value.nobody


async def test_many_questions_at_once_get_each_its_own_answer(client, nats_url):
    async def answer(_subject, question):
        return question * 3

    async with asyncio.TaskGroup() as group:
        serving = group.create_task(serve(client, "thrice", answer, ""))
        await client.flush()
        async with by_command(nats_url) as ask_one:
            asked = [f"{number}".encode() * number for number in range(50)]
            found = await asyncio.gather(*(ask_one("thrice", one, 20) for one in asked))
        assert found == [one * 3 for one in asked]
        serving.cancel()


async def test_a_question_that_no_message_holds_is_refused_before_it_is_sent(nats_url):
    async with by_command(nats_url) as ask_one:
        with pytest.raises(TooLong, match="at most 1048576"):
            await ask_one("x", b"a" * 1_048_577, 20)


async def test_what_the_work_raises_comes_out_as_it_is(nats_url):
    with pytest.raises(LookupError):
        async with by_command(nats_url):
            raise LookupError


@pytest.mark.parametrize(
    "said", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"INFO {\r\n", b"INFO []\r\n", b"\xff\r\n"]
)
async def test_what_is_no_nats_server_lets_nobody_in(said):
    async def talk(reader, writer):
        writer.write(said)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(CannotConnect):
            async with by_command(f"nats://127.0.0.1:{port}"):
                pass


async def test_a_server_that_goes_meanwhile_gives_no_answer():
    async def talk(reader, writer):
        writer.write(b'INFO {"max_payload": 1000}\r\nPONG\r\n')
        while not (await reader.readline()).startswith(b"PUB"):
            pass
        writer.close()

    async with await asyncio.start_server(talk, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with by_command(f"nats://127.0.0.1:{port}") as ask_one:
            for _ in range(2):
                with pytest.raises(QuestionUnanswered) as unanswered:
                    await ask_one("x", b"", 20)
                assert not unanswered.value.nobody
