"""A child that was broken into writes without end: its parent's disk and memory stay bounded."""

import asyncio
import json
import os

import pytest

from leafcast.bundle import read_bundle
from relay.adapters.request_reply import brief_connection
from schemas.identity import short_key
from schemas.reports import PART_MAX_BYTES, Report, Summary, encode
from tests.nats.chaos_member import until
from tests.nats.chaos_tree import ChaosTree

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(300)]

EDGE, HOSTILE, PREFIX = "/honest", "/hostile", "lc.hostile"
REPORTS, PARTS, LONG = 2_000, 1_600, 20
SETTINGS = {
    "relay.adapters.jetstream_streams.STAT_MAX_BYTES": 16_000_000,
    "relay.adapters.jetstream_streams.UP_MAX_BYTES": 4_000_000,
}
ROOM_BYTES = 30_000_000
"""The two streams, and the files that the server has not yet given back."""
KEPT_BYTES_MAX, MEMORY_BYTES_MAX = 200_000, 130_000_000
"""A relay that has no time holds 64 MiB that came and 256 messages on their way to the core."""


async def test_a_child_that_writes_without_end_fills_neither_disk_nor_memory(tmp_path):
    tree = ChaosTree(tmp_path, SETTINGS)
    try:
        await tree.start()
        await tree.place("shop")
        await tree.put("shop", kept="k")
        await tree.join(EDGE)
        await tree.counted("shop", synced=1)
        seed = read_bundle(await tree.bundle(HOSTILE, labels={"env": "none"})).seed
        centre = tree.centre
        stored, memory = centre.stored_bytes(), centre.memory()[0]
        ports = json.loads((centre.node_folder / "ports.json").read_text())
        url = f"nats://127.0.0.1:{ports['client']}"
        async with brief_connection(url, seed, "hostile") as client:
            await flood(client)
            assert centre.stored_bytes() - stored < ROOM_BYTES
            # The honest one is served meanwhile.
            await tree.put("shop", kept="2")
            await tree.exact([EDGE])
            seconds = await until(lambda: erased(tree))
        grown = centre.memory()[0] - memory
        print(f"\nall erased {seconds:.1f} s later; the relay grew by {grown / 1e6:.0f} MB")
        assert grown < MEMORY_BYTES_MAX
        said = await tree.call("events")
        assert any("BadReport" in str(event.values()) for event in said["events"])
    finally:
        await tree.close()


async def flood(client) -> None:
    """Reports on what it was never sent, 100 MB of parts and of objects, and what is no part."""
    for _ in range(REPORTS):
        key = short_key(os.urandom(20))
        said = Report(key, 0, 1, 1, 7, "i", 5, False, 0, Summary({"synced": 1}))
        await client.publish(f"{PREFIX}._stat.{key}", encode(said))
    part = b"\x9a" + bytes(PART_MAX_BYTES - 1)
    for number in range(PARTS):
        await client.publish(f"{PREFIX}._stat.{number}", part)
        await client.publish(f"{PREFIX}._up.{number}", part)
    for number in range(LONG):
        await client.publish(f"{PREFIX}._stat.long{number}", bytes(1_000_000))
    # The last one's answer: by then the server has taken in all before it, or refused it.
    async with asyncio.timeout(60):
        await client.request(f"{PREFIX}._stat.last", b"", timeout=60)


async def erased(tree) -> bool:
    """Whether STAT holds no more than what the honest child says."""
    async with tree.centre.client("relay") as client:
        info = await client.jetstream().stream_info("STAT", subjects_filter=f"{PREFIX}.>")
    return not info.state.subjects and info.state.bytes < KEPT_BYTES_MAX
