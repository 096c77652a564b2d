"""A backup that is restored over another tree: its keys go only where that is meant."""

import pytest
from click.testing import CliRunner

from leafcast.backups.centre_files import tree_of
from leafcast.backups.whole_file import write_backup
from leafcast.cli.main import cli
from tests.nats.backed_up_centre import CLOCK, TREE, BackedUpCentre

pytestmark = pytest.mark.nats


async def test_the_keys_of_another_tree_are_replaced_only_where_that_is_meant(grove, tmp_path):
    async with grove:
        centre = await BackedUpCentre(grove, tmp_path / "tree").start()
        file = tmp_path / "backup.tar"
        await write_backup(file, centre.place, centre.server, CLOCK)
    keys = centre.place.keys / "keys.json"
    keys.write_text('{"tree": "another"}')
    words = ["restore", str(file), "--force", "--data-dir", str(centre.place.folder)]
    for answer in ("n\n", ""):
        done = CliRunner().invoke(cli, words, input=answer)
        assert done.exit_code == 1
        assert f"another, and the backup is of {TREE}.\nIts keys are replaced" in done.output
        assert tree_of(centre.place) == "another"
    done = CliRunner().invoke(cli, [*words, "--yes"])
    assert done.exit_code == 0, done.output
    assert tree_of(centre.place) == TREE
    # It is the same tree now, and nothing is asked.
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0
    assert "another" not in done.output
