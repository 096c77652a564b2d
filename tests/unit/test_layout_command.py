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


def test_another_host_or_other_spaces_than_a_tree_has_are_refused_by_name(tmp_path):
    tree = tmp_path / "tree"
    words = (tree, "--regions=0", "--host=a.example", "--workloads-kubeconfig=/hub/a")
    assert layout(*words).exit_code == 0
    written = (tree / "centre" / "node.yaml").read_bytes()
    # Nothing that is named has to be there.
    assert layout(*words).exit_code == 0
    assert layout(tree, "--regions=0").exit_code == 0
    other = layout(tree, "--regions=0", "--host=b.example")
    assert f"{tree}: it was laid out for host a.example, not b.example" in str(other.exception)
    assert "--host a.example (listen.host in the chart)" in str(other.exception)
    hub = layout(*words[:-1], "--workloads-kubeconfig=/hub/b")
    assert "it was laid out for /hub/a, the embedded space, not for /hub/b" in str(hub.exception)
    assert (tree / "centre" / "node.yaml").read_bytes() == written
