"""A child that was broken into writes without end: its parent's disk and memory stay bounded."""

import json
import time

import pytest

from relay.core.reports.child_reports import UNSENT_MAX
from schemas.reports.reports import PART_MAX_BYTES, Report, Summary
from schemas.values.identity import short_key
from schemas.values.wire import encode
from tests.awaiting import soon
from tests.nats.chaos_member import until
from tests.nats.chaos_tree import chaos_tree, doctor, let_in
from tests.nats.raw_leaf import RawLeaf

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]

EDGE, HOSTILE, PREFIX = "/honest", "/hostile", "lc.hostile"
HUGE = 100 * 1024 * 1024
REPORTS, PARTS, LONG = 8_000, 1_600, 20
CHANGE_SECONDS_MAX = 3.0
"""For an honest change meanwhile."""
SETTINGS = {
    "relay.adapters.jetstream.streams.STAT_MAX_BYTES": 16_000_000,
}
ERASED_SECONDS_MAX = 150.0
"""Eight thousand messages, one after the other, behind all else: 20 s on an idle machine."""
ROOM_BYTES = 30_000_000
"""The two streams, and the files that the server has not yet given back."""
KEPT_BYTES_MAX, MEMORY_BYTES_MAX = 500_000, 130_000_000
"""A relay that has no time holds 64 MiB that came and 256 messages on their way to the core."""


async def test_a_child_that_writes_without_end_fills_neither_disk_nor_memory(tmp_path):
    async with chaos_tree(tmp_path, settings=SETTINGS) as tree:
        await tree.place("shop")
        await tree.put("shop", kept="k")
        await tree.join(EDGE)
        await tree.counted("shop", synced=1)
        file = await tree.invite(HOSTILE, labels={"env": "none"})
        seed = (await let_in(file, tmp_path / "hostile")).seed
        centre = tree.centre
        stored, memory = centre.stored_bytes(), centre.memory()
        ports = json.loads((centre.node_folder / "ports.json").read_text())
        await announce_100_mb(ports["leaf"], seed)
        hostile = RawLeaf()
        try:
            await hostile.open(ports["leaf"], seed, {})
            took = [await flood(hostile)]
            # The server removes the files of what it let go a little later, if the disk is busy.
            await until(
                lambda: centre.stored_bytes() - stored < ROOM_BYTES,
                lambda: f"{centre.stored_bytes()} bytes are stored, {stored} before",
            )
            # The honest one is served meanwhile: what is asked of the tree waits for no report.
            took.append(await change(tree, "first"))
            assert not await erased(tree), "there is a flood still"
            took += [await change(tree, str(number)) for number in range(2)]
            seconds = await until(lambda: erased(tree), seconds=ERASED_SECONDS_MAX)
        finally:
            hostile.close()
        grown = [(now - then) / 1e6 for now, then in zip(centre.memory(), memory, strict=True)]
        print("\n{:.1f} s to write; changes meanwhile took {:.2f}, {:.2f}, {:.2f} s".format(*took))
        print(f"all erased {seconds:.1f} s later; relay and server grew by {grown} MB")
        assert grown[0] < MEMORY_BYTES_MAX / 1e6
        said = await tree.call("events")
        told = {(event["reason"], event["object"]) for event in said["events"]}
        assert ("BadReport", HOSTILE) in told
        found = await doctor(tree)
        assert f"{HOSTILE} said" in found["Links"]
        assert f"leafcast node remove {HOSTILE} --force" in found["Links"]
        # What the doctor says helps.
        await tree.call("node-remove", path=HOSTILE, force=True)
        await tree.counted("shop", synced=1)


async def announce_100_mb(port: int, seed: str) -> None:
    """One report of 100 MB: the server cuts off who begins it, before it has taken any of it."""
    hostile = RawLeaf()
    try:
        await hostile.open(port, seed, {})
        await hostile.taken_in()
        hostile.announce(f"{PREFIX}._stat.{short_key(bytes(20))}", HUGE)
        with pytest.raises(ConnectionError, match=r"Maximum Payload|reset by peer"):
            await hostile.taken_in()
    finally:
        hostile.close()


async def flood(hostile: RawLeaf) -> float:
    """Reports on what it was never sent, 100 MB of parts and of objects, and what is no part.

    How many seconds that took.
    """
    began, none = time.monotonic(), short_key(bytes(20))
    form = encode(Report(none, 0, "r" * 26, 1, 7, False, 0, Summary({"synced": 1})))
    before, after = form.split(none.encode())
    part = b"\x9a" + bytes(PART_MAX_BYTES - 1)
    for number in range(PARTS):
        hostile.say(f"{PREFIX}._stat.{number}", part)
        hostile.say(f"{PREFIX}._up.{number}", part)
        if not number % 50:
            await hostile.taken_in()
    for number in range(LONG):
        hostile.say(f"{PREFIX}._stat.long{number}", bytes(1_000_000))
        await hostile.taken_in()
    for number in range(1, REPORTS + 1):
        key = short_key(number.to_bytes(20, "big"))
        hostile.say(f"{PREFIX}._stat.{key}", before + key.encode() + after)
        if not number % 1000:
            await hostile.taken_in()
    # By then the server has taken in all before it, or refused it.
    await hostile.taken_in()
    return time.monotonic() - began


async def change(tree, value: str) -> float:
    """How many seconds a change takes to the honest edge."""
    with soon(CHANGE_SECONDS_MAX) as taken:
        await tree.put("shop", kept=value)
        await tree.exact([EDGE])
    return taken.seconds


async def erased(tree) -> bool:
    """Whether STAT holds what the honest child says, and few reports on what none was sent."""
    async with tree.centre.client("relay") as client:
        info = await client.jetstream().stream_info("STAT", subjects_filter=f"{PREFIX}.>")
    return len(info.state.subjects or ()) <= UNSENT_MAX and info.state.bytes < KEPT_BYTES_MAX
