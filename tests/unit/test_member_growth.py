"""A centre that grows to three members: what it refuses, and what an interrupted growth leaves."""

import asyncio
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest
from nacl.public import PrivateKey

from leafcast.ask.api import ApiError
from leafcast.centre.copying import Copying, end_membership, kept_copying
from leafcast.daemon.nodes.member_growth import CENTRE, FIRST, MemberGrowth
from leafcast.data_dir import DataDir
from leafcast.members.addresses import MemberHost
from leafcast.members.seats import MemberSeat, MemberSeats
from leafcast.members.settings import kept_member
from leafcast.node.credentials.account_seeds import new_seeds
from leafcast.node.credentials.kept_store import KeptStore, keep_store
from leafcast.node.listen_settings import (
    keep_listen_settings,
    kept_listen_settings,
    listen_settings,
)
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.ports import ServerPorts, keep_ports
from schemas.values.wire import replace as with_fields
from tests.unit.test_member_addresses import AWAY, NOW_MS, TREE

DICE = SystemDice()


class Growing:
    """A centre that runs alone and listens on a network, and two machines that ask."""

    def __init__(self, folder):
        self.place, self.changed = DataDir(folder), asyncio.Event()
        self.place.node(CENTRE).mkdir(parents=True)
        keep_ports(self.place.node(CENTRE), ServerPorts(21_000, 21_001))
        keep_listen_settings(folder, listen_settings(["m1.example:7522"], "", "", ""))
        server = object.__new__(EmbeddedServer)
        hosted = SimpleNamespace(seeds=new_seeds(DICE))
        centre = SimpleNamespace(
            nodes={CENTRE: SimpleNamespace(server=server, hosted=hosted)},
            options=SimpleNamespace(member=None),
            tree_id=lambda: TREE,
        )
        self.options = centre.options
        # Any key will do.
        public = bytes(PrivateKey(b"k" * 32).public_key)
        seats = MemberSeats(folder)
        for name in ("m2", "m3"):
            asked = with_fields(AWAY[name], path=CENTRE, key=public)
            seats.put(MemberSeat(CENTRE, name, b"p" * 32, NOW_MS, asked))
        changed = self.changed.set
        self.growth = MemberGrowth(centre, self.place, None, SystemClock(), DICE, seats, changed)

    async def grow(self, host="m1.example:6222"):
        return await self.growth.grow("/", host=host)

    def ask(self):
        """Both machines ask, as they do each second."""
        names = {(CENTRE, "m2"), (CENTRE, "m3")}
        heard = self.growth._handed if self.seats["m2"].settings else self.growth._asking
        heard |= names
        self.growth._asked.set()

    @property
    def seats(self):
        return {seat.name: seat for seat in MemberSeats(self.place.folder).of(CENTRE)}


async def test_a_growth_that_is_ended_as_it_waits_for_the_others_is_a_growth(tmp_path):
    growing = Growing(tmp_path)
    growth = asyncio.create_task(growing.grow())
    async with asyncio.timeout(60):
        while not growing.seats["m2"].settings:
            await asyncio.sleep(0.01)
            growing.ask()
    growth.cancel()
    with pytest.raises(asyncio.CancelledError):
        await growth
    # What the machines were told is true of this one, whenever it is started again.
    assert growing.changed.is_set()
    member, copying = kept_member(tmp_path), kept_copying(tmp_path)
    assert member is not None
    assert member.name == FIRST
    assert copying is not None
    assert copying.member == FIRST
    kept = kept_listen_settings(tmp_path)
    assert kept is not None
    assert kept.urls == member.leaf_urls


async def test_a_centre_does_not_grow_on_the_addresses_of_former_members(tmp_path):
    growing = Growing(tmp_path)
    growth = asyncio.create_task(growing.grow())
    async with asyncio.timeout(60):
        while not growing.changed.is_set():
            await asyncio.sleep(0.01)
            growing.ask()
    await growth
    # As a restored backup has it: the tree's files, and none of the member's.
    restored = Growing(tmp_path / "restored")
    kept = kept_listen_settings(tmp_path)
    assert kept is not None
    keep_listen_settings(restored.place.folder, kept)
    with pytest.raises(ApiError, match="where former members did") as refused:
        await restored.grow()
    assert "leafcast up --listen HOST" in refused.value.remedy
    # Who leaves his fellows says again where he himself listens.
    end_membership(growing.place)
    alone = kept_listen_settings(tmp_path)
    assert alone is not None
    assert not alone.of_members
    assert alone.urls == ("tls://m1.example:7522",)


async def test_an_encrypted_centre_grows_and_shrinks_as_any_other(tmp_path):
    growing = Growing(tmp_path)
    keep_store(tmp_path, KeptStore(tmp_path / "key"))
    growth = asyncio.create_task(growing.grow())
    async with asyncio.timeout(60):
        while not growing.changed.is_set():
            await asyncio.sleep(0.01)
            growing.ask()
    await growth
    tenure = SimpleNamespace(settled=AsyncMock())
    growing.options.member = SimpleNamespace(replacing=SimpleNamespace(change=None), tenure=tenure)
    assert await growing.growth.shrink("/", "m2") == {"member": "m2"}
    assert kept_copying(tmp_path) == Copying("m2", alone=True)


async def test_a_centre_has_another_port_for_its_members_than_for_children(tmp_path):
    growing = Growing(tmp_path)
    with pytest.raises(ApiError, match="port 7522 of --host"):
        await growing.grow("m1.example:7522")
    key = PrivateKey(b"o" * 32)
    keep_listen_settings(tmp_path, listen_settings(["m1.example:6222"], "", "", ""))
    own = growing.growth._own_machine(key, MemberHost("m1.example"))
    assert own.route_port != 6222
