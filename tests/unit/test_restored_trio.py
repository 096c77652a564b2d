"""A backup that is restored into three members: what lies there, and what is refused by name."""

import json
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from leafcast.backups.refusals import BackupUnusable
from leafcast.backups.restoring import PENDING
from leafcast.backups.whole_file import BackupTar
from leafcast.centre import centre as centre_module
from leafcast.centre.centre import Centre
from leafcast.centre.copying import Copying, is_moving_in, keep_copying, kept_copying
from leafcast.cli.main import cli
from leafcast.daemon.restored_trio import restore_trio
from leafcast.daemon.trios import MEMBER_NAMES, TrioPlaces
from leafcast.data_dir import DataDir, DataDirUnusable
from leafcast.local.views import DEPTH_MIN, TreeShape
from leafcast.node.credentials.kept_store import KeptStore, keep_store
from relay.adapters.clock import SystemDice
from relay.adapters.server.store_key import StoreKeyRefused
from schemas.values.identity import NodePath

DICE = SystemDice()
TREE_FORM = {"format": 1, "shape": [2, 3, 3]}
LISTENING = {"urls": ["tls://c1.example:7422"], "certificate": "", "key": "", "authorities": ""}
SPACES = {"workloads": [{"kubeconfig": "/k"}], "inventory": [{"kubeconfig": "/k"}]}


@pytest.fixture
def keys(tmp_path):
    """Those of a centre, as it makes them at its first start."""
    centre = TrioPlaces(DataDir(tmp_path / "former"), TreeShape(0, 1, DEPTH_MIN))
    centre.lay_out(DICE)
    return (centre.members(NodePath())[0].folder / "keys" / "keys.json").read_bytes()


def backup(folder, keys, **more):
    """Without a stream, of a centre that ran once with nodes in its program."""
    file, forms = folder / "b.tar", {"tree": TREE_FORM, **more}
    with file.open("wb") as data, BackupTar(data, folder) as tar:
        texts = {f"{name}.json": json.dumps(form).encode() for name, form in forms.items()}
        tar.add_files({"keys/keys.json": keys, "tokens/t.json": b"{}", **texts})
        tar.end(json.loads(keys)["tree"], 1, one_moment=True)
    return file


def test_three_members_have_what_the_backup_has_and_the_one_that_restores_it_is_active_first(
    tmp_path, keys
):
    place = DataDir(tmp_path / "data")
    (place.folder / "restoring-members" / "members").mkdir(parents=True)
    place.folder.chmod(0o700)
    restore_trio(backup(tmp_path, keys), place, None, DICE)
    assert place.tree() == {"format": 1, "shape": [0, 1, 3], "members": 3}
    assert {it.name for it in place.folder.iterdir()} == {"lock", "members", "tree.json"}
    places = TrioPlaces(place, TreeShape(0, 1, DEPTH_MIN))
    before = {it: it.read_bytes() for it in place.folder.rglob("*.json")}
    places.lay_out(DICE)
    assert {it: it.read_bytes() for it in place.folder.rglob("*.json")} == before
    for member in places.members(NodePath()):
        folder, copying = member.folder, kept_copying(member.folder)
        assert (folder / "keys" / "keys.json").read_bytes() == keys
        assert (folder / "tokens" / "t.json").exists()
        assert DataDir(folder).tree() == {"format": 1, "shape": [0, 1, 3]}
        assert set(member.settings().keys) == set(MEMBER_NAMES)
        # No store of before lies there that would be copied.
        assert not is_moving_in(folder, member.name)
        is_first = member.name == "m1"
        assert (folder / PENDING).exists() is is_first
        why = copying.why_not(member.name)
        assert why == ("" if is_first else "member m1 restores the backup of its node")


