"""An answer that was lost while the link stayed is asked for again, long before it is overdue."""

import asyncio

import pytest

from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream import uplink
from relay.adapters.jetstream.bus import BusAddress, JetStreamBus
from schemas.content.blobs import OBJECT, store
from schemas.values.identity import NodePath
from tests.awaiting import eventually
from tests.nats.conftest import call, make_streams

pytestmark = pytest.mark.nats

OVERDUE_SECONDS, PATIENCE_SECONDS = 0.2, 30


async def test_content_whose_answer_was_lost_is_asked_for_again(grove, monkeypatch):
    monkeypatch.setattr(uplink, "OVERDUE_SECONDS", OVERDUE_SECONDS)
    blob = store(OBJECT, b"plain")
    value, asked = blob.values[blob.reference.address], []

    async def answer_the_second_time(message) -> None:
        asked.append(message.subject.rpartition(".")[2])
        if len(asked) > 1:
            await message.respond(value)

    async with grove:
        centre = await grove.plant()
        node = await grove.plant("/r1", centre)
        parent = await grove.connect(centre, centre.seeds.relay)
        await make_streams(parent, NodePath(), "r1")
        # In place of the stream, which would answer each time.
        await call(parent, "$JS.API.STREAM.DELETE.BLOB")
        await parent.subscribe("$JS.API.DIRECT.GET.BLOB.>", cb=answer_the_second_time)
        seeds = node.seeds
        address = BusAddress(node.server.url, seeds.relay, seeds.uplink, seeds.system)
        bus = JetStreamBus(node.path, address, node.server, clock=SystemClock(), dice=SystemDice())
        await bus.start()
        try:
            await eventually(lambda: bus.linked, "the parent is not found")
            async with asyncio.timeout(PATIENCE_SECONDS):
                arrived = await bus.load_blob(blob.reference)
        finally:
            await bus.close()
    assert arrived.value == value
    assert asked == [blob.reference.address] * 2
