"""This machine, told from others."""

from __future__ import annotations

import platform
from pathlib import Path


def machine_id() -> str:
    """What tells this machine from others: its id, else its name."""
    try:
        return Path("/etc/machine-id").read_text(encoding="ascii").strip() or platform.node()
    except (OSError, ValueError):
        return platform.node()
