"""A centre's backup: what was there when it was written is there again, and nothing else."""

import json
from dataclasses import replace

import pytest

from controllers.core.access.issued_tokens import IssuedToken
from leafcast.centre.backup import (
    PENDING,
    RELAY,
    SPACE,
    BackupUnusable,
    CentreServer,
    place_backup,
    restore_pending,
    write_backup,
)
from leafcast.daemon.nodes.token_files import TokenFiles
from leafcast.data_dir import DataDir
from leafcast.node.credentials.authorities import load_or_make_authorities
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.spaces.embedded_space import EmbeddedSpace
from schemas.records.roots import Roots
from schemas.values.identity import KeyId, TreeId, random_id
from tests.unit.centre_world import USER, config, config_key

pytestmark = pytest.mark.nats


TOKEN = IssuedToken(
    b"p" * 32, "/late", Roots({KeyId(random_id(b"r" * 16)): b"k" * 32}), 1_000, 9_000
)


class Centre:
    """A server with a ledger and a space, and a data directory."""

    def __init__(self, grove, folder):
        self.grove, self.place = grove, DataDir(folder)

    async def start(self, path="/"):
        self.node = await self.grove.plant(path)
        seeds = {RELAY: self.node.seeds.relay, SPACE: self.node.seeds.space}
        self.server = CentreServer(self.node.server.url, seeds)
        self.relay = await self.grove.connect(self.node, self.node.seeds.relay)
        client = await self.grove.connect(self.node, self.node.seeds.space)
        self.space = EmbeddedSpace(client, "workloads", SystemClock(), SystemDice())
        return self

    def make_keys(self, tree):
        self.place.keys.mkdir(parents=True)
        (self.place.keys / "keys.json").write_text(json.dumps({"tree": tree}))

    async def make_ledger(self, *records):
        await self.relay.jetstream().add_stream(name="OWN", subjects=["own.*"], storage="file")
        for record in records:
            await self.relay.jetstream().publish("own.a", record)

    async def ledger(self):
        stream = self.relay.jetstream()
        last = (await stream.stream_info("OWN")).state.last_seq
        return [(await stream.get_msg("OWN", seq=seq)).data for seq in range(1, last + 1)]


async def test_what_a_backup_holds_is_there_again_with_identity_and_revisions(grove, tmp_path):
    file = tmp_path / "backup.tar"
    records = [bytes([at]) * 50_000 for at in range(20)]
    async with grove:
        old = await Centre(grove, tmp_path / "old").start("/")
        old.make_keys("a" * 26)
        await old.make_ledger(*records)
        await old.space.open()
        await old.space.apply(config("a", namespace="default"), USER)
        identity = await old.space.identity()
        before = await old.space.get(config_key("a", "default"))
        authority = load_or_make_authorities(old.place.folder, TreeId("a" * 26), 1_000).signing
        TokenFiles(old.place.folder).keep([TOKEN])
        await write_backup(file, old.place, old.server, 1_000)
        assert file.stat().st_mode & 0o077 == 0
        await old.relay.jetstream().publish("own.a", b"later")

        place_backup(file, DataDir(tmp_path / "new"))
        # Nodes elsewhere believe the authority: a new one would shut them all out.
        assert (
            load_or_make_authorities(tmp_path / "new", TreeId("a" * 26), 1_000).signing == authority
        )
        assert TokenFiles(tmp_path / "new").read() == [TOKEN]
        new = await Centre(grove, tmp_path / "new").start("/other")
        await new.make_ledger(b"another")
        assert await restore_pending(new.place, new.server)
        assert await new.ledger() == records
        await new.space.open()
        assert await new.space.identity() == identity
        assert await new.space.get(config_key("a", "default")) == before
        # Once, and not at each start.
        assert not (new.place.folder / PENDING).exists()
        assert not await restore_pending(new.place, new.server)


async def test_a_token_that_was_used_since_the_backup_stays_used(grove, tmp_path):
    file, used = tmp_path / "backup.tar", replace(TOKEN, void_ms=2_000)
    async with grove:
        centre = await Centre(grove, tmp_path / "tree").start()
        centre.make_keys("a" * 26)
        files = TokenFiles(centre.place.folder)
        files.keep([TOKEN])
        await write_backup(file, centre.place, centre.server, 1_000)
    files.keep([used])
    place_backup(file, centre.place, force=True)
    assert files.read() == [used]


async def test_a_tree_that_is_there_is_replaced_only_by_force(grove, tmp_path):
    file = tmp_path / "backup.tar"
    async with grove:
        centre = await Centre(grove, tmp_path / "tree").start()
        centre.make_keys("a" * 26)
        await write_backup(file, centre.place, centre.server, 1_000)
    with pytest.raises(BackupUnusable, match="--force"):
        place_backup(file, centre.place)
    (centre.place.keys / "keys.json").write_text("{}")
    assert place_backup(file, centre.place, force=True).tree == "a" * 26
    assert json.loads((centre.place.keys / "keys.json").read_text()) == {"tree": "a" * 26}
    with centre.place.locked(), pytest.raises(BackupUnusable, match="leafcast down"):
        place_backup(file, centre.place, force=True)


def test_what_is_no_backup_is_refused_and_nothing_is_written(tmp_path):
    place = DataDir(tmp_path / "tree")
    with pytest.raises(BackupUnusable, match="no such file"):
        place_backup(tmp_path / "none.tar", place)
    (tmp_path / "text").write_text("no tar")
    with pytest.raises(BackupUnusable, match="cannot be read"):
        place_backup(tmp_path / "text", place)
    assert not place.folder.exists()
