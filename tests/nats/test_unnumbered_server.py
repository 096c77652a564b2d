"""A nats-server built by hand, whose version has no numbers, serves as any other."""

import asyncio
import re
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest

from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream.request_reply import brief_connection
from relay.adapters.spaces.embedded_space import EmbeddedSpace
from tests.nats.test_trio_fence import KEPT, config_map

pytestmark = pytest.mark.nats


@asynccontextmanager
async def greeting_as(version, port):
    """A way to a server on which it says this version as it greets; its URL."""

    async def copy(reader, writer, greeting=b""):
        writer.write(re.sub(rb'"version":"[^"]*"', b'"version":"%s"' % version, greeting))
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def let_in(reader, writer):
        there, back = await asyncio.open_connection("127.0.0.1", port)
        greeting = await there.readline()
        await asyncio.gather(copy(there, writer, greeting), copy(reader, back))

    way = await asyncio.start_server(let_in, "127.0.0.1")
    try:
        yield f"nats://127.0.0.1:{way.sockets[0].getsockname()[1]}"
    finally:
        way.close()


@pytest.mark.parametrize("version", [b"dev", b"", b"v2.15.1"])
async def test_a_space_is_written_read_and_listed_whatever_its_server_calls_itself(grove, version):
    async with grove, AsyncExitStack() as stack:
        node = await grove.plant()
        port = int(node.server.url.rpartition(":")[2])
        url = await stack.enter_async_context(greeting_as(version, port))
        way = brief_connection(url, node.seeds.space, "test")
        client = await stack.enter_async_context(way)
        space = EmbeddedSpace(client, "workloads", SystemClock(), SystemDice(), domain="lc")
        await space.open()
        made = await space.apply(config_map("kept"), "me")
        assert await space.get(KEPT) == made
        assert [it["metadata"]["name"] for it in (await space.list("", "configmaps")).objects] == [
            "kept"
        ]
