"""Former contents stay in the centre's store as long as its history names them, over restarts."""

import asyncio

from relay.adapters.clock import SystemClock
from relay.core.config import NodeConfig
from relay.core.content.sweeper import SWEEP_EVERY_SECONDS
from relay.core.effects import DropBlobs, LoadBlob, Noted
from relay.core.events import BlobArrived, HistoryKept, OwnRecord, Remembered, Tick
from relay.core.instant import Instant
from relay.core.node import Node
from relay.shell.driver import Driver
from schemas.content import blobs
from schemas.content.manifest import ManifestEntry, build_manifest
from schemas.records.records import FormerRollout, History
from schemas.records.signed_records import StoredMessages
from schemas.values.identity import NodePath, short_key
from schemas.values.subjects import HISTORY_PREFIX
from schemas.values.wire import encode
from tests.doubles.memory.bus import MemoryBus, MemoryNetwork
from tests.unit.meeting import ROOT, TREE

KEY = short_key(bytes(20))
OTHER_KEY = short_key(bytes(19) + b"x")
CONFIG = NodeConfig(NodePath(), TREE, {ROOT.key_id: ROOT.public_key}, "run")


def content(text):
    """A manifest of one object, and all values that it leads to."""
    stored = blobs.store("object", text)
    at = stored.reference
    entry = ManifestEntry("", "x", "n", "o", at.address, at.size, "s", 1)
    manifest = build_manifest([entry])
    values = {a: v for blob in (stored, *manifest) for a, v in blob.values.items()}
    return manifest[0].reference, values


OLD, OLD_VALUES = content(b"old")
GONE, GONE_VALUES = content(b"gone")
VALUES = OLD_VALUES | GONE_VALUES


def centre(own=()):
    remembered = Remembered(own=own, blobs=frozenset(VALUES))
    return Node(CONFIG, remembered, [], Instant(0.0, 0))


def swept(node):
    """What two sweeps, an hour apart, take out of the store."""
    dropped, now = set(), 0.0
    for _ in range(3):
        now += SWEEP_EVERY_SECONDS
        effects = list(node.handle((Tick(),), Instant(now, 0)))
        for effect in effects:
            match effect:
                case LoadBlob(reference):
                    value = VALUES[reference.address]
                    event = BlobArrived(reference, value, local=True)
                    effects += node.handle((event,), Instant(now, 0))
                case DropBlobs(addresses):
                    dropped |= set(addresses)
                case _:
                    pass
    return dropped


def test_what_the_history_names_stays_with_all_that_it_leads_to():
    node = centre()
    node.handle((HistoryKept(KEY, (OLD,)),), Instant(0.0, 0))
    assert swept(node) == GONE_VALUES.keys()
    node.handle((HistoryKept(KEY, ()),), Instant(0.0, 0))
    assert swept(centre()) == VALUES.keys()


def test_the_history_holds_over_a_restart():
    kept = OwnRecord(f"{HISTORY_PREFIX}{KEY}", encode(History((OLD,))), "", 0)
    assert swept(centre([kept])) == GONE_VALUES.keys()


def test_a_note_that_cannot_be_read_is_said():
    node = centre([OwnRecord(f"{HISTORY_PREFIX}{KEY}", b"?", "", 0)])
    assert "Unreadable" in [it.reason for it in node.start() if isinstance(it, Noted)]


async def test_a_controller_finds_what_it_kept():
    network = MemoryNetwork()

    async def run(act):
        driver = Driver(MemoryBus(network, NodePath()), CONFIG, SystemClock())
        async with asyncio.timeout(60), asyncio.TaskGroup() as group:
            task = group.create_task(driver.run())
            await driver.started.wait()
            await act(driver.publisher)
            task.cancel()
        await driver._bus.close()

    async def keep(publisher):
        await publisher.keep_history(KEY, (OLD, GONE))
        await publisher.keep_history(OTHER_KEY, (GONE,))
        await publisher.keep_history(KEY, (OLD,))
        await publisher.keep_history(OTHER_KEY, ())
        assert publisher.kept_history() == {KEY: (OLD,)}
        await publisher.keep_former_rollout(KEY, FormerRollout(deleted=True))
        await publisher.keep_former_rollout(OTHER_KEY, FormerRollout(released=True))
        await publisher.keep_former_rollout(OTHER_KEY, FormerRollout())
        assert publisher.ledger() == StoredMessages({})

    async def look(publisher):
        assert publisher.kept_history() == {KEY: (OLD,)}
        assert publisher.former_rollouts() == {KEY: FormerRollout(deleted=True)}

    await run(keep)
    await run(look)
