"""`leafcast backup` takes a FILE, a command, or what the timer is told, and nothing between."""

import pytest
from click.testing import CliRunner

from leafcast.cli.main import cli

NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("one", "two"), 'one FILE at a time, and "two" is none of its commands'),
        (("verfy",), 'no such command "verfy" (did you mean "verify"?)'),
        (("file.tar", "--every", "15m"), "FILE is one backup"),
        (("--every", "15m", "key", "new", "f"), "say nothing before `key`"),
        (("--force",), "--force is about a FILE"),
        (("--every", "soon"), '"soon" is not a duration'),
        (("--keep", "0"), "0 is not in the range"),
        (("verify",), "Missing argument 'FILE'"),
    ],
)
def test_what_makes_no_sense_is_refused_before_a_tree_is_asked(words, said):
    done = CliRunner().invoke(cli, ["backup", *words])
    assert done.exit_code == 2
    assert said in done.output


def test_a_key_is_made_also_where_no_centre_runs(tmp_path):
    words = ["backup", "key", "new", str(tmp_path / "k"), "--data-dir", str(tmp_path / "none")]
    done = CliRunner().invoke(cli, words)
    assert done.exit_code == 0
    assert f"`leafcast backup --key {tmp_path / 'k.pub'}`" in done.output
    assert (tmp_path / "k").stat().st_mode & 0o077 == 0
