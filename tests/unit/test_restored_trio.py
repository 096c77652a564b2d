"""A backup that is restored into three members: what lies there, and what is refused by name."""

import json
import shutil
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from leafcast.backups import centre_files as centre_files_module
from leafcast.backups import restoring as restoring_module
from leafcast.backups.refusals import BackupUnusable
from leafcast.backups.restoring import PENDING, place_backup
from leafcast.backups.whole_file import BackupTar, StreamMessages
from leafcast.centre import centre as centre_module
from leafcast.centre.centre import Centre
from leafcast.centre.copying import Copying, is_moving_in, keep_copying, kept_copying
from leafcast.centre.planned_nodes import planned_nodes
from leafcast.centre.recovery import lone_survivor, recover
from leafcast.cli.main import cli
from leafcast.daemon import restored_trio as restored_trio_module
from leafcast.daemon.process import prepare_folder
from leafcast.daemon.restored_trio import restore_trio
from leafcast.daemon.trios import MEMBER_NAMES, TrioPlaces
from leafcast.data_dir import DataDir, DataDirUnusable
from leafcast.local.views import DEPTH_MIN, TreeShape
from leafcast.node.credentials.kept_store import KeptStore, keep_store
from leafcast.space_settings import CentreSpaces, SpaceSetting
from relay.adapters.clock import SystemClock, SystemDice
from relay.adapters.jetstream.stream_contents import StreamForm
from relay.adapters.jetstream.stream_reader import Stored
from relay.adapters.server.store_key import StoreKeyRefused
from schemas.records.records import API_NODE, NodeRecord, Source, encode_payload
from schemas.records.signing import Envelope
from schemas.values import subjects
from schemas.values.identity import KeyId, NodePath

CENTRE = NodePath()
DICE = SystemDice()
TREE_FORM = {"format": 1, "shape": [2, 3, 3]}
LISTENING = {"urls": ["tls://c1.example:7422"], "certificate": "", "key": "", "authorities": ""}
SPACES = {"workloads": [{"kubeconfig": "/k"}], "inventory": [{"kubeconfig": "/k"}]}
IN_CLUSTER = {"workloads": ["in-cluster"], "inventory": ["in-cluster"]}
KNOWN = ("/emea", "/region-1", "/region-1/site-1", "/region-2")
"""Nodes in the ledger: one runs elsewhere, and all sites but one were removed."""
VOID, ORPHAN = "/region-2/site-1", "/region-3/site-1"


@pytest.fixture
def keys(tmp_path):
    """Those of a centre, as it makes them at its first start."""
    centre = TrioPlaces(DataDir(tmp_path / "former"), TreeShape(0, 1, DEPTH_MIN))
    centre.lay_out(DICE)
    return (centre.members(CENTRE)[0].folder / "keys" / "keys.json").read_bytes()


def record_of(path, tree, nkey):
    """As it lies in a ledger."""
    where = NodePath.parse(path)
    record = NodeRecord(Source(API_NODE, tree, "", path), 1, "0" * 16, "", where, nkey)
    envelope = Envelope("node", KeyId("k" * 26), encode_payload(record), b"s" * 64)
    return subjects.own(NodePath(), record.source.key), envelope.encode()


def ledger(tree):
    """Nodes that were added, one that was removed, one whose key is void, and what is no node."""
    gone = subjects.own(NodePath(), "gone")
    messages = [record_of(it, tree, "U" * 56) for it in (*KNOWN, ORPHAN)]
    messages += [record_of(VOID, tree, it) for it in ("U" * 56, "")]
    messages += [(gone, messages[0][1]), (gone, b""), (subjects.own(NodePath(), "_note"), b"?")]
    stored = [Stored(subject, data, {}, at + 1) for at, (subject, data) in enumerate(messages)]
    return StreamMessages(StreamForm({"name": "OWN"}, "", len(stored)), stored)


def backup(folder, keys, **more):
    """Of a centre that ran once with nodes in its program; of its streams its ledger alone."""
    file, forms = folder / "b.tar", {"tree": TREE_FORM, **more}
    with file.open("wb") as data, BackupTar(data, folder) as tar:
        tar.add_stream("relay/OWN", ledger(json.loads(keys)["tree"]))
        texts = {f"{name}.json": json.dumps(form).encode() for name, form in forms.items()}
        tar.add_files({"keys/keys.json": keys, "tokens/t.json": b"{}", **texts})
        tar.end(json.loads(keys)["tree"], 1, one_moment=True)
    return file


