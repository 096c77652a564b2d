"""When a node's disk has what it acknowledged: how that is said, kept, refused and told."""

from collections import defaultdict

import pytest

from leafcast.ask.remote import checked_answer
from leafcast.cli.options.store import StoreOptions
from leafcast.daemon.verbs.diagnosis import node_facts
from leafcast.doctor.findings import DoctorFacts
from leafcast.doctor.power_checks import power_checks
from leafcast.node.credentials.kept_store import FILE, KeptStore, keep_store, kept_store
from leafcast.node.run_config import RunConfigRefused, read_run_config
from relay.adapters.server.durability import Durability
from relay.adapters.server.store_key import StoreKeyRefused
from schemas.values.identity import NodePath
from tests.unit.test_checks import GB, NOW, facts, node
from tests.unit.test_run_config import CENTRE, EDGE

DISK, PERIODIC = Durability.DISK, Durability.PERIODIC


def read(folder, text):
    file = folder / "node.yaml"
    file.write_text(text)
    return read_run_config(file)


def test_a_node_file_says_it_for_its_server(tmp_path):
    assert read(tmp_path, EDGE).server_place(tmp_path).durability is PERIODIC
    place = read(tmp_path, EDGE + "durability: disk\n").server_place(tmp_path)
    assert place.durability is DISK


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (EDGE + "durability: dsk\n", "durability: 'dsk' is no durability; did you mean \"disk\"?"),
        (EDGE + "durability: Disk\n", "'Disk' is no durability; did you mean \"disk\"?"),
        (EDGE + "durability: true\n", "True is no durability; write periodic or disk"),
        (EDGE + "durability: [disk]\n", "is no durability"),
        (CENTRE + "durability: periodic\n", "durability: 'periodic' is for nodes with a parent"),
    ],
)
def test_what_is_none_is_refused_with_field_value_and_remedy(tmp_path, text, said):
    with pytest.raises(RunConfigRefused) as refused:
        read(tmp_path, text)
    assert said in str(refused.value)


def test_what_was_said_counts_until_something_else_is(tmp_path):
    assert kept_store(tmp_path) == KeptStore()
    key = tmp_path / "key"
    for said, kept in (
        (StoreOptions(durability=DISK), KeptStore(None, DISK)),
        (StoreOptions(key_file=key), KeptStore(key, DISK)),
        (StoreOptions(durability=PERIODIC), KeptStore(key, PERIODIC)),
    ):
        keep_store(tmp_path, said.over(kept_store(tmp_path)))
        assert kept_store(tmp_path) == kept


def test_a_file_of_a_version_before_says_where_the_key_is(tmp_path):
    (tmp_path / FILE).write_text('{"key_file": "/etc/key"}\n')
    assert str(kept_store(tmp_path).key_file) == "/etc/key"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"durability": "dsk"}', "durability: 'dsk' is no durability; did you mean"),
        ("[]", "it is damaged"),
        ("{", "it is damaged"),
    ],
)
def test_a_file_that_says_something_else_is_named(tmp_path, text, why):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(StoreKeyRefused, match=why) as refused:
        kept_store(tmp_path)
    assert str(tmp_path / FILE) in str(refused.value)


def test_of_each_node_it_is_told_what_a_loss_of_power_costs():
    found = power_checks(
        facts(
            node("/a", sync_seconds=0, meant_durable=True),
            node("/b", sync_seconds=120),
            node("/c", sync_seconds=120, meant_durable=True),
            node("/d"),
        )
    )
    assert [(check.state, check.said) for check in found] == [
        ("ok", "a loss of power would cost nothing acknowledged at /a"),
        ("ok", "a loss of power would cost up to 2m at /b, had again from above"),
        ("warning", "a loss of power would cost /c up to 2m of what it acknowledged"),
    ]


def test_a_centre_that_does_not_sync_fails_whatever_it_says_of_itself():
    centre = node("/", role="centre", sync_seconds=120)
    (check,) = power_checks(DoctorFacts(NOW, "/data", 90 * GB, nodes=[centre]))
    assert check.state == "failure"
    assert "start it again" in check.remedy


def test_what_a_node_says_of_its_server_reaches_the_doctor():
    answer = {"children": {}, "serverVersion": "2.12.5", "syncSeconds": 120, "durable": 1}
    form = defaultdict(lambda: None, path="/a", role="relay", state="up")
    found = node_facts(form, checked_answer(NodePath(("a",)), answer), {})
    assert (found.server_version, found.sync_seconds, found.meant_durable) == ("2.12.5", 120, True)
