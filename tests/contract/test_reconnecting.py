"""A connection comes back after whatever its server says or leaves unsaid; only we end it."""

import asyncio
import gc
import os
import warnings
from collections.abc import Callable, Coroutine
from contextlib import asynccontextmanager, contextmanager
from urllib.parse import urlsplit

import pytest

from relay.adapters.jetstream import connection as jetstream_connection
from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.reconnecting_client import HEADER_LINES_MAX, ReconnectingClient
from relay.adapters.jetstream.request_reply import brief_connection
from relay.adapters.server.nkey_pairs import new_user_nkey
from tests.awaiting import WAIT_SECONDS, eventually

INFO = b'INFO {"server_id":"S","version":"2.15.1","max_payload":1048576,"nonce":"n"}\r\n'
Writer = asyncio.StreamWriter
Manner = Callable[[bytes, Writer], Coroutine[None, None, None]]


@asynccontextmanager
async def server_of(*manners: Manner):
    """A server that takes each connection in another manner; the last one stays."""
    taken = 0

    async def serve(reader: asyncio.StreamReader, writer: Writer) -> None:
        nonlocal taken
        manner = manners[min(taken, len(manners) - 1)]
        taken += 1
        writer.write(INFO)
        while line := await reader.readline():
            await manner(line, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def answer(line: bytes, writer: Writer) -> None:
    if line.startswith(b"PING"):
        writer.write(b"PONG\r\n")


def says_once(error: bytes) -> Manner:
    async def refuse(line: bytes, writer: Writer) -> None:
        await answer(line, writer)
        if line.startswith(b"PING"):
            writer.write(b"-ERR '" + error + b"'\r\n")
            writer.close()

    return refuse


def falls_silent() -> Manner:
    heard = 0

    async def once(line: bytes, writer: Writer) -> None:
        nonlocal heard
        heard += line.startswith(b"PING")
        if heard == 1:
            await answer(line, writer)

    return once


async def comes_back(url: str) -> None:
    connection = Connection(url, new_user_nkey(os.urandom(32))[0], "test", "_INBOX.test")
    lost, back = asyncio.Event(), asyncio.Event()
    connection.when_lost.append(lost.set)
    connection.when_back.append(back.set)
    await connection.open()
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            await lost.wait()
            await back.wait()
        await connection.ready()
        assert connection.client.is_connected
    finally:
        await connection.close()


@pytest.mark.parametrize(
    "error",
    [b"Authorization Violation", b"Authentication Timeout", b"Slow Consumer", b"Unheard Of"],
)
async def test_no_error_of_the_servers_ends_a_connection_for_good(error):
    async with server_of(says_once(error), answer) as url:
        await comes_back(url)


async def test_a_server_that_says_nothing_any_more_is_left_for_a_new_connection(monkeypatch):
    monkeypatch.setattr(jetstream_connection, "PING_SECONDS", 0.05)
    async with server_of(falls_silent(), answer) as url:
        await comes_back(url)


STRANGE = {
    "no reply between two blanks, as servers say it": b"MSG c.a 1  1\r\nx\r\n",
    "subject is no text": b"MSG c.\xff 1 1\r\nx\r\n",
    "subject has a form feed": b"MSG c.a\x0cb 1 1\r\nx\r\n",
    "headers begin otherwise": b"HMSG c.a 1 12 13\r\nXXXXXXXX 1\r\nx\r\n",
    "headers end at once": b"HMSG c.a 1 8 9\r\nNATS/1.0x\r\n",
    "status is no text": b"HMSG c.a 1 14 15\r\nNATS/1.0 \xff\xff\xff\r\nx\r\n",
}


@pytest.mark.parametrize("said", STRANGE.values(), ids=STRANGE.keys())
async def test_no_message_ends_the_reading_of_those_after_it(said):
    async def manner(line: bytes, writer: Writer) -> None:
        await answer(line, writer)
        if line.startswith(b"SUB"):
            writer.write(said + b"MSG c.b 1 3\r\nend\r\n")

    async with server_of(manner) as url:
        connection = Connection(url, new_user_nkey(os.urandom(32))[0], "test", "_INBOX.test")
        await connection.open()
        try:
            subscription = await connection.client.subscribe("c.*")
            heard = [await subscription.next_msg(timeout=WAIT_SECONDS) for _ in range(2)]
        finally:
            await connection.close()
    assert [message.data for message in heard] == [b"x", b"end"]


@pytest.mark.parametrize("more", [0, 1, 10_000])
def test_headers_without_end_are_not_looked_at(more):
    count = HEADER_LINES_MAX - 1 + more
    lines = b"".join(b"h%d: v\r\n" % number for number in range(count)) + b"\r\n"
    read = ReconnectingClient._parse_header_lines(lines)
    assert len(read) == (0 if more else count)


@contextmanager
def leaving_nothing_open():
    """Fails if anything is left to the collector here."""
    # What others left is not ours.
    gc.collect()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        yield
        gc.collect()
    assert [str(it.message) for it in warned if it.category is ResourceWarning] == []


@asynccontextmanager
async def taking(*manners):
    """A server that takes each connection in another manner, the last one for good; who is there.

    It leaves a connection only after the client did, or where the manner closes it.
    """
    left, there = list(manners), set()

    async def take(reader: asyncio.StreamReader, writer: Writer) -> None:
        there.add(writer)
        try:
            await (left.pop(0) if len(left) > 1 else left[0])(reader, writer)
            while await reader.read(65_536):
                pass
        finally:
            there.remove(writer)
            writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    try:
        yield f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}", there
    finally:
        server.close()