def test_three_members_have_what_the_backup_has_and_the_one_that_restores_it_is_active_first(
    tmp_path, keys
):
    place = DataDir(tmp_path / "data")
    done = restore_trio(backup(tmp_path, keys), place, None, DICE)
    assert [list(map(str, it)) for it in (done.here, done.elsewhere)] == [
        ["/region-1", "/region-1/site-1", "/region-2"],
        ["/emea"],
    ]
    assert place.tree() == {"format": 1, "shape": [2, 3, 3], "members": 3}
    there = {it.name for it in place.folder.iterdir()}
    assert there == {"lock", "members", "tree.json", "lc_region-1_site-1"}
    places = TrioPlaces(place, TreeShape(2, 3, DEPTH_MIN))
    laid_out = [list(map(str, tier)) for tier in places.tiers()]
    assert laid_out == [["/region-1", "/region-2"], ["/region-1/site-1"]]
    assert len({*places.each()}) == 9
    (site,) = places.tiers()[-1]
    planned = {str(it.path): it for it in planned_nodes(DataDir(places.members(CENTRE)[0].folder))}
    assert planned.keys() == {*KNOWN} - {"/emea"}
    # The backup has the inventory.
    assert all(it.replaces and not it.edge for it in planned.values())
    assert planned[str(site)].nkey == places.credentials(site).nkey
    before = {it: it.read_bytes() for it in place.folder.rglob("*.json")}
    places.lay_out(DICE)
    assert {it: it.read_bytes() for it in place.folder.rglob("*.json")} == before
    for member in places.members(CENTRE):
        folder, copying = member.folder, kept_copying(member.folder)
        assert (folder / "keys" / "keys.json").read_bytes() == keys
        assert (folder / "tokens" / "t.json").exists()
        around = DataDir(folder).tree()
        assert around == {"format": 1, "shape": [0, 1, 3], "around": place.tree()}
        assert set(member.settings().keys) == set(MEMBER_NAMES)
        # No store of before lies there that would be copied.
        assert not is_moving_in(folder, member.name)
        is_first = member.name == "m1"
        assert (folder / PENDING).exists() is is_first
        why = copying.why_not(member.name)
        assert why == "" if is_first else "member m1 restores the backup" in why
        assert is_first or "restore the backup once more" in why


