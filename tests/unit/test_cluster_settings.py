"""What makes a server a member: which settings are refused, and what its configuration says."""

from dataclasses import replace
from pathlib import Path

import pytest

from relay.adapters.jetstream.server_watch import SILENT_LOOKS, ServersSeen
from relay.adapters.server.cluster_settings import (
    BadClusterSettings,
    ClusterSettings,
    RouteTls,
)
from relay.adapters.server.leaf_address import TlsFiles
from relay.adapters.server.nats_config import BadServerSettings, render
from relay.adapters.server.store_mark import (
    MARK_FILE,
    StoreMark,
    StoreMarkDamaged,
    StoreOfAnotherKind,
    StoreWithoutItsMark,
    admit_store,
    kept_mark,
)
from schemas.values.identity import TreeId
from tests.unit.test_nats_config import SETTINGS

TLS = RouteTls(TlsFiles(Path("c.pem"), Path("k.pem")), Path("a.pem"))
CLUSTER = ClusterSettings(
    tree=TreeId("t1"),
    member="m1",
    port=20010,
    routes=("127.0.0.1:20011", "127.0.0.1:20012"),
    password="w" * 32,
)
MARK = StoreMark("t1", "/emea", "t1-lc_emea", "m1")


def test_a_member_dials_the_others_and_a_server_alone_has_no_routes():
    text = render(replace(SETTINGS, cluster=CLUSTER))
    assert 'name: "t1-lc_emea_s1"' in text
    assert f'"nats-route://member:{"w" * 32}@127.0.0.1:20011"' in text
    assert "cluster" not in render(SETTINGS)
    for opening, closing in ("{}", "[]"):
        assert text.count(opening) == text.count(closing)


def test_members_on_other_machines_show_certificates_of_their_own_authority():
    away = replace(CLUSTER, host="192.0.2.7", routes=("m2.example:6222", "[fd00::3]:6222"), tls=TLS)
    text = render(replace(SETTINGS, cluster=away))
    assert 'ca_file: "a.pem", verify: true' in text


def test_two_members_have_different_server_names_and_the_same_cluster():
    other = replace(CLUSTER, member="m2")
    path = SETTINGS.path
    assert other.server_name(path) != CLUSTER.server_name(path)
    assert other.cluster_name(path) == CLUSTER.cluster_name(path)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"member": "M1"}, "M1"),
        ({"member": "a.b"}, "a.b"),
        ({"member": ""}, "member"),
        ({"member": "m" * 33}, "member"),
        ({"port": 0}, "port"),
        ({"port": 70000}, "70000"),
        ({"routes": ("127.0.0.1:20011",)}, "routes"),
        ({"routes": ("127.0.0.1", "127.0.0.1:2")}, "127.0.0.1"),
        ({"routes": ("127.0.0.1:0", "127.0.0.1:2")}, "127.0.0.1:0"),
        ({"routes": ('a" }:1', "127.0.0.1:2")}, "routes"),
        ({"routes": ("m2.example:1", "127.0.0.1:2")}, "m2.example"),
        ({"host": "192.0.2.7"}, "192.0.2.7"),
        ({"password": "short"}, "password"),
        ({"password": "with@sign" * 8}, "password"),
    ],
)
def test_what_makes_no_member_is_refused_by_name(changed, named):
    with pytest.raises(BadClusterSettings) as refused:
        replace(CLUSTER, **changed)
    assert named in str(refused.value)
    assert "with@sign" not in str(refused.value)


def test_a_tree_that_would_end_its_quotation_is_refused():
    with pytest.raises(BadServerSettings):
        render(replace(SETTINGS, cluster=replace(CLUSTER, tree=TreeId('t"'))))


def test_a_new_store_is_marked_and_goes_on_under_its_mark(tmp_path):
    store = tmp_path / "jetstream"
    admit_store(tmp_path, store, MARK)
    assert kept_mark(tmp_path) == MARK
    (store / "jetstream").mkdir(parents=True)
    admit_store(tmp_path, store, MARK)


