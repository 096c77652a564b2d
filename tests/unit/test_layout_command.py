"""`leafcast layout` names hosts: of a tree each its own, of a centre alone any."""

import yaml
from click.testing import CliRunner

from leafcast.cli.main import cli


def layout(*words):
    return CliRunner().invoke(cli, ["layout", *map(str, words)])


def test_a_centre_alone_has_the_name_that_it_is_given(tmp_path):
    done = layout(tmp_path / "tree", "--regions=0", "--host=centre.example")
    assert done.exit_code == 0, done.output
    server = yaml.safe_load((tmp_path / "tree" / "centre" / "node.yaml").read_text())["server"]
    assert server["leaf_url"] == "tls://centre.example:7422"


def test_several_nodes_cannot_have_one_name(tmp_path):
    done = layout(tmp_path / "tree", "--regions=1", "--host=centre.example")
    assert done.exit_code == 2
    assert "--host" in done.output
    assert "--regions 0" in done.output
    assert not (tmp_path / "tree").exists()
