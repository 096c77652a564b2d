"""A backup of a stream that fell back, or whose disk did, holds what the stream holds now."""

import shutil

import pytest

from leafcast.backups.backup_folder import BackupFolder
from schemas.values.identity import NodePath
from tests.nats.backed_up_centre import TREE, BackedUpCentre
from tests.nats.conftest import Node, new_seeds

pytestmark = pytest.mark.nats


async def test_a_store_that_went_back_is_backed_up_as_it_is_now(grove, tmp_path):
    """What was undone and what came instead have the same numbers."""
    folder, seeds = BackupFolder(tmp_path / "backups"), new_seeds()
    centre = BackedUpCentre(grove, tmp_path / "tree")
    centre.place.keys.mkdir(parents=True)
    (centre.place.keys / "keys.json").write_text(f'{{"tree": "{TREE}"}}')
    async with grove:
        jetstream, store = tmp_path / NodePath().domain / "jetstream", tmp_path / "store"

        async with grove.server("/", seeds) as server:
            await centre.reach(Node(server, seeds))
            await centre.make_ledger(*(bytes([at]) * 1_000 for at in range(20)))
            await centre.back_up(folder)
        shutil.copytree(jetstream, store)

        async with grove.server("/", seeds) as server:
            await centre.reach(Node(server, seeds))
            for at in range(20, 25):
                await centre.put(at, b"undone")
            undone = await centre.back_up(folder)
            before = await centre.ledger()
        shutil.rmtree(jetstream)
        shutil.copytree(store, jetstream)

        async with grove.server("/", seeds) as server:
            await centre.reach(Node(server, seeds))
            for at in range(30, 37):
                await centre.put(at, b"acknowledged")
            held = await centre.ledger()
            newest = await centre.back_up(folder)
            await centre.put(99, b"later")
            await centre.restore(newest)
            assert await centre.ledger() == held
            # The one before stays as it was.
            await centre.restore(undone)
            assert await centre.ledger() == before
