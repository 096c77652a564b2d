"""The folder of a tree: used by one, refused if it is newer, damaged, or has no room."""

import pytest

from controllers.issuing.node_credentials import NodeCredentials
from leafcast.daemon.process import (
    FREE_BYTES_MIN,
    check_room,
    prepare_folder,
    start_daemon,
    stop_started,
)
from leafcast.data_dir import DataDir, DataDirUnusable
from leafcast.local.views import TreeShape
from leafcast.node.credentials.files import CredentialsUnusable, keep_credentials, load_credentials
from leafcast.node.known_children import KnownChildren
from relay.adapters.clock import SystemClock
from relay.adapters.server.nkey_pairs import new_user_nkey
from relay.adapters.server.port_holder import Holder
from relay.ports import BusBroken
from schemas.values.identity import NodePath

PATH = NodePath.parse("/emea/s1")


def test_one_process_at_a_time_uses_it(tmp_path):
    place = DataDir(tmp_path)
    assert not place.in_use()
    with place.locked():
        assert place.in_use()
        with pytest.raises(DataDirUnusable, match="another process"), place.locked():
            pass
    assert not place.in_use()
    with place.locked():
        pass


async def test_a_daemon_that_does_not_use_its_folder_yet_is_stopped_as_well(tmp_path):
    place = DataDir(tmp_path)
    daemon = start_daemon(place, TreeShape(1, 1, 3))
    await stop_started(daemon, SystemClock())
    assert daemon.returncode is not None
    assert not place.in_use()


def test_who_has_a_port_is_named_on_one_line():
    assert (
        str(Holder(1, 7, ("python3", "-c", "import x\nx()")))
        == "process 7 (python3 -c import x x())"
    )


def test_what_is_written_is_the_owners_alone(tmp_path):
    place = DataDir(tmp_path)
    place.write_admin({"url": "nats://127.0.0.1:1", "seed": "S"})
    place.write_daemon({"pid": 1})
    assert place.admin() == {"url": "nats://127.0.0.1:1", "seed": "S"}
    assert {file.stat().st_mode & 0o077 for file in tmp_path.iterdir()} == {0}


@pytest.mark.parametrize("text", ["{", "[]", '"x"'])
def test_a_damaged_file_is_named(tmp_path, text):
    (tmp_path / "tree.json").write_text(text)
    with pytest.raises(DataDirUnusable, match=r"tree.json is damaged"):
        DataDir(tmp_path).tree()


def test_another_format_is_refused(tmp_path):
    (tmp_path / "tree.json").write_text('{"format": 2}')
    with pytest.raises(DataDirUnusable, match="format 2"):
        DataDir(tmp_path).tree()


def test_a_file_in_place_of_the_folder_is_called_what_it_is(tmp_path):
    file = tmp_path / "file"
    file.touch()
    for path in (file, file / "below"):
        with pytest.raises(DataDirUnusable, match="it is not a directory"):
            prepare_folder(DataDir(path))


def test_a_disk_that_is_nearly_full_is_refused_with_the_remedy(tmp_path):
    check_room(tmp_path, FREE_BYTES_MIN)
    with pytest.raises(DataDirUnusable, match="make room"):
        check_room(tmp_path, FREE_BYTES_MIN - 1)


def test_the_default_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.delenv("LEAFCAST_DATA_DIR", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert DataDir.default().folder == tmp_path / "leafcast"
    monkeypatch.setenv("LEAFCAST_DATA_DIR", str(tmp_path / "mine"))
    assert DataDir.at(None).folder == tmp_path / "mine"


def test_credentials_are_found_again_and_are_the_owners_alone(tmp_path):
    assert load_credentials(tmp_path, PATH) is None
    made = NodeCredentials(PATH, *new_user_nkey(b"x" * 32))
    keep_credentials(tmp_path, made)
    assert load_credentials(tmp_path, PATH) == made
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o077 == 0
    file.write_text('{"seed": "SUmistyped"}')
    with pytest.raises(CredentialsUnusable, match="restore it"):
        load_credentials(tmp_path, PATH)


async def always():
    """This is the active member."""


class Server:
    """Takes down what it is told."""

    def __init__(self):
        self.told = []

    async def add_child(self, name, nkey):
        self.told.append(("add", name, nkey))

    async def remove_child(self, name):
        self.told.append(("remove", name))


async def test_children_are_known_at_the_next_start_and_strangers_go(tmp_path):
    server = KnownChildren(tmp_path).told_of(Server())
    await server.add_child("s1", "U1")
    await server.add_child("s2", "U2")
    await server.remove_child("s2")
    await server.add_child("s3", "U3")
    known = KnownChildren(tmp_path)
    assert known.nkeys == {"s1": "U1", "s3": "U3"}
    told = Server()
    again = known.told_of(told)
    await again.add_child("s1", "U1")
    await again.forget_others({"s1"}, always)
    assert told.told == [("add", "s1", "U1"), ("remove", "s3")]
    assert KnownChildren(tmp_path).nkeys == {"s1": "U1"}


async def test_a_member_that_may_not_be_active_any_more_removes_nobody(tmp_path):
    async def never():
        raise BusBroken("another member is active")

    KnownChildren(tmp_path).put("s1", "U1")
    told = Server()
    with pytest.raises(BusBroken, match="another member"):
        await KnownChildren(tmp_path).told_of(told).forget_others(set(), never)
    assert told.told == []
    assert KnownChildren(tmp_path).nkeys == {"s1": "U1"}


class SlowServer(Server):
    """Is told of each child anew while the first one is removed."""

    def __init__(self):
        super().__init__()
        self.front = None
        self.open = {"s1", "s2", "s3"}

    async def add_child(self, name, nkey):
        self.open.add(name)

    async def remove_child(self, name):
        self.open.remove(name)
        if self.front is not None:
            front, self.front = self.front, None
            for again in ("s1", "s2", "s3"):
                await front.add_child(again, f"U{again[1:]}")


async def test_a_child_that_is_told_of_anew_meanwhile_is_not_locked_out(tmp_path):
    known = KnownChildren(tmp_path)
    for name in ("s1", "s2", "s3"):
        known.put(name, f"U{name[1:]}")
    server = SlowServer()
    server.front = front = known.told_of(server)
    await front.forget_others(set(), always)
    assert server.open == {"s1", "s2", "s3"}
    assert KnownChildren(tmp_path).nkeys == {"s1": "U1", "s2": "U2", "s3": "U3"}


def test_a_damaged_list_of_children_is_as_none(tmp_path):
    (tmp_path / "children.json").write_text("[")
    assert KnownChildren(tmp_path).nkeys == {}


def test_children_that_come_at_once_are_kept_when_the_last_has_come(tmp_path):
    known = KnownChildren(tmp_path)
    with known.changing():
        with known.changing():
            known.put("s1", "U1")
        known.put("s2", "U2")
        assert not list(tmp_path.iterdir())
    assert KnownChildren(tmp_path).nkeys == {"s1": "U1", "s2": "U2"}