@pytest.mark.parametrize(
    ("more", "reason", "remedy"),
    [
        ({"listen": LISTENING}, "tls://c1.example:7422", "`leafcast node grow / --host HOST`"),
        ({"spaces": IN_CLUSTER}, "the cluster in which that ran", "without --members"),
        ({"tree": {"format": 1, "shape": [16, 7, 3]}}, "163 nats-servers", "without --members"),
        ({"tree": {"format": 1, "shape": ["two"]}}, "tree.json is damaged", "leafcast backup"),
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


def test_a_centre_on_api_servers_has_the_same_at_each_of_its_three_members(tmp_path, keys):
    place = DataDir(tmp_path / "data")
    restore_trio(backup(tmp_path, keys, spaces=SPACES), place, None, DICE)
    spaces = place.spaces()
    assert {it.kubeconfig for it in spaces.named()} == {"/k"}
    members = TrioPlaces(place, TreeShape(2, 3, DEPTH_MIN)).members(CENTRE)
    assert [DataDir(it.folder).spaces() for it in members] == [spaces] * 3


def test_the_api_server_of_a_restored_tree_is_its_own_and_not_that_of_the_former(tmp_path, keys):
    place = DataDir(tmp_path / "data")
    tree = {**TREE_FORM, "kube": "centre"}
    restore_trio(backup(tmp_path, keys, spaces=SPACES, tree=tree), place, None, DICE)
    assert place.tree()["kube"] == "centre"
    own = SpaceSetting("kubeconfig", str(place.folder / "kube" / "kubeconfig"), "centre")
    members = TrioPlaces(place, TreeShape(2, 3, DEPTH_MIN)).members(CENTRE)
    for it in (place, *(DataDir(it.folder) for it in members)):
        assert it.spaces() == CentreSpaces((own,), (own,))
    # It begins empty: edges are to have inventory there.
    planned = planned_nodes(DataDir(members[0].folder))
    assert [str(it.path) for it in planned if it.edge] == ["/region-1/site-1"]


STEPS = ("make_folder", "keep_copying", "move_file:lc_region-1_site-1", "move_file:tree.json")


@pytest.mark.parametrize("step", STEPS)
def test_a_restore_that_was_cut_off_says_so_and_begins_anew(tmp_path, keys, monkeypatch, step):
    file, place = backup(tmp_path, keys, spaces=SPACES), DataDir(tmp_path / "data")
    name, _, at = step.partition(":")
    real = getattr(restored_trio_module, name)

    class Killed(BaseException):
        pass

    def cut(first, *more):
        if not at or first.name == at:
            raise Killed
        real(first, *more)

    with monkeypatch.context() as patched:
        patched.setattr(restored_trio_module, name, cut)
        patched.setattr(restored_trio_module, "_clear", lambda _: None)
        with pytest.raises(Killed):
            restore_trio(file, place, None, DICE)
    if (place.folder / "restoring-members").exists():
        with pytest.raises(DataDirUnusable, match="restore` into it was cut off") as refused:
            prepare_folder(place)
        assert "say the same once more" in refused.value.remedy
        with pytest.raises(BackupUnusable, match=r"--members 3 into .* was cut off"):
            place_backup(file, place)
    restore_trio(file, place, None, DICE)
    there = {it.name for it in place.folder.iterdir()}
    assert there == {"lock", "members", "tree.json", "lc_region-1_site-1", "spaces.json"}
    prepare_folder(place)


@pytest.mark.parametrize("at", ["restore-begun.tar", "keys.json", "tree.json"])
def test_a_restore_into_a_centre_alone_that_was_cut_off_says_so_and_begins_anew(
    tmp_path, keys, monkeypatch, at
):
    file, place = backup(tmp_path, keys), DataDir(tmp_path / "data")
    real = centre_files_module.move_file

    class Killed(BaseException):
        pass

    def cut(source, target):
        if target.name == at:
            raise Killed
        real(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(centre_files_module, "move_file", cut)
        patched.setattr(centre_files_module, "forget_drafts", lambda _: None)
        if at == "restore-begun.tar":
            patched.setattr(shutil, "copyfileobj", lambda *_: cut(file, Path(at)))
        with pytest.raises(Killed):
            place_backup(file, place)
    with pytest.raises(DataDirUnusable, match="restore` into it was cut off"):
        prepare_folder(place)
    place_backup(file, place)
    prepare_folder(place)
    assert place.tree() == TREE_FORM


def test_a_backup_of_three_members_is_that_of_the_tree_around_them_where_it_runs_once(
    tmp_path, keys
):
    around = {**TREE_FORM, "kube": "all", "members": 3}
    member = {"format": 1, "shape": [0, 1, 3], "around": around}
    place = DataDir(tmp_path / "data")
    place_backup(backup(tmp_path, keys, tree=member), place)
    assert place.tree() == {**TREE_FORM, "kube": "all"}
    trio = DataDir(tmp_path / "trio")
    restore_trio(backup(tmp_path, keys, tree=member), trio, None, DICE)
    assert trio.tree() == around


def test_two_restores_at_once_do_not_write_into_one_folder(tmp_path, keys):
    file, place = backup(tmp_path, keys), DataDir(tmp_path / "data")
    place.folder.mkdir(mode=0o700)
    before = restoring_module._check_free

    def other_begins(*args, **words):
        before(*args, **words)
        stack.enter_context(place.locked())

    with ExitStack() as stack, pytest.MonkeyPatch.context() as patched:
        patched.setattr(restoring_module, "_check_free", other_begins)
        with pytest.raises(DataDirUnusable, match="another process uses it"):
            place_backup(file, place)
        assert {it.name for it in place.folder.iterdir()} == {"lock"}


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


@pytest.mark.parametrize(
    ("copying", "remedy"),
    [
        (Copying("m1"), "restore a backup"),
        (Copying("m1", alone=True), "end this member"),
        (Copying("m1", restored=True), "restore the backup once more"),
    ],
)
def test_nothing_is_recovered_from_a_member_that_never_had_all_of_it(
    tmp_path, keys, copying, remedy
):
    place = DataDir(tmp_path / "data")
    restore_trio(backup(tmp_path, keys), place, None, DICE)
    other = TrioPlaces(place, TreeShape(2, 3, DEPTH_MIN)).members(CENTRE)[1].folder
    keep_copying(other, copying)
    with pytest.raises(DataDirUnusable, match=remedy) as refused:
        lone_survivor(DataDir(other))
    assert str(other / "copying.json") in refused.value.remedy


@pytest.mark.parametrize("copying", [Copying("m1"), Copying("m1", restored=True)])
async def test_who_was_to_bring_all_of_it_goes_on_alone_with_what_waits_there(
    tmp_path, keys, copying
):
    place = DataDir(tmp_path / "data")
    restore_trio(backup(tmp_path, keys), place, None, DICE)
    first = DataDir(TrioPlaces(place, TreeShape(2, 3, DEPTH_MIN)).members(CENTRE)[0].folder)
    keep_copying(first.folder, copying)
    found = await recover(first, lone_survivor(first), SystemClock(), DICE)
    assert found.streams.keys() == {"relay/OWN"}
    assert not first.has_members()
    assert kept_copying(first.folder) is None
    assert (first.folder / PENDING).exists()


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
