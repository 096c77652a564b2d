"""All targets, in groups: what comes over the wire, what nodes do with it, what lies on disk."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib import import_module

from tests.fuzz.target import Target

GROUPS = (
    "wire",
    "node",
    "rows",
    "stored",
    "files",
    "rolling",
    "spoken",
    "api_servers",
    "customizing",
    "fields",
    "enrolling",
    "members",
    "sealing",
    "certificates",
    "backups",
    "releasing",
)
PLANTED = "planted"
"""Defects that a campaign must find; only when asked for."""
FOLLOWED = ("schemas", "relay", "controllers", "leafcast", "tests.fuzz.planted")
"""Packages whose coverage guides the fuzzer."""
PASSED_OVER = (
    "schemas.crds.definitions",
    "relay.adapters.spaces.simulated_cluster",
    "leafcast.cli.commands",
)


def targets(groups: Collection[str] = GROUPS) -> Mapping[str, Target]:
    """By name; what is fuzzed is imported only now, so that it can be instrumented."""
    found: dict[str, Target] = {}
    for group in groups:
        made: Mapping[str, Target] = import_module(f"tests.fuzz.{group}").TARGETS
        assert not found.keys() & made.keys()
        found |= made
    return found
