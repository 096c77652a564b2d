"""Whatever a file of ours or of a user holds, reading it gives a value or a typed refusal."""

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings

from controllers.issuing.keys import KeysUnusable, load_or_make_keys
from leafcast.data_dir import DataDir, DataDirUnusable
from leafcast.errors import said
from leafcast.node.credentials.files import CredentialsUnusable, load_credentials
from leafcast.node.known_children import KnownChildren
from leafcast.node.run_config import RunConfigRefused, read_run_config
from relay.adapters.clock import SystemDice
from relay.adapters.server.ports import PortsDamaged, kept_ports
from relay.core.reports.intake import ReportIntake
from schemas.values.identity import NodePath
from schemas.values.refusals import RecordRefused
from tests.property.examples import examples
from tests.property.test_hostile_bytes import PATH, from_below, odd_json, slots
from tests.property.test_wire_laws import any_bytes

FEW = settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
READERS = {
    "run.yaml": (lambda folder: read_run_config(folder / "run.yaml"), RunConfigRefused),
    "credentials.json": (lambda folder: load_credentials(folder, PATH), CredentialsUnusable),
    "keys.json": (lambda folder: load_or_make_keys(folder, SystemDice()), KeysUnusable),
    "tree.json": (lambda folder: DataDir(folder).tree(), DataDirUnusable),
    "admin.json": (lambda folder: DataDir(folder).admin(), DataDirUnusable),
    "children.json": (KnownChildren, ()),
    "ports.json": (kept_ports, PortsDamaged),
}

INTAKE = ReportIntake(NodePath(), lambda _child, _key: 2**62, lambda _key: None)


@pytest.mark.parametrize("name", READERS)
@given(data=odd_json | any_bytes)
@FEW
def test_any_file_is_read_or_is_refused(tmp_path, name, data):
    read, refusal = READERS[name]
    (tmp_path / name).write_bytes(data)
    with suppress(refusal):
        read(tmp_path)


@pytest.mark.parametrize("name", [name for name, (_, refusal) in READERS.items() if refusal])
def test_a_file_that_is_refused_is_named_and_is_no_defect(tmp_path, name):
    read, refusal = READERS[name]
    (tmp_path / name).write_text("half")
    with pytest.raises(refusal) as refused:
        read(tmp_path)
    (line,) = said(refused.value)
    assert name in line
    assert "defect" not in line


@given(slots, from_below)
@FEW
def test_any_report_slot_is_read_or_is_refused(slot, data):
    with suppress(RecordRefused):
        INTAKE.read("s1", slot, data)
