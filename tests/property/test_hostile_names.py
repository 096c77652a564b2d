"""A node's name cannot lead out of its subtree, wherever it is said: all places refuse it."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from leafcast.cli.main import cli
from leafcast.join.kept_grant import GrantUnreadable, _digest, read_grant
from relay.adapters.jetstream.records import reported
from relay.adapters.jetstream.stream_reader import Stored
from relay.adapters.server.nats_config import check_child, render
from schemas.api.parsing import parse_kind
from schemas.records.asks import GET
from schemas.records.moves import MOVED_ANNOTATION, former_paths
from schemas.records.records import API_ASK, AskRecord, Source, decode_payload
from schemas.values.codec import pack
from schemas.values.faults import InvalidObject
from schemas.values.refusals import BadIdentity, RecordRefused
from tests.property.test_hostile_bytes import GRANT, PATH
from tests.property.wire_records import array_of
from tests.unit.test_nats_config import SETTINGS
from tests.unit.test_wire_golden import HERE, RECORDS

NAMES = [
    "..",
    ".",
    "",
    "*",
    ">",
    "a.b",
    "a b",
    "A",
    "_mail",
    "a\n",
    "ä",
    "а",  # noqa: RUF001 - Cyrillic, to look like another's name
    "a" * 64,
    "-a",
    "a-",
    "\0",
    '"; }',
    "../../etc",
    "$JS",
    "\u202ea",
    "../..",
    "..\\..",
    "%2e%2e",
    " ",
    "a ",
    "\t",
    "a" * 300,
    "a\u2024b",  # These look like a dot.
    "a\u3002b",
    "a\uff0eb",
    "\u2026",
    "_INBOX",
    "$SYS",
    "$G",
    "RELAY",
    "_d",
    "*.*",
    "${name}",
]
ASK = AskRecord(Source(API_ASK, "t" * 26, "", "c" * 26), 1, "", "", GET, HERE, 9, {})
pytestmark = pytest.mark.parametrize("name", NAMES)


def test_a_sync_target_hangs_at_no_such_path(name):
    target = {
        "apiVersion": "edge.kubestellar.io/v2alpha1",
        "kind": "SyncTarget",
        "metadata": {"name": "t", "annotations": {"leafcast.io/path": f"/emea/{name}"}},
    }
    with pytest.raises(InvalidObject, match="leafcast"):
        parse_kind(target)


def test_no_signed_record_names_such_a_path(name):
    for kind, record in (*RECORDS.items(), ("ask", ASK)):
        fields = array_of(record)
        if str(HERE) in fields:
            fields[fields.index(str(HERE))] = f"/emea/{name}"
            with pytest.raises(RecordRefused):
                decode_payload(kind, pack(fields))


def test_no_grant_is_for_such_a_path_though_its_hash_is_right(name, tmp_path):
    for field, value in (("path", f"/emea/{name}"), ("former", [f"/emea/{name}"])):
        form = {**json.loads(GRANT.to_text()), field: value}
        form.pop("sha256")
        file = tmp_path / "bundle.json"
        file.write_text(json.dumps({**form, "sha256": _digest(form)}))
        with pytest.raises(GrantUnreadable, match="node path"):
            read_grant(file)


def test_no_command_adds_such_a_node(name):
    path = f"/emea/{name}"
    adding = ["add", path]
    for words in (adding, ["remove", path], ["move", path, "/apac"], ["move", "/x", path]):
        if words is adding and name == "*":
            # A token may be for whoever comes there.
            continue
        result = CliRunner().invoke(cli, ["node", *words])
        assert result.exit_code == 2
        assert "is not a node path" in result.output


def test_no_servers_configuration_has_such_a_child(name):
    nkey = next(iter(SETTINGS.children.values()))
    with pytest.raises(BadIdentity):
        check_child(SETTINGS, name, nkey)
    with pytest.raises(BadIdentity):
        render(replace(SETTINGS, children={name: nkey}))


def test_nobody_hung_at_such_a_path_before_and_nobody_reports_from_it(name):
    said = f"{PATH},/emea/{name}"
    assert former_paths({MOVED_ANNOTATION: said})[:1] == (PATH,)
    assert all(str(path) in said for path in former_paths({MOVED_ANNOTATION: said}))
    if "." not in name.strip("."):
        for tail in ("_node.self", "_stat.k"):
            heard = reported(Stored(f"lc.emea.{name}.{tail}", b"", {}, 1))
            assert name not in [event.child for event in heard]
