"""Room on the disk beside a server's store: without it, it can keep nothing."""

from __future__ import annotations

import os
from pathlib import Path

ROOM_BYTES_MIN = 4_000_000


def free_bytes(folder: Path) -> int:
    """What a program may still write there; shutil says it, too, and loads all compression."""
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize


def is_full(folder: Path) -> bool:
    """Whether so little room is left there that a server does not start."""
    return free_bytes(folder) < ROOM_BYTES_MIN
