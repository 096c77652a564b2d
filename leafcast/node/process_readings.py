"""The figures of a process: what runs there, and whether it does its work."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping

from leafcast.metrics import catalogue as m
from leafcast.metrics.reading import MetricReading
from leafcast.node.member_forms import NONE
from relay.adapters.installed import installed_version
from relay.adapters.jetstream.member_presence import ACTIVE, STANDBY

ROLES = (ACTIVE, STANDBY, NONE)


def process_readings(checks: Mapping[str, str], role: str) -> Iterator[MetricReading]:
    """From what /readyz says: each check with "" or why it does not hold, and the role."""
    yield m.BUILD.of(1, installed_version("leafcast"), platform.python_version())
    yield from m.CHECK.states({name: not why for name, why in checks.items()})
    yield from m.MEMBER_ROLE.states({each: each == role for each in ROLES})
