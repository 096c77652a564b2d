"""Links over WebSockets, through the proxies of deploy/proxies with nothing but places changed."""

import asyncio
import os
import shutil
import socket
import subprocess
from base64 import b64encode
from collections.abc import Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from relay.adapters.server.leaf_address import LeafAddress
from relay.adapters.server.link_trouble import cause_of
from relay.adapters.server.nats_config import ParentRemote
from relay.adapters.server.ports import free_port
from relay.adapters.server.upgrade_probe import cause_at, refusal_of
from relay.adapters.tls.authority import new_key, signing_request
from tests.awaiting import eventually
from tests.nats.conftest import Grove, make_streams, until_answered
from tests.nats.test_tls import NOW_MS, TREE, until_said

pytestmark = pytest.mark.nats
FILES = Path(__file__).resolve().parents[2] / "deploy" / "proxies"
COMMANDS = {
    "nginx.conf": ("nginx", "-p", "{here}", "-c", "{file}", "-g", "daemon off; pid {here}/pid;"),
    "haproxy.cfg": ("haproxy", "-db", "-f", "{file}"),
    "Caddyfile": ("caddy", "run", "--adapter", "caddyfile", "--config", "{file}"),
    "squid.conf": ("squid", "-N", "-f", "{file}"),
}


def program(name: str) -> str:
    """Where the proxy is; the test is skipped, and says so, where it is not."""
    found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if found is None:
        pytest.skip(f"NOT RUN: no {name} here; on Debian: apt-get install {name}")
    return found


@asynccontextmanager
async def proxied(folder: Path, file: str, port: int, places: Mapping[str, str]):
    """The proxy of a file in deploy/proxies, from the moment on that its port is open."""
    command, *arguments = COMMANDS[file]
    text = (FILES / file).read_text()
    for was, becomes in places.items():
        assert was in text, was
        text = text.replace(was, becomes)
    if command == "squid":
        text += f"pid_filename none\ncache_log {folder}/log\ncoredump_dir none\n"
        text += "access_log none\nshutdown_lifetime 0 seconds\n"
        shutil.chown(folder, "proxy")
    here, own = folder, folder / file
    own.write_text(text)
    (folder / "logs").mkdir(exist_ok=True)
    said = [part.format(here=here, file=own) for part in arguments]
    with (folder / "said").open("wb") as out:
        process = subprocess.Popen(
            [program(command), *said],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder)},
        )
    try:
        await eventually(
            lambda: process.poll() is not None or listens(port),
            (folder / "said").read_text,
        )
        assert process.poll() is None, (folder / "said").read_text()
        yield
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def certified(tmp_path_factory) -> Path:
    """A proxy's folder, with a certificate for localhost that the tree's authority signed."""
    folder = tmp_path_factory.mktemp("proxy")
    # Others work there, too: squid gives up what root may.
    for place in (folder, folder.parent, folder.parent.parent):
        place.chmod(0o755)
    key = new_key()
    certificate = TREE.issue(signing_request(key, ["localhost"]), NOW_MS)
    for name, text in (("pem", certificate), ("key", key), ("both.pem", certificate + key)):
        (folder / f"localhost.{name}").write_text(text)
    (folder / "authorities.pem").write_text(TREE.certificate)
    return folder


def places_of(folder: Path, file: str, port: int, centre: int, region: int) -> dict[str, str]:
    """Where what deploy/proxies names is in a test."""
    both = "centre.example.both.pem" if file == "haproxy.cfg" else "centre.example.pem"
    places = {
        f"/etc/ssl/{both}": str(folder / both.replace("centre.example", "localhost")),
        "127.0.0.1:8422": f"127.0.0.1:{centre}",
        "127.0.0.1:8423": f"127.0.0.1:{region}",
    }
    match file:
        case "nginx.conf":
            return {
                **places,
                "/etc/ssl/centre.example.key": str(folder / "localhost.key"),
                "listen 443": f"listen {port}",
            }
        case "Caddyfile":
            return {
                **places,
                "/etc/ssl/centre.example.key": str(folder / "localhost.key"),
                "centre.example:443": f"localhost:{port}",
            }
        case _:
            return {**places, "bind :443": f"bind :{port}"}