def says(*said: bytes):
    """Says the first at once, and each other one when it is pinged; then nothing any more."""

    async def manner(reader: asyncio.StreamReader, writer: Writer) -> None:
        writer.write(said[0])
        for word in said[1:]:
            await reader.readuntil(b"PING\r\n")
            writer.write(word)

    return manner


async def hangs_up(reader: asyncio.StreamReader, writer: Writer) -> None:
    await says(INFO, b"PONG\r\n")(reader, writer)
    writer.close()


async def closes_at_once(_: asyncio.StreamReader, writer: Writer) -> None:
    writer.close()


def is_real(url: str):
    """Passes all on to a real server, and what it answers back."""

    async def copy(source: asyncio.StreamReader, sink: Writer) -> None:
        while said := await source.read(65_536):
            sink.write(said)
        sink.close()

    async def manner(reader: asyncio.StreamReader, writer: Writer) -> None:
        place = urlsplit(url)
        answers, asking = await asyncio.open_connection(place.hostname, place.port)
        async with asyncio.TaskGroup() as group:
            group.create_task(copy(reader, asking))
            group.create_task(copy(answers, writer))

    return manner


@pytest.mark.nats
async def test_attempts_that_fail_after_the_connection_was_made_leave_none_open(nats_url):
    failures = [
        closes_at_once,
        says(INFO[:20] + b"\r\n"),
        says(b"INFO nothing\r\n"),
        says(INFO, b"-ERR 'Authorization Violation'\r\n"),
        says(b""),
        says(INFO),
    ]
    back = asyncio.Event()
    with leaving_nothing_open():
        async with taking(hangs_up, *failures, is_real(nats_url)) as (url, there):
            connection = Connection(url, new_user_nkey(os.urandom(32))[0], "test", "_INBOX.test")
            connection.when_back.append(back.set)
            await connection.open()
            connection.client.options["connect_timeout"] = 0.3
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    await back.wait()
                await connection.client.flush()
                await eventually(lambda: len(there) == 1, lambda: f"{len(there)} are open")
            finally:
                await connection.close()
            await eventually(lambda: not there)


@pytest.mark.nats
@pytest.mark.parametrize("kind", ["lasting", "brief"])
async def test_who_is_cancelled_as_it_closes_leaves_no_connection_open(nats_url, kind):
    seed, _ = new_user_nkey(os.urandom(32))
    opened = asyncio.Event()

    async def lasting():
        connection = Connection(nats_url, seed, "test", "_INBOX.test")
        await connection.open()
        opened.set()
        await connection.close()

    async def brief():
        async with brief_connection(nats_url, seed, "test"):
            opened.set()

    turns, closed = 0, False
    with leaving_nothing_open():
        while not closed:
            closing = asyncio.ensure_future({"lasting": lasting, "brief": brief}[kind]())
            await opened.wait()
            for _ in range(turns):
                await asyncio.sleep(0)
            closed = closing.done()
            closing.cancel()
            await asyncio.wait({closing})
            opened.clear()
            turns += 1
    assert turns > 2
