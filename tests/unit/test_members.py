"""What makes a folder a member's, and what members share: files that follow a sealed state."""

import json

import pytest
from nacl.public import PrivateKey

from leafcast.members.layout import PortPool, copy_state, lay_out_members
from leafcast.members.sealed_state import StateUnreadable, opened, sealed
from leafcast.members.settings import FILE, MemberUnusable, kept_member
from leafcast.members.state_files import StateFiles
from relay.adapters.clock import SystemDice
from schemas.values.identity import NodePath, TreeId

DICE = SystemDice()
PATTERNS = ("keys/*.json", "tree.json")


@pytest.fixture
def folders(tmp_path):
    made = {name: tmp_path / name for name in ("m1", "m2", "m3")}
    lay_out_members(made, "centre", TreeId("t" * 26), NodePath(), DICE, PortPool())
    return made


def test_three_folders_are_laid_out_whose_members_know_each_other(folders):
    members = {name: kept_member(folder) for name, folder in folders.items()}
    assert {name: its.name for name, its in members.items()} == {n: n for n in folders}
    ports = {its.cluster.port for its in members.values()}
    assert len(ports) == 3
    for its in members.values():
        others = {f"127.0.0.1:{port}" for port in ports - {its.cluster.port}}
        assert set(its.cluster.routes) == others
        assert bytes(PrivateKey(its.key).public_key) == its.keys[its.name]
    assert len({its.leaf_urls for its in members.values()}) == 1


def test_a_folder_without_the_file_is_no_members(tmp_path):
    assert kept_member(tmp_path) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda form: form.pop("key"),
        lambda form: form.update(key="00"),
        lambda form: form.update(routes=["127.0.0.1:1"]),
        lambda form: form.update(path="/.."),
        lambda form: form.update(keys=[]),
    ],
)
def test_a_damaged_file_is_named_with_the_remedy(folders, change):
    file = folders["m1"] / FILE
    form = json.loads(file.read_text())
    change(form)
    file.write_text(json.dumps(form))
    with pytest.raises(MemberUnusable, match="copy it back from a backup") as refusal:
        kept_member(folders["m1"])
    assert refusal.value.file == file


def test_what_is_sealed_is_opened_by_each_member_and_by_no_other(folders):
    members = {name: kept_member(folder) for name, folder in folders.items()}
    value = sealed("tree.json", b"plain", members["m1"].keys, DICE)
    assert b"plain" not in value
    for name, its in members.items():
        assert opened("tree.json", value, name, its.key) == b"plain"
    with pytest.raises(StateUnreadable, match="not sealed to this member"):
        opened("tree.json", value, "m4", members["m1"].key)
    with pytest.raises(StateUnreadable, match="damaged"):
        opened("tree.json", value, "m1", members["m2"].key)
    with pytest.raises(StateUnreadable, match="damaged"):
        opened("tree.json", value[:-1], "m1", members["m1"].key)
    with pytest.raises(StateUnreadable, match=r"that of tree\.json"):
        opened("keys/keys.json", value, "m1", members["m1"].key)


@pytest.fixture
def files(tmp_path):
    (tmp_path / "keys").mkdir()
    return StateFiles(tmp_path, PATTERNS)


def test_changes_are_told_until_they_are_known(files, tmp_path):
    (tmp_path / "tree.json").write_text("1")
    (tmp_path / "keys" / "a.json").write_text("2")
    (tmp_path / "other.json").write_text("3")
    assert files.changes() == {"tree.json": "1", "keys/a.json": "2"}
    assert files.changes() == {"tree.json": "1", "keys/a.json": "2"}
    files.know({"tree.json": "1", "keys/a.json": "2"})
    assert files.changes() == {}
    (tmp_path / "tree.json").unlink()
    (tmp_path / "keys" / "a.json").write_text("4 ")
    assert files.changes() == {"tree.json": None, "keys/a.json": "4 "}


def test_a_file_that_changed_between_being_told_and_known_is_told_again(files, tmp_path):
    (tmp_path / "tree.json").write_text("1")
    changes = files.changes()
    (tmp_path / "tree.json").write_text("2")
    files.know(changes)
    assert files.changes() == {"tree.json": "2"}


def test_laying_all_leaves_what_is_the_machines_and_removes_what_is_not_in_the_state(
    files, tmp_path
):
    (tmp_path / "keys" / "old.json").write_text("old")
    (tmp_path / "mine.json").write_text("mine")
    files.lay_all({"tree.json": "1", "keys/a.json": "2"})
    names = sorted(it.relative_to(tmp_path).as_posix() for it in tmp_path.rglob("*.json"))
    assert names == ["keys/a.json", "mine.json", "tree.json"]
    assert files.changes() == {}


@pytest.mark.parametrize("name", ["../tree.json", "other.json", "keys/a/b.json", "x/keys/a.json"])
def test_no_name_leads_to_a_file_that_is_not_the_nodes(files, tmp_path, name):
    assert not files.lay(name, "1")
    assert not [file for file in tmp_path.rglob("*.json") if file.is_file()]


def test_laying_what_lies_there_is_no_news(files):
    assert files.lay("tree.json", "1")
    assert not files.lay("tree.json", "1")
    assert files.lay("tree.json", None)
    assert not files.lay("tree.json", None)


def test_a_copy_has_what_is_the_nodes_and_nothing_else(tmp_path):
    source, target = tmp_path / "a", tmp_path / "b"
    (source / "keys").mkdir(parents=True)
    (source / "keys" / "a.json").write_text("1")
    (source / "mine.json").write_text("2")
    copy_state(source, target, PATTERNS)
    assert [file.name for file in target.rglob("*") if file.is_file()] == ["a.json"]