def test_the_store_of_a_server_alone_gets_no_mark(tmp_path):
    admit_store(tmp_path, tmp_path / "jetstream", None)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "wanted",
    [None, replace(MARK, tree="t2"), replace(MARK, node="/apac"), replace(MARK, member="m2")],
)
def test_a_store_of_another_kind_is_refused_with_both_named(tmp_path, wanted):
    admit_store(tmp_path, tmp_path / "jetstream", MARK)
    with pytest.raises(StoreOfAnotherKind) as refused:
        admit_store(tmp_path, tmp_path / "jetstream", wanted)
    assert str(tmp_path) in str(refused.value)
    assert "member m1 of the trio /emea of tree t1" in str(refused.value)
    assert kept_mark(tmp_path) == MARK


def test_a_member_is_not_started_on_the_store_of_a_server_alone(tmp_path):
    (tmp_path / "jetstream" / "jetstream").mkdir(parents=True)
    with pytest.raises(StoreOfAnotherKind, match="of a server alone"):
        admit_store(tmp_path, tmp_path / "jetstream", MARK)
    assert kept_mark(tmp_path) is None


@pytest.mark.parametrize("folder", ["SYS/_js_/_meta_", "RELAY/_js_/C-R3F-1"])
def test_a_server_alone_is_not_started_on_a_members_store_that_lost_its_mark(tmp_path, folder):
    """A person moved `jetstream` alone, or removed what lay beside it."""
    store = tmp_path / "jetstream"
    (store / "jetstream" / folder).mkdir(parents=True)
    with pytest.raises(StoreWithoutItsMark, match=r"of a member of a trio.*put it back"):
        admit_store(tmp_path, store, None)


def test_a_member_is_not_started_on_another_kind_of_store_under_its_own_mark(tmp_path):
    store = tmp_path / "jetstream"
    admit_store(tmp_path, store, MARK)
    (store / "jetstream" / "RELAY" / "streams" / "OWN").mkdir(parents=True)
    with pytest.raises(StoreWithoutItsMark, match=r"of a server alone.*move it aside"):
        admit_store(tmp_path, store, MARK)
    (store / "jetstream" / "SYS" / "_js_" / "_meta_").mkdir(parents=True)
    admit_store(tmp_path, store, MARK)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"tree": 1}', '{"tree": 1, "node": 2, "cluster": 3, "member": 4}']
)
def test_a_damaged_mark_is_no_mark_of_anything(tmp_path, text):
    (tmp_path / MARK_FILE).write_text(text)
    for wanted in (None, MARK):
        with pytest.raises(StoreMarkDamaged, match=MARK_FILE):
            admit_store(tmp_path, tmp_path / "jetstream", wanted)


def test_a_server_that_was_started_anew_has_ended():
    seen = ServersSeen()
    assert seen.look({"m1": "a", "m2": "b"}) == frozenset()
    assert seen.look({"m1": "a", "m2": "c"}) == {"m2"}
    assert seen.look({"m1": "a", "m2": "c"}) == frozenset()


def test_a_server_that_stays_silent_has_ended_and_one_late_answer_is_no_end():
    seen = ServersSeen()
    seen.look({"m1": "a", "m2": "b"})
    for _ in range(SILENT_LOOKS - 1):
        assert seen.look({"m1": "a"}) == frozenset()
    assert seen.look({"m1": "a", "m2": "b"}) == frozenset()
    ended = [seen.look({"m1": "a"}) for _ in range(SILENT_LOOKS + 1)]
    assert ended == [*[frozenset()] * (SILENT_LOOKS - 1), {"m2"}, frozenset()]
    assert seen.names == {"m1"}
    assert seen.look({"m1": "a", "m2": "d"}) == frozenset()


def test_who_cannot_ask_knows_of_no_end():
    seen = ServersSeen()
    seen.look({"m1": "a", "m2": "b"})
    assert [seen.look({}) for _ in range(9)] == [frozenset()] * 9
    assert seen.names == {"m1", "m2"}
