"""Who has no key, or only that of the entrance, connects to a server and says what he likes."""

import asyncio
import json
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import pytest

from relay.adapters.server.admin import reload_config, system_connection
from relay.adapters.server.leaf_address import LeafAddress
from relay.adapters.server.link_trouble import cause_of, trouble_of
from relay.adapters.server.nats_config import ParentRemote
from relay.adapters.server.ports import free_port
from tests.awaiting import eventually
from tests.nats.conftest import until_answered
from tests.nats.raw_leaf import RawLeaf
from tests.nats.test_tls import Certified

pytestmark = [pytest.mark.nats, pytest.mark.timeout(180)]

MB = 1_000_000
SAID = (
    "Critical write error",
    "JetStream out of resources, will be DISABLED",
    "Failed to reload server configuration: x",
    "Reloaded server configuration",
    "Leafnode connection created for account",
    "authorization violation",
    "Error trying to connect as leafnode",
)
SILENT, HUGE = 400, 100
HALF_A_HELLO = b"\x16\x03\x01\x02\x00\x01"
HALF_A_REQUEST = b"GET /leafnode HTTP/1.1\r\nHost: x\r\n"
FRAME = (
    HALF_A_REQUEST
    + b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    + b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    + b"\x82\xff"
    + (2**62).to_bytes(8, "big")
    + b"mask"
    + b"z" * 100_000
)


def memory(node) -> int:
    """Resident bytes of a node's server."""
    return int(Path(f"/proc/{node.server.pid}/statm").read_text().split()[1]) * 4096


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


async def shout(port: int, text: str) -> None:
    """Say it in the place of a key and of a name, and hear that one is not let in."""
    for word in ("nkey", "user"):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await reader.readuntil(b"\n")
        writer.write(b"CONNECT " + json.dumps({word: text, "pass": "x"}).encode() + b"\r\nPING\r\n")
        with suppress(ConnectionError):
            while await reader.read(4096):
                pass
        writer.close()


async def test_what_strangers_have_the_log_say_is_not_believed(grove):
    async with grove:
        centre = await grove.plant()
        region = await grove.plant("/ra", centre)
        await eventually(lambda: "Leafnode connection created for account" in log(region))
        for port in (port_of(region.server.leaf_url), port_of(region.server.url)):
            for text in SAID:
                # While it reads its configuration again nobody else says how that went.
                await asyncio.gather(shout(port, text), region.server.reload())
        await eventually(lambda: all(f'Nkey "{text}' in log(region) for text in SAID))
        assert not region.server.store_failed
        assert trouble_of(region.server.log) == ""
        assert cause_of(region.server.log) == ("", "")


async def test_a_child_whose_name_has_line_breaks_forges_no_line_of_the_log(grove):
    async with grove:
        centre = await grove.plant()
        edge = await grove.plant("/ea", centre)
        begin = f"[{centre.server.pid}] 2126/01/01 00:00:00.000000 [ERR]"
        forged = "".join(f"\n{begin} {text}" for text in SAID)
        evil = RawLeaf()
        await evil.open(port_of(centre.server.leaf_url), edge.link_seed, {"name": f"a{forged}"})
        await evil.taken_in()
        evil.close()
        await eventually(lambda: SAID[0] in log(centre))
        assert not centre.server.store_failed
        assert trouble_of(centre.server.log) == ""


async def test_no_number_of_strangers_pushes_the_word_on_its_link_out_of_a_relays_log(grove):
    async with grove:
        centre = await grove.plant()
        region = await grove.plant("/ra", centre)
        await eventually(lambda: "Leafnode connection created for account" in log(region))
        for number in range(150):
            await shout(port_of(region.server.leaf_url), f"stranger {number}")
        await eventually(lambda: 'User "stranger 149"' in log(region))
        assert 'User "stranger 0"' not in log(region)
        assert "Leafnode connection created for account" in log(region)
        assert "Server is ready" in log(region)


def log(node) -> str:
    return "\n".join(node.server.log)


@asynccontextmanager
async def guarded(grove, leaf_address, link):
    """A centre whose child is heard; the centre, the child's client, and who asks it."""
    async with grove:
        centre = await grove.plant(leaf_address=leaf_address)
        child = await grove.plant("/ea", centre, link)
        relay = await grove.connect(centre, centre.seeds.relay)

        async def beat(message):
            await message.respond(b"")

        await relay.subscribe("lc.*._node.self", cb=beat)
        up = await grove.connect(child, child.seeds.uplink)
        await until_answered(up, "lc.ea._node.self")
        yield centre, up


async def crowd(stack: ExitStack, port: int, count: int, said: bytes):
    """So many connections that say this, and nothing more, until the stack ends."""

    async def one():
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        stack.callback(writer.close)
        writer.write(said)
        return reader, writer

    return await asyncio.gather(*(one() for _ in range(count)))


async def ended(held) -> None:
    """Wait until the server has closed them all."""

    async def one(reader, _writer):
        with suppress(ConnectionError):
            while await reader.read(64 * 1024):
                pass

    async with asyncio.timeout(60):
        await asyncio.gather(*(one(*each) for each in held))


async def until_heard(parent, up, subject: str) -> None:
    """A server that reloads twice at once may tell a new account of nobody: it reads once more."""
    try:
        await until_answered(up, subject, seconds=20)
    except AssertionError:
        print("nobody was heard after two reloads in a row")
        await parent.server.reload()
        await until_answered(up, subject)


async def withstands(grove, leaf_address, link, crowds) -> None:
    """A child is heard, and another comes in, beside all these; then the server ends them."""
    with ExitStack() as stack:
        async with guarded(grove, leaf_address, link) as (centre, up):
            before, held = memory(centre), []
            for count, said in crowds:
                held += await crowd(stack, leaf_address.port, count, said)
            most = memory(centre)
            await up.request("lc.ea._node.self", b"beat", timeout=30)
            # Whoever runs a server himself has it read its configuration so.
            async with system_connection(centre.server.url, centre.seeds.system) as system:
                await reload_config(system)
            late = await grove.plant("/eb", centre, link)
            other = await grove.connect(late, late.seeds.uplink)
            await until_heard(centre, other, "lc.eb._node.self")
            await ended(held)
            await up.request("lc.ea._node.self", b"beat", timeout=30)
            print(f"\n{before / MB:.0f} MB before, {most / MB:.0f} MB beside {len(held)} strangers")
            assert most - before < 400 * MB


async def test_strangers_who_begin_tls_and_go_no_further_keep_no_child_out(grove, tmp_path):
    mine = Certified(tmp_path / "tls")
    crowds = (
        (SILENT, b""),
        (SILENT, HALF_A_HELLO),
        (HUGE, b"\x16\x03\x01\xff\xff" + bytes(60_000)),
    )
    await withstands(grove, mine.leaf_address, mine.link, crowds)


async def test_strangers_at_the_port_of_websockets_are_cut_off(grove, tmp_path):
    port = free_port(tmp_path, 0)
    url = f"ws://127.0.0.1:{port}"
    crowds = (
        (SILENT, b""),
        (SILENT, HALF_A_REQUEST),
        (HUGE, b"\x00" * 10_000),
        (HUGE, HALF_A_REQUEST + b"X: " + b"y" * 900_000),
        (HUGE, FRAME),
    )
    await withstands(grove, LeafAddress((url,), port), ParentRemote((url,), ""), crowds)
