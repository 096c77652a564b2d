"""Fields of the wire are added at the end, and the last release passes over those of today."""

import json
import subprocess
import sys

import pytest

from schemas.records import snapshots
from schemas.values.wire import encode
from tests.unit.test_wire_golden import NODES, UNSIGNED

ADDED = {"ReleaseWave": ["relays_from"]}
"""What the last release does not know: a newer centre must not rely on it while a node is of that.

Where the wire has edges go first, a relay of the last release waits for its edges, and not for the
relays below it. Nobody is heard less for that: `tests/unit/test_centre_turn.py` shows why.
"""
FIELDS = """
import importlib, json, pkgutil
import msgspec
import schemas

def kinds(base):
    for kind in base.__subclasses__():
        yield kind
        yield from kinds(kind)

for module in pkgutil.walk_packages(schemas.__path__, "schemas."):
    importlib.import_module(module.name)
print(json.dumps({
    kind.__name__: kind.__struct_fields__
    for kind in kinds(msgspec.Struct)
    if kind.__module__.startswith("schemas.") and kind.__struct_config__.array_like
}))
"""
READS = """
import json, sys
from schemas.records import asks, roots, snapshots
from schemas.reports import link, reports
from schemas.values.wire import encode

for name, data in json.loads(sys.stdin.read()):
    data = bytes.fromhex(data)
    rooms = (asks, roots, link, reports)
    if name == "SnapshotRecord":
        print(encode(snapshots.read_snapshot(data)).hex())
    else:
        kind = next(vars(room)[name] for room in rooms if name in vars(room))
        print(encode(reports.decode(kind, data)).hex())
"""


def _said(program: str, environment: dict[str, str], told: str = "") -> str:
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, env=environment, input=told, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_fields_are_added_at_the_end_and_those_that_are_new_are_named(releases):
    last, present = (json.loads(_said(FIELDS, releases[which])) for which in (True, False))
    # A field has its place on the wire; here it may have another name by now.
    known = {kind: len(fields) for kind, fields in last.items() if kind in present}
    assert all(count <= len(present[kind]) for kind, count in known.items())
    added = {kind: present[kind][count:] for kind, count in known.items()}
    assert {kind: fields for kind, fields in added.items() if fields} == ADDED


@pytest.mark.slow
def test_the_last_release_reads_what_is_said_now_but_for_what_is_new(releases):
    told = [(type(it).__name__, it) for it in (*UNSIGNED.values(), NODES["snapshot payload"])]
    encoded = [
        (snapshots.encode if name == "SnapshotRecord" else encode)(record).hex()
        for name, record in told
    ]
    names = [name for name, _ in told]
    read = _said(READS, releases[True], json.dumps(list(zip(names, encoded, strict=True))))
    for (name, record), data in zip(told, read.split(), strict=True):
        values = [getattr(record, field) for field in record.__struct_fields__]
        known = values[: len(values) - len(ADDED.get(name, ()))]
        assert bytes.fromhex(data) == encode(known), name
