"""Whether a parent listens at an address, of real nats-servers and what stands before them."""

import asyncio
import time
from contextlib import suppress

import pytest

from relay.adapters.server.leaf_address import LeafAddress
from relay.adapters.server.parent_probe import NoParent, parent_at
from relay.adapters.server.ports import free_port
from tests.nats.conftest import Grove
from tests.nats.test_proxies import certified, places_of, program, proxied  # noqa: F401
from tests.nats.test_tls import Certified

pytestmark = pytest.mark.nats


async def found(url, proxy=""):
    return await parent_at(url, proxy, time.time, 5)


async def said_of(url):
    with pytest.raises(NoParent) as refused:
        await found(url)
    return refused.value.why


async def test_a_parent_is_found_at_its_port_for_links_alone(grove: Grove, tmp_path):
    mine = Certified(tmp_path / "tls")
    async with grove:
        secured = await grove.plant(leaf_address=mine.leaf_address)
        port = mine.leaf_address.port
        good = (await found(f"tls://127.0.0.1:{port}")).good
        assert good[0] < time.time() < good[1]
        assert "a nats-server answers, no WebSocket" in await said_of(
            f"wss://127.0.0.1:{port}/leaf"
        )
        # In clear nobody is heard before the handshake.
        assert "it takes the connection, and" in await said_of(f"nats://127.0.0.1:{port}")
        clients = secured.server.url.partition("://")[2]
        assert "at its port for clients" in await said_of(f"nats://{clients}")


async def test_a_parent_on_this_machine_is_found_in_clear(grove: Grove):
    async with grove:
        plain = await grove.plant()
        leaf = plain.server.leaf_url.partition("://")[2]
        assert (await found(f"nats://{leaf}")).good is None
        assert "a nats-server answers in clear" in await said_of(f"tls://{leaf}")
        assert "a nats-server answers in clear" in await said_of(f"wss://{leaf}")


async def test_a_parent_is_found_inside_its_websocket(grove: Grove, tmp_path):
    port = free_port(tmp_path, 1)
    async with grove:
        await grove.plant(leaf_address=LeafAddress((f"wss://localhost:{port}/leaf",), port))
        # It says no time as it lets the WebSocket through, and does to who asks for a page.
        there, here = (await found(f"ws://127.0.0.1:{port}/leaf")).told
        assert abs(there - here) < 60
        assert "it takes WebSockets" in await said_of(f"nats://127.0.0.1:{port}")
        assert "a web server answers in clear" in await said_of(f"tls://127.0.0.1:{port}")


@pytest.mark.parametrize("file", ["nginx.conf", "haproxy.cfg", "Caddyfile"])
async def test_a_parent_is_found_behind_a_proxy_that_ends_tls(
    grove: Grove,
    tmp_path,
    certified,  # noqa: F811
    file,
):
    program({"nginx.conf": "nginx", "haproxy.cfg": "haproxy", "Caddyfile": "caddy"}[file])
    port, centre, region, way_out = (free_port(tmp_path, number) for number in range(4))
    url = f"wss://localhost:{port}/leaf"
    places = places_of(certified, file, port, centre, region)
    async with grove, proxied(certified, file, port, places):
        await grove.plant(leaf_address=LeafAddress((url,), centre))
        parent = await found(url)
        assert parent.good[0] < time.time() < parent.good[1]
        assert abs(parent.told[0] - parent.told[1]) < 60
        # Each says in its own words that it has nothing there.
        for other in (f"wss://localhost:{port}/no", f"tls://localhost:{port}"):
            assert "a web server answers `" in await said_of(other)
        proxy = await asyncio.start_server(passes, "127.0.0.1", way_out)
        async with proxy:
            assert (await found(url, f"http://127.0.0.1:{way_out}")).good == parent.good


async def passes(reader, writer):
    """A proxy that lets everybody out."""
    head = await reader.readuntil(b"\r\n\r\n")
    host, _, port = head.split()[1].decode().rpartition(":")
    far_reader, far_writer = await asyncio.open_connection(host, int(port))
    writer.write(b"HTTP/1.1 200 Yes\r\n\r\n")
    async with asyncio.TaskGroup() as group:
        group.create_task(pumped(reader, far_writer))
        group.create_task(pumped(far_reader, writer))


async def pumped(reader, writer):
    try:
        with suppress(OSError):
            while data := await reader.read(4096):
                writer.write(data)
    finally:
        writer.transport.abort()


async def test_what_says_something_else_is_quoted_and_what_is_silent_is_no_parent():
    async def ssh(_, writer):
        writer.write(b"SSH-2.0-Example \x1b[31m\r\n")
        writer.close()

    async with await asyncio.start_server(ssh, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        said = await said_of(f"nats://127.0.0.1:{port}")
        assert said.startswith("`SSH-2.0-Example ?[31m` answers")
        assert "in clear" in await said_of(f"wss://127.0.0.1:{port}/leaf")

    async def silent(reader, writer):
        try:
            with suppress(OSError):
                await reader.read()
        finally:
            writer.transport.abort()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        for scheme in ("nats", "ws"):
            assert "says nothing within" in await said_of(f"{scheme}://127.0.0.1:{port}")
        for scheme in ("tls", "wss"):
            assert "no TLS within" in await said_of(f"{scheme}://127.0.0.1:{port}")
