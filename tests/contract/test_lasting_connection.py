"""A connection comes back after whatever its server says or leaves unsaid; only we end it."""

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import asynccontextmanager

import pytest

from relay.adapters import jetstream_connection
from relay.adapters.jetstream_connection import Connection
from relay.adapters.nkey_pairs import new_user_nkey
from tests.awaiting import WAIT_SECONDS

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