@pytest.mark.parametrize(
    ("more", "reason", "remedy"),
    [
        ({"listen": LISTENING}, "tls://c1.example:7422", "`leafcast node grow / --host HOST`"),
        ({"spaces": SPACES}, "API servers", "without --members"),
        ({"listen": {}}, "it is damaged", "that `leafcast backup` wrote"),
    ],
)
def test_a_centre_that_three_members_of_one_machine_cannot_be_is_refused(
    tmp_path, keys, more, reason, remedy
):
    place = DataDir(tmp_path / "data")
    with pytest.raises(BackupUnusable, match=reason) as refused:
        restore_trio(backup(tmp_path, keys, **more), place, None, DICE)
    assert remedy in refused.value.remedy
    assert [it.name for it in place.folder.iterdir()] == ["lock"]


def test_a_data_directory_that_is_used_or_holds_something_is_refused_as_it_is(tmp_path, keys):
    file, place = backup(tmp_path, keys), DataDir(tmp_path / "data")
    place.folder.mkdir(mode=0o700)
    with place.locked(), pytest.raises(BackupUnusable, match="a tree runs on"):
        restore_trio(file, place, None, DICE)
    (place.folder / "notes").write_text("mine")
    with pytest.raises(DataDirUnusable, match="it holds no tree, but 'notes'"):
        restore_trio(file, place, None, DICE)
    place.write_tree({"shape": [0, 1, 3], "members": 3})
    with pytest.raises(BackupUnusable, match=r"there is a tree in .*--members 3 begins a new one"):
        restore_trio(file, place, None, DICE)
    assert {it.name for it in place.folder.iterdir()} == {"lock", "notes", "tree.json"}


def test_what_waits_for_encrypted_stores_lies_sealed_and_without_their_key_nothing_does(
    tmp_path, keys
):
    file, place, key = backup(tmp_path, keys), DataDir(tmp_path / "data"), tmp_path / "store.key"
    place.folder.mkdir(mode=0o700)
    keep_store(place.folder, KeptStore(key))
    with pytest.raises(StoreKeyRefused, match=r"store\.key"):
        restore_trio(file, place, None, DICE)
    assert {it.name for it in place.folder.iterdir()} == {"lock", "store.json"}
    key.write_text("k" * 43)
    key.chmod(0o600)
    restore_trio(file, place, None, DICE)
    (pending,) = place.folder.rglob(PENDING)
    assert b"keys.json" in file.read_bytes()
    assert b"keys.json" not in pending.read_bytes()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--members", "2"), "'2' is not one of '1', '3'"),
        (("--members", "3", "--force"), "name an empty --data-dir"),
    ],
)
def test_what_makes_no_sense_is_refused_before_the_backup_is_read(tmp_path, words, said):
    done = CliRunner().invoke(cli, ["restore", str(tmp_path / "none"), *words])
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())


@pytest.mark.parametrize("copying", [Copying("m1"), Copying("m1", alone=True)])
def test_what_the_release_before_knows_of_a_copy_is_said_as_it_reads_it(tmp_path, copying):
    keep_copying(tmp_path, copying)
    form = json.loads((tmp_path / "copying.json").read_text())
    assert form.keys() <= {"member", "alone"}
    assert kept_copying(tmp_path) == copying


@pytest.mark.parametrize(
    ("copying", "is_copy"),
    [(None, False), (Copying("m1"), True), (Copying("m1", restored=True), False)],
)
async def test_a_backup_of_three_members_is_doubted_as_that_of_one_and_a_copy_is_not(
    tmp_path, monkeypatch, copying, is_copy
):
    """What a restored centre misses is held, whatever it runs on."""
    if copying is not None:
        keep_copying(tmp_path, copying)
    said = []

    async def restore_pending(*_, is_copy):
        said.append((is_copy, kept_copying(tmp_path)))

    monkeypatch.setattr(centre_module, "restore_pending", restore_pending)
    options = SimpleNamespace(member=None)
    centre = SimpleNamespace(place=DataDir(tmp_path), options=options, streams=lambda: None)
    centre._clock, centre.progress = None, print
    await Centre._restore(centre)
    assert said == [(is_copy, copying)]
    assert kept_copying(tmp_path) is None