@pytest.mark.parametrize("file", ["nginx.conf", "haproxy.cfg", "Caddyfile"])
async def test_a_link_goes_through_a_proxy_that_ends_tls(grove: Grove, tmp_path, certified, file):
    program(COMMANDS[file][0])
    port, centre_port, region_port = (free_port(tmp_path, number) for number in range(3))
    url = f"wss://localhost:{port}/leaf"
    places = places_of(certified, file, port, centre_port, region_port)
    authorities = certified / "authorities.pem"
    async with grove, proxied(certified, file, port, places):
        centre = await grove.plant(leaf_address=LeafAddress((url,), centre_port))
        below = await grove.connect(centre, centre.seeds.relay)
        await make_streams(below, centre.path, "emea")
        leaf_address = LeafAddress((f"{url}/emea",), region_port)
        way = ParentRemote((url,), "", authorities=authorities)
        region = await grove.plant("/emea", centre, way, leaf_address)
        up = await grove.connect(region, region.seeds.uplink)
        await until_answered(up, "lc.emea._node.self")
        inner = await grove.connect(region, region.seeds.relay)
        await make_streams(inner, region.path, "s1")
        # The region beside it is found by its own path.
        beside = ParentRemote((f"{url}/region-1",), "", authorities=authorities)
        site = await grove.plant("/emea/s1", region, beside)
        under = await grove.connect(site, site.seeds.uplink)
        await until_answered(under, "lc.emea.s1._node.self")
        # A path that leads nowhere is told with the proxy's own words.
        lost = await grove.plant(
            "/x", centre, ParentRemote((f"wss://localhost:{port}/no",), "", authorities=authorities)
        )
        await until_said(lost, "invalid websocket connection")
        said = await cause_at([f"wss://localhost:{port}/no"], *cause_of(lost.server.log))
        assert "does not let a WebSocket through (" in said
        assert "have the proxy there" in said
        assert await refusal_of(url) == ""


async def test_a_link_goes_out_through_a_connect_proxy(grove: Grove, tmp_path, certified):
    for name in ("squid", "nginx"):
        program(name)
    port, centre_port, way_out = (free_port(tmp_path, number) for number in range(3, 6))
    url = f"wss://localhost:{port}/leaf"
    places = places_of(certified, "nginx.conf", port, centre_port, free_port(tmp_path, 9))
    squid = certified / "squid"
    squid.mkdir()
    allowed = {
        "http_port 3128": f"http_port 127.0.0.1:{way_out}",
        "centre.example": "localhost",
        "port 443": f"port {port}",
    }
    async with (
        grove,
        proxied(certified, "nginx.conf", port, places),
        proxied(squid, "squid.conf", way_out, allowed),
    ):
        centre = await grove.plant(leaf_address=LeafAddress((url,), centre_port))
        below = await grove.connect(centre, centre.seeds.relay)
        await make_streams(below, centre.path, "ea", "eb")
        link = ParentRemote(
            (url,),
            "",
            authorities=certified / "authorities.pem",
            proxy=f"http://127.0.0.1:{way_out}",
        )
        child = await grove.plant("/ea", centre, link)
        up = await grove.connect(child, child.seeds.uplink)
        await until_answered(up, "lc.ea._node.self")
        # Elsewhere it does not let them: its words are told.
        away = ParentRemote(("wss://localhost:1/leaf",), "", proxy=link.proxy)
        refused = await grove.plant("/eb", centre, away)
        await until_said(refused, "proxy CONNECT failed")
        assert "403 Forbidden" in cause_of(refused.server.log)[0]
        # What is behind it says why it lets no WebSocket through, to who asks through it alone.
        # Which words depends on whether nginx may look into the folder of the test.
        words = await refusal_of(f"wss://localhost:{port}/no", link.proxy)
        assert words in ("404 Not Found", "403 Forbidden")
        assert await refusal_of(url, link.proxy) == await refusal_of(away.urls[0], link.proxy) == ""


class WayOut:
    """An HTTP proxy that lets nobody out, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def take(self, reader, writer) -> None:
        with suppress(asyncio.IncompleteReadError):
            self.asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
        writer.close()


async def test_a_proxy_is_told_name_and_password_as_they_are_and_an_address_in_brackets(grove):
    way = WayOut()
    server = await asyncio.start_server(way.take, "127.0.0.1", 0)
    proxy = f"http://u%5c:p%22%25%5Cx@127.0.0.1:{server.sockets[0].getsockname()[1]}"
    known = b64encode(b'u\\:p"%\\x').decode()
    async with server, grove:
        centre = await grove.plant()
        await grove.plant("/ea", centre, ParentRemote(("wss://[::1]:9/leaf",), "", proxy=proxy))
        await eventually(lambda: way.asked)
        probed = len(way.asked)
        assert await refusal_of("wss://[::1]:9/leaf", proxy) == ""
        assert len(way.asked) > probed
        for asked in way.asked:
            assert asked.startswith("CONNECT [::1]:9 HTTP/1.1\r\n")
            assert f"Proxy-Authorization: Basic {known}\r\n" in asked


def test_a_proxy_in_between_hears_of_each_link_in_time():
    seconds = 40
    config = Path(__file__).resolve().parents[2] / "nats" / "node.conf"
    assert f'ping_interval: "{seconds}s"' in config.read_text()
    assert seconds < 60, "nginx gives up after 60 s, unless it is told otherwise"
