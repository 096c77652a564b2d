"""This machine, told from others."""

from __future__ import annotations

import platform
from pathlib import Path

from schemas.enrolment.enrolment import HOST_NAME_MAX


def machine_id() -> str:
    """What tells this machine from others: its id, else its name."""
    try:
        return Path("/etc/machine-id").read_text(encoding="ascii").strip() or platform.node()
    except (OSError, ValueError):
        return platform.node()


def boot_id() -> str:
    """What tells this start of the machine from any other; "" if the system does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""


def host_name() -> str:
    """What this machine calls itself, for people; "" if that cannot be shown."""
    said = platform.node()[:HOST_NAME_MAX]
    return said if said.isprintable() else ""
