"""A child of a parent on three servers: at whose door it is let in, how it asks for content."""

from contextlib import AsyncExitStack

import pytest

from relay.adapters.jetstream import uplink
from relay.adapters.jetstream.bus import BusAddress, JetStreamBus
from relay.adapters.server.nats_config import Neighbours, ParentRemote
from schemas.content.blobs import OBJECT, store
from schemas.values.identity import NodePath
from tests.awaiting import eventually
from tests.nats.conftest import new_nkey, new_seeds
from tests.nats.test_trio_servers import CLOCK, DICE, bus_at, links_of
from tests.nats.trio import client_at, trio

pytestmark = pytest.mark.nats


async def test_a_child_goes_to_another_member_where_the_door_of_its_own_is_closed(grove, tmp_path):
    async with grove, AsyncExitStack() as stack:
        made = await stack.enter_async_context(trio(grove, tmp_path))
        (seed, nkey), names = new_nkey(), {"m1", "m2"}
        for name in names:
            neighbours = Neighbours(children={"e1": nkey}, cluster=made.settings[name])
            await made.servers[name].become(neighbours)
        link = ParentRemote(tuple(made.servers[name].leaf_url for name in names), seed)
        await stack.enter_async_context(grove.server("/e1", parent=link))

        async def linked() -> set[str]:
            return {name for name in names if await links_of(made, name, "e1")}

        (first,) = await eventually(linked, "the child is not linked")
        await made.servers[first].keep_door(is_open=False)
        assert await eventually(linked, "the child found no other door") == names - {first}
        (second,) = names - {first}
        served = made.servers[second].served
        await made.servers[second].keep_door(is_open=False)
        assert made.servers[second].served != served
        assert await linked() == set()
        await made.servers[first].keep_door(is_open=True)
        assert await eventually(linked, "an open door lets nobody in") == {first}


@pytest.mark.parametrize(("members", "asks"), [(3, 3), (1, 1)])
async def test_a_blob_is_asked_for_again_only_where_several_servers_may_have_it(
    grove, tmp_path, monkeypatch, members, asks
):
    """A parent that runs once may be at several addresses, too."""
    monkeypatch.setattr(uplink, "BLOB_AGAIN_SECONDS", 0.0)
    async with grove, AsyncExitStack() as stack:
        if members > 1:
            made = await stack.enter_async_context(trio(grove, tmp_path / "parent"))
            server, seeds, above = made.servers["m1"], made.seeds, bus_at(made, "m1")
        else:
            centre = await grove.plant()
            server, seeds = centre.server, centre.seeds
            address = BusAddress(server.url, seeds.relay, None, seeds.system)
            above = JetStreamBus(centre.path, address, server, clock=CLOCK, dice=DICE)
        await above.start()
        stack.push_async_callback(above.close)
        seed, nkey = new_nkey()
        await above.add_child("e1", nkey)
        urls = server.leaf_url, server.leaf_url.replace("127.0.0.1", "localhost")
        own, link = new_seeds(), ParentRemote(urls, seed)
        child = await stack.enter_async_context(grove.server("/e1", own, link))
        below = JetStreamBus(
            NodePath.parse("/e1"),
            BusAddress(child.url, own.relay, own.uplink, own.system),
            child,
            clock=CLOCK,
            dice=DICE,
        )
        await below.start()
        stack.push_async_callback(below.close)
        await eventually(lambda: below.linked, "the parent is not found")
        heard: list[str] = []
        async with client_at(server.url, seeds.relay) as client:

            async def hear(message):
                heard.append(message.subject)

            await client.subscribe("$JS.API.DIRECT.GET.BLOB.>", cb=hear)
            await client.flush()
            missing = store(OBJECT, b"nobody has it").reference
            assert (await below.load_blob(missing)).value is None
            await eventually(lambda: len(heard) >= asks, "not all asks are heard")
        assert len(heard) == asks
