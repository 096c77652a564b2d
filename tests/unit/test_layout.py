"""A tree laid out for servers and nodes run elsewhere: its files, and what is refused."""

import os

import pytest
from click.testing import CliRunner

from leafcast.cli.commands.layout import layout
from leafcast.data_dir import DataDir
from leafcast.local.planned_nodes import forget_planned, planned_nodes
from leafcast.local.run_config import RunConfigRefused, read_run_config
from schemas.identity import NodePath


@pytest.fixture(autouse=True)
def umask():
    """What a user has before the command sets another one."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.fixture
def tree(tmp_path):
    done = CliRunner().invoke(layout, [str(tmp_path / "tree"), "--regions", "1", "--sites", "2"])
    assert done.exit_code == 0, done.output
    return DataDir(tmp_path / "tree")


def files(tree):
    return {file: file.read_bytes() for file in tree.folder.rglob("*") if file.is_file()}


def test_every_servers_configuration_has_its_children_and_its_parent(tree):
    centre, region, site = (
        (tree.node(NodePath.parse(path)) / "nats.conf").read_text()
        for path in ("/", "/region-1", "/region-1/site-2")
    )
    assert '"region-1": {' in centre
    assert 'nkey: "SU' not in centre
    assert '"site-1": {' in region
    assert '"site-2": {' in region
    assert 'urls: ["tls://nats-region-1:7422"]' in site


def test_stores_are_encrypted_with_a_key_that_stands_nowhere_if_so_wished(tmp_path):
    tree, option = DataDir(tmp_path / "tree"), "--store-key-variable"
    laid = CliRunner().invoke(layout, [str(tree.folder), "--sites", "1", option, "STORE_KEY"])
    assert laid.exit_code == 0, laid.output
    for folder in map(tree.node, (NodePath(), NodePath(("region-1",)))):
        assert "key: $STORE_KEY" in (folder / "nats.conf").read_text()
        config = read_run_config(folder / "node.yaml")
        assert config.server_place(folder).store_key_variable == "STORE_KEY"
    refused = CliRunner().invoke(layout, [str(tree.folder), option, "no name"])
    assert "environment variable" in refused.output


def test_all_is_its_owners_only(tree):
    made = [tree.folder, *tree.folder.rglob("*")]
    assert (
        sum(file.name in ("nats.conf", "accounts.json", "credentials.json") for file in made) == 11
    )
    assert {file.stat().st_mode & 0o077 for file in made} == {0}


@pytest.mark.parametrize("host", ["{node}{x}", "{node}{}", "Nats_{node}", "{node}:4222", "{node} "])
def test_a_host_that_is_none_is_refused_before_anything_is_written(tmp_path, host):
    done = CliRunner().invoke(layout, [str(tmp_path / "tree"), "--host", host])
    assert "is no host name in lower case" in done.output
    assert not (tmp_path / "tree").exists()


def test_laying_out_twice_changes_nothing(tree):
    before = files(tree)
    again = CliRunner().invoke(layout, [str(tree.folder), "--regions", "1", "--sites", "2"])
    assert again.exit_code == 0
    assert files(tree) == before


def test_the_centre_finds_who_is_planned_once(tree):
    assert [(str(node.path), node.edge) for node in planned_nodes(tree)] == [
        ("/region-1", False),
        ("/region-1/site-1", True),
        ("/region-1/site-2", True),
    ]
    forget_planned(tree)
    assert planned_nodes(tree) == []


def test_a_nodes_file_says_who_it_is_and_where_its_server_is(tree):
    folder = tree.node(NodePath.parse("/region-1/site-1"))
    config = read_run_config(folder / "node.yaml")
    assert config.node == NodePath.parse("/region-1/site-1")
    assert config.edge
    place = config.server_place(folder)
    assert place.url == "tls://nats-region-1-site-1:4222"
    assert place.config == folder / "nats.conf"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: "", "the file"),
        (lambda text: text + "colour: red\n", "colour"),
        (lambda text: text.replace("parent:", "x: 1 #"), "x"),
        (lambda text: text.replace("path: /region-1", "path: nowhere"), "nowhere"),
        (lambda text: text.replace("path: /region-1", "path: /"), "parent"),
        (lambda text: text + "]", "node.yaml"),
        (lambda text: text.replace("server:", "server:\n  store_key_variable: a-b"), "store_key"),
    ],
)
def test_a_file_that_cannot_be_run_with_is_refused_by_name(tree, change, said):
    file = tree.node(NodePath.parse("/region-1")) / "node.yaml"
    file.write_text(change(file.read_text()))
    with pytest.raises(RunConfigRefused, match=said) as refused:
        read_run_config(file)
    assert str(file) in str(refused.value)
    assert "leafcast layout" in str(refused.value)
