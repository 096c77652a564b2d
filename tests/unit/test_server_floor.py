"""A nats-server with known holes is refused as it greets, and named by the doctor."""

import asyncio
import json

import pytest

from relay.adapters.clock import SystemClock
from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.entrance import Entrance, EntranceKeys
from relay.adapters.jetstream.server_floor import ServerTooOld, is_too_old
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.ports import BusBroken
from schemas.values.identity import NodePath


@pytest.mark.parametrize(
    ("version", "too_old"),
    [
        ("2.12.5", True),
        ("2.11.11", True),
        ("2.9.0", True),
        ("1.99.99", True),
        ("2.12.6", False),
        ("2.12.10", False),
        ("2.15.1", False),
        ("3.0.0", False),
        ("2.12.5-preview.1", True),
        ("2.12.6-RC.1", True),
        ("v2.12.5", True),
        ("2.13.0-dev", False),
        ("", False),
        ("built by hand", False),
    ],
)
def test_versions_compare_by_number(version, too_old):
    assert is_too_old(version) is too_old


class Greeter:
    """A server that greets with the version that it has now, and answers pings."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.writers: list[asyncio.StreamWriter] = []
        self.heard: list[bytes] = []
        self._server: asyncio.Server | None = None

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._greet, "127.0.0.1")
        port = self._server.sockets[0].getsockname()[1]
        return self, f"nats://127.0.0.1:{port}"

    async def __aexit__(self, *_):
        self.drop_all()
        self._server.close()

    def drop_all(self) -> None:
        while self.writers:
            self.writers.pop().close()

    async def _greet(self, reader, writer) -> None:
        self.writers.append(writer)
        info = {"version": self.version, "max_payload": 1_000_000, "headers": True, "nonce": "n"}
        writer.write(f"INFO {json.dumps(info)}\r\n".encode())
        while line := await reader.readline():
            self.heard.append(line)
            if line.startswith(b"PING"):
                writer.write(b"PONG\r\n")
        writer.close()


def connection(url: str) -> Connection:
    return Connection(url, new_user_nkey(b"s" * 32)[0], "a node", "_INBOX.test")


async def test_a_server_that_is_too_old_is_refused_as_it_greets():
    async with Greeter("2.12.5") as (_, url):
        with pytest.raises(ServerTooOld, match=r"is 2\.12\.5: .*older than 2\.12\.6; install"):
            await connection(url).open()


async def test_people_are_told_where_it_is_and_not_by_whom_it_is_believed():
    async with Greeter("2.12.5") as (_, url):
        with pytest.raises(ServerTooOld, match=f"at {url} is"):
            await connection(f"{url}#/a/node/authorities.pem").open()


async def test_a_node_learns_that_an_older_server_took_the_place_where_it_takes_requests():
    async def decide(_request: bytes) -> bytes:
        return b""

    async with Greeter("2.12.6") as (greeter, url):
        keys = EntranceKeys(new_user_nkey(b"s" * 32)[0])
        entrance = Entrance(NodePath(), url, keys, SystemClock(), decide)
        task = asyncio.create_task(entrance.run())
        while sum(line.startswith(b"SUB") for line in greeter.heard) < 2:
            await asyncio.sleep(0)
        greeter.version = "2.12.5"
        greeter.drop_all()
        with pytest.raises(ExceptionGroup) as ended:
            await task
        assert ended.value.split(BusBroken)[1] is None


async def test_a_server_that_is_new_enough_is_used_until_an_older_one_takes_its_place():
    async with Greeter("2.12.6") as (greeter, url):
        one = connection(url)
        await one.open()
        assert one.server_version == "2.12.6"
        greeter.version = "2.12.5"
        greeter.drop_all()
        while not one.client.is_closed:
            await asyncio.sleep(0)
        await one.close()
