"""A command loads what it needs, and starts fast: most of its time is spent on imports."""

import subprocess
import sys

import pytest

HEAVY = ("aiohttp", "controllers", "jsonpath", "kubernetes", "pydantic")
SIGNING_AND_SCHEDULES = ("nacl", "zstandard", "zoneinfo", "schemas.records.windows")
ASKING = (
    "accept",
    "apply",
    "backup",
    "delete",
    "describe",
    "diff",
    "doctor",
    "down",
    "events",
    "get",
    "node",
    "orphans",
    "render",
    "restore",
    "status",
    "tree",
    "ui",
    "wait",
    "withdraw",
)
LOADED = """
import sys
from leafcast.cli.main import cli
for words in {commands}:
    cli.main([*words, "--help"], standalone_mode=False)
print("loaded:", *(name for name in {heavy} if sys.modules.get(name)))
"""


def loaded_by(*commands: tuple[str, ...], heavy: tuple[str, ...] = HEAVY) -> str:
    asked = LOADED.format(commands=commands, heavy=heavy)
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1]


def test_a_command_that_asks_a_running_tree_loads_no_model_and_no_client_of_api_servers():
    assert loaded_by(*((name,) for name in ASKING)) == "loaded:"


def test_a_command_that_changes_objects_loads_no_signing_no_compression_and_no_schedules():
    commands = (("delete",), ("label",), ("place",))
    assert loaded_by(*commands, heavy=HEAVY + SIGNING_AND_SCHEDULES) == "loaded:"


@pytest.mark.parametrize(
    ("command", "expected"),
    [("up", "loaded:"), ("join", "loaded: controllers"), ("crds", "loaded: pydantic")],
)
def test_a_command_that_runs_a_node_or_prints_kinds_loads_what_it_needs(command, expected):
    assert loaded_by((command,)) == expected


def test_an_edge_joins_without_what_makes_certificates_and_reads_backups():
    heavy = ("cryptography", "tarfile", "leafcast.backups", "leafcast.members.founding")
    assert loaded_by(("join",), heavy=heavy) == "loaded:"


@pytest.mark.parametrize("command", ["join", "run"])
def test_an_edge_loads_nothing_of_a_centre_and_nothing_for_many_destinations(command):
    heavy = ("cryptography", "leafcast.centre", "controllers.issuing.issuer", "pyroaring")
    rare = ("statistics", "cronsim", "aiohttp", "kubernetes")
    assert loaded_by((command,), heavy=heavy + rare) == "loaded:"


def test_an_edge_joins_without_what_its_command_alone_and_libraries_would_load():
    libraries = ("importlib.metadata", "typing_extensions", "shutil", "zipfile", "tempfile")
    words = ("difflib", "unicodedata", "rich", "yaml", "leafcast.show.tree_tables")
    others = ("leafcast.ask.session", "leafcast.local.views", "leafcast.service.unit")
    # Not by --help: click then measures the terminal, with shutil.
    loads = "import sys, leafcast.cli.main, leafcast.cli.commands.join; print(*sys.modules)"
    command = [sys.executable, "-c", loads]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not {*libraries, *words, *others} & {*done.stdout.split()}
