"""Links with TLS on real servers: who is believed, and certificates that change meanwhile."""

import asyncio
import socket
import ssl
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from relay.adapters.server.leaf_address import LeafAddress, TlsFiles
from relay.adapters.server.link_trouble import trouble_of
from relay.adapters.server.nats_config import ParentRemote
from relay.adapters.server.ports import free_port
from relay.adapters.tls.authority import Authority, new_key, signing_request
from tests.awaiting import eventually
from tests.nats.conftest import Grove, Node, make_streams, until_answered

pytestmark = pytest.mark.nats
NOW_MS = int(time.time() * 1000)
TREE = Authority.make("leafcast tree", NOW_MS)


class Certified:
    """The files of one server's certificate, and of the authority that its children trust."""

    def __init__(self, folder: Path, *names: str, authority: Authority = TREE) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.names = names or ("127.0.0.1",)
        self.files = TlsFiles(folder / "certificate.pem", folder / "key.pem")
        self.authorities = folder / "authorities.pem"
        self.authorities.write_text(TREE.certificate)
        self.renew(authority)
        port = free_port(folder, 0)
        self.leaf_address = LeafAddress((f"tls://127.0.0.1:{port}",), port, self.files)

    def renew(self, authority: Authority = TREE, until_ms: int | None = None) -> None:
        """Another key, another certificate."""
        key = new_key()
        self.files.key.write_text(key)
        made = authority.issue(signing_request(key, self.names), NOW_MS, until_ms)
        self.files.certificate.write_text(made)

    @property
    def link(self) -> ParentRemote:
        return ParentRemote(self.leaf_address.urls, "", authorities=self.authorities)


async def until_said(node: Node, said: str) -> None:
    await eventually(
        lambda: any(said in line for line in node.server.log),
        lambda: "\n".join(node.server.log),
    )


def shown_certificate(port: int) -> bytes:
    """What the server shows to whoever speaks TLS first."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", port)) as plain,
        context.wrap_socket(plain) as secured,
    ):
        return secured.getpeercert(binary_form=True)


async def test_a_certificate_is_renewed_under_an_open_link(grove: Grove, tmp_path):
    mine = Certified(tmp_path / "tls")
    async with grove:
        centre = await grove.plant(leaf_address=mine.leaf_address)
        child = await grove.plant("/ea", centre, mine.link)
        below = await grove.connect(centre, centre.seeds.relay)
        up = await grove.connect(child, child.seeds.uplink)
        await make_streams(below, centre.path, "ea")
        await until_answered(up, "lc.ea._stat.a")
        before = shown_certificate(mine.leaf_address.port)
        mine.renew()
        await centre.server.reload()
        assert shown_certificate(mine.leaf_address.port) != before
        await up.request("lc.ea._stat.a", b"after", timeout=10)
        assert "connection closed" not in "\n".join(child.server.log).lower()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("authority", "certificate signed by unknown authority"),
        ("name", "doesn't contain any IP SANs"),
        ("time", "certificate has expired"),
    ],
)
async def test_a_child_takes_no_parent_that_cannot_show_who_it_is(grove, tmp_path, wrong, said):
    names = ("elsewhere.example",) if wrong == "name" else ("127.0.0.1",)
    mine = Certified(tmp_path / "tls", *names)
    if wrong == "authority":
        mine.renew(Authority.make("another tree", NOW_MS))
    if wrong == "time":
        mine.renew(until_ms=NOW_MS - 31 * 86_400_000)
    async with grove:
        centre = await grove.plant(leaf_address=mine.leaf_address)
        child = await grove.plant("/ea", centre, mine.link)
        await until_said(child, said)


async def test_a_link_goes_over_to_another_authority_and_leaves_the_old_one(grove, tmp_path):
    mine, other = Certified(tmp_path / "tls"), Authority.make("leafcast tree", NOW_MS)
    async with grove:
        centre = await grove.plant(leaf_address=mine.leaf_address)
        child = await grove.plant("/ea", centre, mine.link)
        below = await grove.connect(centre, centre.seeds.relay)
        up = await grove.connect(child, child.seeds.uplink)
        await make_streams(below, centre.path, "ea")
        await until_answered(up, "lc.ea._stat.a")

        def lost() -> int:
            return "\n".join(child.server.log).count("Leafnode connection closed")

        mine.authorities.write_text(TREE.certificate + other.certificate)
        await child.server.reload()
        mine.renew(other)
        await centre.server.reload()
        await up.request("lc.ea._stat.a", b"after", timeout=10)
        assert lost() == 0
        # The next link begins with what it believes now.
        await centre.server.listen(mine.leaf_address)
        assert centre.server.starts == 1, "the doctor would tell of a crash"
        await eventually(lambda: lost() == 1)
        await until_answered(up, "lc.ea._stat.a")
        mine.authorities.write_text(other.certificate)
        await child.server.reload()
        mine.renew(TREE)
        await centre.server.listen(mine.leaf_address)
        await until_said(child, "signed by unknown authority")


async def test_all_addresses_of_a_parent_are_tried(grove, tmp_path):
    mine = Certified(tmp_path / "tls")
    dead = free_port(tmp_path, 1)
    async with grove:
        centre = await grove.plant(leaf_address=mine.leaf_address)
        urls = (f"tls://127.0.0.1:{dead}", *mine.leaf_address.urls)
        child = await grove.plant("/ea", centre, replace(mine.link, urls=urls))
        await until_said(child, "Leafnode connection created")


async def test_who_comes_and_goes_at_a_relay_is_no_trouble_of_its_link_upward(grove):
    async with grove:
        region = await grove.plant("/ea", await grove.plant())
        await until_said(region, "Leafnode connection created for account")
        at = urlsplit(region.server.leaf_urls[0])
        _, writer = await asyncio.open_connection(at.hostname, at.port)
        await until_said(region, f"{writer.get_extra_info('sockname')[1]} - lid")
        writer.close()
        await until_said(region, "Leafnode connection closed")
        assert trouble_of(region.server.log) == ""


async def test_who_does_not_begin_with_tls_is_told_nothing(grove, tmp_path):
    mine = Certified(tmp_path / "tls")
    async with grove:
        await grove.plant(leaf_address=mine.leaf_address)
        reader, writer = await asyncio.open_connection("127.0.0.1", mine.leaf_address.port)
        writer.write(b"CONNECT {}\r\nPING\r\n")
        said = b"".join([await reader.read(1024) for _ in range(2)])
        assert b"INFO" not in said
        assert b"nonce" not in said
        writer.close()
