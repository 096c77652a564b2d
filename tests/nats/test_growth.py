"""A centre's streams become those of three servers; and what one of three has is enough again."""

import json
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from leafcast.backups.centre_streams import RELAY, SPACE, CentreServer
from leafcast.backups.restoring import PENDING, restore_pending
from leafcast.backups.whole_file import opened, stream_messages, write_backup
from leafcast.centre.copying import OF_MEMBER, bring_over, streams_at
from leafcast.centre.recovery import lone_survivor, recover
from leafcast.data_dir import DataDir
from leafcast.members.settings import MemberSettings, keep_member, kept_member
from leafcast.node.credentials.account_seeds import keep_seeds, new_seeds
from leafcast.node.credentials.kept_store import KeptStore, keep_store, kept_store
from relay.adapters.clock import SystemDice
from relay.adapters.server.nats_server import EmbeddedServer
from relay.adapters.server.store_key import StoreKeyRefused
from relay.adapters.spaces.connection import space_connection
from relay.adapters.spaces.embedded_space import EmbeddedSpace
from relay.core.effects import StoreOwn
from schemas.records.records import SpaceMark, space_key
from schemas.values import subjects
from schemas.values.identity import NodePath
from schemas.values.wire import decode, encode
from tests.nats.backed_up_centre import CLOCK, TREE, BackedUpCentre
from tests.nats.conftest import Grove
from tests.nats.test_trio_backup import until_placed
from tests.nats.test_trio_fence import KEPT, OTHER, bus_of, config_map, space_of
from tests.nats.test_trio_fence import KEY as RECORD
from tests.nats.trio import NAMES, asked, client_at, trio

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(180)]
MARK = f"lc._own.{subjects.SPACE_PREFIX}{space_key('a')}"


async def test_a_copy_lies_at_three_servers_and_no_space_counts_as_one_that_lost_some(tmp_path):
    async with Grove(tmp_path) as grove:
        alone = await BackedUpCentre(grove, tmp_path / "data").start()
        await alone.make_ledger(b"one", b"two")
        await alone.note(MARK, encode(SpaceMark(7)))
        await alone.space.make()
        await alone.space.apply(config_map("kept", "a"), "me")
        await write_backup(alone.place.folder / PENDING, alone.place, alone.server, CLOCK)
        async with trio(grove, tmp_path / "trio") as members:
            await until_placed(members)
            seeds = {RELAY: members.seeds.relay, SPACE: members.seeds.space}
            there = CentreServer(members.url("m2"), seeds)
            made = await restore_pending(alone.place, there, CLOCK, replicas=3, is_copy=True)
            assert {it.name: it.messages for it in made}["relay/OWN"] == 3
            async with client_at(members.url(), members.seeds.relay) as client:
                info = await asked(client, "STREAM.INFO.OWN")
                mark = await client.jetstream().get_last_msg("OWN", MARK)
            assert info["config"]["num_replicas"] == 3
            assert not decode(SpaceMark, mark.data).rolled_back
    assert not (alone.place.folder / PENDING).exists()


async def test_what_waits_to_be_copied_of_an_encrypted_store_lies_sealed_until_then(tmp_path):
    key_file = tmp_path / "store.key"
    key_file.write_text("k" * 43)
    place = DataDir(tmp_path / "data")
    place.keys.mkdir(parents=True)
    (place.keys / "keys.json").write_text(json.dumps({"tree": TREE}))
    keep_store(place.folder, KeptStore(key_file))
    seeds = new_seeds(SystemDice())
    place.node(NodePath()).mkdir()
    keep_seeds(place.node(NodePath()), seeds)
    async with Grove(place.folder) as grove:

        @asynccontextmanager
        async def centre():
            """Its server on what lies there, and a space there."""
            folder, store = place.node(NodePath()), kept_store(place.folder).settings()
            guarded = {"guard": grove.guard, "clock": CLOCK, "store": store}
            async with (
                EmbeddedServer(folder, NodePath(), seeds, **guarded) as server,
                space_connection(server.url, seeds.space, "test") as client,
            ):
                yield (
                    streams_at(server, seeds),
                    EmbeddedSpace(client, "workloads", CLOCK, SystemDice()),
                )

        async with centre() as (_, space):
            await space.make()
            await space.apply(config_map("kept", "a"), "me")
        key_file.write_text("o" * 43)
        with pytest.raises(StoreKeyRefused, match="another key"):
            await bring_over(place, CLOCK, SystemDice())
        key_file.write_text("k" * 43)
        await bring_over(place, CLOCK, SystemDice())
        pending = (place.folder / PENDING).read_bytes()
        assert len(pending) > 1000
        assert KEPT.name.encode() not in pending
        # Whatever interrupted it: what is there is whole.
        await bring_over(place, CLOCK, SystemDice())
        async with centre() as (there, space):
            assert await restore_pending(place, there, CLOCK, is_copy=True)
            assert await space.get(KEPT) is not None
    assert not (place.folder / PENDING).exists()


async def test_a_centre_goes_on_alone_with_what_one_of_its_members_stored_encrypted(tmp_path):
    place, key_file = DataDir(tmp_path / "m3"), tmp_path / "store.key"
    key_file.write_text("k" * 43)
    kept = KeptStore(key_file)
    async with (
        Grove(tmp_path) as grove,
        trio(grove, tmp_path / "trio", store=kept.settings()) as members,
        AsyncExitStack() as stack,
    ):
        await until_placed(members)
        bus = bus_of(members, "m1", "one")
        await bus.start()
        await bus.write(own=[StoreOwn(RECORD, b"1"), StoreOwn(OTHER, b"2")])
        await bus.close()
        space = await space_of(members, "m1", "one", stack)
        await space.apply(config_map("kept", "a"), "me")
    place.folder.mkdir()
    (tmp_path / "trio" / "m3").rename(place.node(NodePath()))
    place.keys.mkdir()
    (place.keys / "keys.json").write_text(json.dumps({"tree": TREE}))
    keep_seeds(place.node(NodePath()), members.seeds)
    urls = {name: f"nats://127.0.0.1:{at}" for at, name in enumerate(NAMES, 1)}
    keys = dict.fromkeys(NAMES, bytes(32))
    cluster = members.settings["m3"]
    settings = MemberSettings(NodePath(), cluster, tuple(urls.values()), urls, keys, bytes(32))
    keep_member(place.folder, settings)

    with pytest.raises(StoreKeyRefused, match="--store-key-file"):
        await recover(place, lone_survivor(place), CLOCK, SystemDice())
    assert not (place.folder / PENDING).exists()
    keep_store(place.folder, kept)
    await recover(place, lone_survivor(place), CLOCK, SystemDice())
    assert kept_member(place.folder) is None
    assert (place.folder / OF_MEMBER / "jetstream").is_dir()
    file = place.folder / PENDING
    assert KEPT.name.encode() not in file.read_bytes()
    with opened(file, kept.settings().key) as tar:
        records = {it.subject: it.data for it in stream_messages(file, tar, "relay/OWN")}
        objects = [it.subject for it in stream_messages(file, tar, "space/KV_workloads")]
    assert records[subjects.own(NodePath(), RECORD)] == b"1"
    assert records[subjects.own(NodePath(), OTHER)] == b"2"
    assert any(KEPT.name in subject for subject in objects)
