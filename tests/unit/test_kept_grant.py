"""A kept grant is read as it was written, or it is refused with a reason and a remedy."""

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leafcast.data_dir import DataDirUnusable
from leafcast.join.folder import joined_folder
from leafcast.join.kept_grant import GrantUnreadable, KeptGrant, read_grant, write_grant
from relay.adapters.clock import SystemDice
from relay.adapters.server.nkey_pairs import new_user_nkey
from schemas.records.roots import Roots
from schemas.values.identity import KeyId, NodePath, TreeId

GRANT = KeptGrant(
    tree=TreeId("t" * 26),
    path=NodePath.parse("/emea/store-9"),
    relay=False,
    parents=("nats://127.0.0.1:7422",),
    seed=new_user_nkey(b"e" * 32)[0],
    roots=Roots({KeyId("r" * 26): b"k" * 32}),
    labels={"id": "emea-store-9"},
)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("grant") / "bundle.json"


def test_a_grant_is_read_as_it_was_written_by_its_owner_only(file):
    write_grant(file, GRANT)
    assert read_grant(file) == GRANT
    assert file.stat().st_mode & 0o777 == 0o600
    assert GRANT.seed not in repr(GRANT)


@given(at=st.integers(0), byte=st.integers(0, 255))
def test_a_byte_that_is_another_is_noticed_or_means_nothing(file, at, byte):
    data = bytearray(GRANT.to_text().encode())
    data[at % len(data)] = byte
    file.write_bytes(data)
    with suppress(GrantUnreadable):
        assert read_grant(file) == GRANT


@given(st.binary(max_size=200) | st.integers(0, len(GRANT.to_text()) - 2))
def test_any_other_bytes_are_refused(file, data):
    file.write_bytes(GRANT.to_text().encode()[:data] if isinstance(data, int) else data)
    with pytest.raises(GrantUnreadable):
        read_grant(file)


def test_a_grant_of_a_newer_form_or_none_at_all_is_named(file, tmp_path):
    form = json.loads(GRANT.to_text())
    file.write_text(json.dumps({**form, "format": 2}))
    with pytest.raises(GrantUnreadable, match="format 2"):
        read_grant(file)
    with pytest.raises(GrantUnreadable, match=r"no such file; .*node add PATH -o missing`"):
        read_grant(tmp_path / "missing")


def use(folder, grant):
    return joined_folder(folder, grant, SystemDice())


def test_a_folder_serves_one_node_of_one_tree_and_one_process(tmp_path):
    folder = tmp_path / "node"
    with use(folder, GRANT), pytest.raises(DataDirUnusable), use(folder, GRANT):
        pass
    for other, reason in (
        (replace(GRANT, tree=TreeId("u" * 26)), "another tree"),
        (replace(GRANT, path=NodePath.parse("/emea/other")), "not /emea/other"),
    ):
        with pytest.raises(DataDirUnusable, match=reason), use(folder, other):
            pass
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter").write_text("dear")
    with (
        pytest.raises(DataDirUnusable, match="something else"),
        use(tmp_path / "full", GRANT),
    ):
        pass


def test_a_node_dials_its_parent_also_where_that_says_that_it_listens():
    more = ("nats://127.0.0.1:7422", "nats://127.0.0.1:7423")
    learnt = GRANT.learnt(more)
    assert learnt.dialled == more
    assert learnt.learnt(()) == learnt
    assert learnt.learnt(more[:1]).dialled == GRANT.parents
    assert learnt.learnt(("tls://127.0.0.1:7423", "nats://far.example:1", "[")) == GRANT
    away = replace(GRANT, parents=("tls://a.example:7422",))
    assert away.learnt(("tls://b.example:7422",)).dialled == (*away.parents, "tls://b.example:7422")


def test_what_a_parent_said_is_kept_with_the_grant(file):
    learnt = GRANT.learnt(("nats://127.0.0.1:7423",))
    write_grant(file, learnt)
    assert read_grant(file) == learnt
