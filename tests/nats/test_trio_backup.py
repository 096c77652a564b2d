"""A backup of a centre with three members is restored into one that runs once."""

import json
from contextlib import AsyncExitStack

import pytest

from leafcast.backups.backup_folder import BackupFolder
from leafcast.backups.centre_streams import RELAY, SPACE, CentreServer
from leafcast.backups.refusals import BackupUnusable
from leafcast.backups.restoring import place_backup, restore_pending
from leafcast.backups.whole_file import write_backup
from leafcast.data_dir import DataDir
from leafcast.members.settings import FILE as MEMBER_FILE
from relay.adapters.jetstream.fence import ERASED
from relay.adapters.jetstream.publish import REPLACES
from relay.core.effects import StoreOwn
from schemas.content.blobs import OBJECT, store
from schemas.values import subjects
from schemas.values.identity import NodePath
from tests.awaiting import eventually
from tests.nats.backed_up_centre import CLOCK, KEY, TREE, BackedUpCentre
from tests.nats.conftest import Grove
from tests.nats.test_trio_fence import KEPT, OTHER, bus_of, config_map, space_of
from tests.nats.test_trio_fence import KEY as RECORD
from tests.nats.trio import asked, client_at, trio

pytestmark = [pytest.mark.nats, pytest.mark.slow, pytest.mark.timeout(180)]

GONE = subjects.own(NodePath(), "_gone")


class BackedUpTrio(BackedUpCentre):
    """The centre's streams at three members, and the data directory of the active one."""

    async def begin(self, members) -> "BackedUpTrio":
        seeds = {RELAY: members.seeds.relay, SPACE: members.seeds.space}
        # A member's backup reads at its own server, which may lead none of the streams.
        self.server = CentreServer(members.url("m2"), seeds)
        self.place.keys.mkdir(parents=True)
        (self.place.keys / "keys.json").write_text(json.dumps({"tree": TREE}))
        return self


async def until_placed(members) -> None:
    """Wait until the leader has seen all members, and places a stream at three."""

    async def is_placed() -> bool:
        async with client_at(members.url(), members.seeds.relay) as client:
            config = {"name": "PROBE", "subjects": ["probe"], "num_replicas": 3}
            answer = await asked(client, "STREAM.CREATE.PROBE", **config)
            if "error" in answer:
                return False
            return bool((await asked(client, "STREAM.DELETE.PROBE"))["success"])

    await eventually(is_placed, "no stream is placed at three members")


@pytest.mark.parametrize("form", ["whole", "piecewise"])
async def test_a_trio_is_restored_into_a_centre_that_runs_once(tmp_path, form):
    content = store(OBJECT, b"content")
    async with (
        Grove(tmp_path) as grove,
        trio(grove, tmp_path) as members,
        AsyncExitStack() as stack,
    ):
        await until_placed(members)
        bus = bus_of(members, "m1", "one")
        await bus.start()
        await bus.write(blobs=content.values)
        await bus.write(own=[StoreOwn(RECORD, b"1"), StoreOwn(OTHER, b"2"), StoreOwn("_n", b"n")])
        await bus.write(own=[StoreOwn(RECORD, b"said again"), StoreOwn(OTHER, None)])
        await bus.close()
        async with client_at(members.url(), members.seeds.relay) as client:
            for data, headers in ((b"record", {}), (b"", {ERASED: "1"})):
                await client.jetstream().publish(GONE, data, headers={**REPLACES, **headers})
        space = await space_of(members, "m1", "one", stack)
        await space.apply(config_map("kept", "a"), "me")
        await space.apply(config_map("gone"), "me")
        await space.delete(KEPT.__class__("", "configmaps", "default", "gone"))
        before, identity = await space.get(KEPT), await space.identity()
        revision = int((await space.revision()).partition(".")[0])

        centre = await BackedUpTrio(grove, tmp_path / "member").begin(members)
        if form == "piecewise":
            file, key = await centre.back_up(BackupFolder(tmp_path / "backups")), KEY
        else:
            file, key = tmp_path / "backup.tar", None
            await write_backup(file, centre.place, centre.server, CLOCK)

        alone = await BackedUpCentre(grove, tmp_path / "alone").start("/other", tree=None)
        place_backup(file, alone.place, key)
        restored = await restore_pending(alone.place, alone.server, CLOCK)
        assert {it.name: it.messages for it in restored}["relay/OWN"] == 2
        prefix = subjects.own(NodePath(), "")
        assert await alone.ledger() == {f"{prefix}{RECORD}": b"said again", f"{prefix}_n": b"n"}
        async with client_at(alone.server.url, alone.server.seeds[RELAY]) as client:
            blobs = await asked(client, "STREAM.INFO.BLOB")
        assert blobs["state"]["messages"] == len(content.values)
        assert "num_replicas" not in blobs["config"] or blobs["config"]["num_replicas"] == 1
        await alone.space.open()
        assert await alone.space.identity() == identity
        again = await alone.space.get(KEPT)
        versions = [it["metadata"].pop("resourceVersion") for it in (before, again)]
        assert again == before
        assert int(versions[1]) > revision >= int(versions[0])
        listing = await alone.space.list("", "configmaps")
        assert [it["metadata"]["name"] for it in listing.objects] == ["kept"]
        await alone.space.apply(config_map("new"), "me")


@pytest.mark.parametrize("lies_there", ["tree", "member"])
@pytest.mark.parametrize("force", [False, True])
async def test_nothing_is_restored_over_a_tree_of_members(grove, tmp_path, lies_there, force):
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "alone").start()
        centre.place.write_tree({"shape": [0, 1, 2]})
        await write_backup(tmp_path / "b.tar", centre.place, centre.server, CLOCK)
    place = DataDir(tmp_path / "trios")
    place.folder.mkdir(mode=0o700)
    if lies_there == "tree":
        place.write_tree({"shape": [1, 1, 3], "members": 3})
    else:
        (place.folder / MEMBER_FILE).write_text("{}")
    before = {it.name: it.read_bytes() for it in place.folder.iterdir()}
    with pytest.raises(BackupUnusable, match="has several members") as refused:
        place_backup(tmp_path / "b.tar", place, force=force)
    assert "--data-dir: with --members 3" in refused.value.remedy
    assert "node grow /" in refused.value.remedy
    assert {it.name: it.read_bytes() for it in place.folder.iterdir()} == before
