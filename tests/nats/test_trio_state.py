"""The state of a node, as its members read it where the stream's leader is asked."""

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from types import SimpleNamespace

import pytest

from leafcast.centre.copying import Copying, keep_copying
from leafcast.daemon.centre_member import CentreMember
from leafcast.data_dir import DataDir
from leafcast.members import admission
from leafcast.members.state_files import StateFiles
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream.connection import Connection
from relay.adapters.jetstream.fence import Tenure
from relay.adapters.jetstream.state_stream import StateStream
from relay.ports import BusBroken
from tests.nats.conftest import Grove
from tests.nats.trio import trio

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(120)]

COPYING, KEYS = "copying.json", "keys/keys.json"


async def always():
    """It holds the lease, or nothing is to be written down."""


@asynccontextmanager
async def states(tmp_path):
    """The state as it is written by way of one server, and as another member reads it."""
    async with (
        Grove(tmp_path) as grove,
        trio(grove, tmp_path) as members,
        AsyncExitStack() as stack,
    ):
        made = []
        for name in ("m1", "m2"):
            url, seed = members.url(name), members.seeds.relay
            connection = Connection(url, seed, f"state {name}", f"_INBOX.{name}")
            await connection.open()
            stack.push_async_callback(connection.close)
            made.append(StateStream(connection, SystemClock(), members.path, 3))
        yield made


async def test_who_was_away_learns_what_was_erased_and_takes_nothing_unwritten_for_it(tmp_path):
    async with states(tmp_path) as (active, other):
        with pytest.raises(BusBroken, match="stream not found"):
            await other.has_erased(COPYING)
        await active.make()
        assert not await other.has_erased(COPYING)
        assert await active.take(Tenure("one", always, always)) == {}
        # The fence alone says nothing of what was never written.
        assert not await other.has_erased(COPYING)
        await active.put({COPYING: b"m1", KEYS: b"1"})
        assert not await other.has_erased(COPYING)
        await active.put({KEYS: b"2"}, [COPYING])
        assert await other.has_erased(COPYING)
        assert not await other.has_erased(KEYS)
        await active.put({COPYING: b"m2"})
        assert not await other.has_erased(COPYING)


async def test_who_waits_for_a_copy_is_let_in_by_its_end_and_by_nothing_before(
    tmp_path, monkeypatch
):
    """Nobody tells it: it does not follow the stream."""
    monkeypatch.setattr(admission, "LOOK_SECONDS_MAX", 0.5)
    place = DataDir(tmp_path / "m2")
    place.keys.mkdir(parents=True)
    (place.folder / KEYS).touch()
    keep_copying(place.folder, Copying("m1"))
    node = CentreMember(place, SimpleNamespace(name="m2"), None, SystemDice(), None)
    async with states(tmp_path / "trio") as (active, other):
        files = StateFiles(place.folder, node.state)
        entry = admission.Admission("m2", node, node.why_not, other, files)
        waiting = asyncio.create_task(entry.wait())
        await active.make()
        await active.take(Tenure("one", always, always))
        assert not await entry._drop_erased()
        await active.put({COPYING: b"m1", KEYS: b"1"})
        assert not await entry._drop_erased()
        assert not waiting.done()
        await active.put({}, [COPYING])
        await waiting
        assert not (place.folder / COPYING).exists()
        assert (place.folder / KEYS).exists()
