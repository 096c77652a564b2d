"""A server that someone else runs: children come and go by its file and a word to it."""

import asyncio
import os
import subprocess
from contextlib import contextmanager

import pytest

from relay.adapters.server.durability import SYNC_SECONDS
from relay.adapters.server.external_server import ExternalServer, ServerPlace
from relay.adapters.server.nats_config import SYNC_ALWAYS, AccountSeeds, BadServerSettings
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.adapters.server.ports import free_ports
from relay.adapters.server.process import server_binary
from relay.ports import BusBroken
from schemas.values.identity import NodePath
from tests.awaiting import eventually
from tests.nats.raw_leaf import let_in

pytestmark = pytest.mark.nats


def nkey():
    return new_user_nkey(os.urandom(32))


@pytest.fixture
def seeds():
    return AccountSeeds(*(nkey()[0] for _ in range(4)))


@pytest.fixture
def server(tmp_path, seeds):
    """Its file is written, and no process runs on it yet."""
    ports = free_ports(tmp_path, 0)
    url, leaf_url = (f"nats://127.0.0.1:{port}" for port in (ports.client, ports.leaf))
    file, store = tmp_path / "nats.conf", tmp_path / "jetstream"
    place = ServerPlace(url, leaf_url, file, store, "127.0.0.1", ports.client, ports.leaf)
    made = ExternalServer(place, NodePath(), seeds)
    made.write_config()
    return made


@contextmanager
def started(file):
    """A nats-server on a file."""
    command = [server_binary(), "--config", file]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait()


@pytest.fixture
async def process(server, tmp_path):
    """A nats-server on the file, that serves."""
    with started(tmp_path / "nats.conf") as process:

        async def serves() -> bool:
            assert process.poll() is None
            return await answers(server)

        await eventually(serves)
        yield process


async def answers(server):
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


async def is_let_in(server, seed):
    """Whether the server knows the key."""
    try:
        await let_in(server, seed)
    except ConnectionError:
        return False
    return True


@pytest.mark.usefixtures("process")
async def test_a_child_is_let_in_and_out_without_a_restart(server):
    seed, public = nkey()
    assert not await is_let_in(server, seed)
    await server.add_child("emea", public)
    assert await is_let_in(server, seed)
    other, replacing = nkey()
    await server.add_child("emea", replacing)
    assert await is_let_in(server, other)
    assert not await is_let_in(server, seed)
    await server.remove_child("emea")
    await server.remove_child("emea")
    assert not await is_let_in(server, other)


@pytest.mark.usefixtures("process")
async def test_a_child_with_another_ones_key_changes_nothing(server, tmp_path):
    _, public = nkey()
    await server.add_child("emea", public)
    before = (tmp_path / "nats.conf").read_text()
    with pytest.raises(BadServerSettings):
        await server.add_child("apac", public)
    assert (tmp_path / "nats.conf").read_text() == before


async def test_a_server_that_is_away_leaves_the_file_as_it_was_and_is_tried_again(server, tmp_path):
    before = (tmp_path / "nats.conf").read_text()
    with pytest.raises(BusBroken, match="does not reload"):
        await server.add_child("emea", nkey()[1])
    assert (tmp_path / "nats.conf").read_text() == before


async def asked_about_sync(server):
    """What the server says of it; nothing while it does not answer."""
    await server.ask_about_sync()
    return [] if server.sync_seconds is None else [server.sync_seconds]


async def test_a_file_that_should_sync_and_a_server_that_does_not_are_told_apart(
    server, process, tmp_path
):
    """The server runs on a file of before, as after an upgrade."""
    file = tmp_path / "nats.conf"
    whole = file.read_text()
    assert await eventually(lambda: asked_about_sync(server)) == [0]
    process.terminate()
    process.wait()
    file.write_text(whole.replace(SYNC_ALWAYS, ""))
    with started(file) as again:
        await eventually(lambda: answers(server))
        assert await eventually(lambda: asked_about_sync(server)) == [SYNC_SECONDS]
        assert file.read_text() == whole
        with pytest.raises(BusBroken, match=r"SyncAlways.*: start that nats-server again"):
            await server.add_child("emea", nkey()[1])
        assert again.poll() is None
    with started(file):
        await eventually(lambda: answers(server))
        await server.ask_about_sync()
        assert server.sync_seconds == 0
