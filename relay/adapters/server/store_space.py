"""Room on the disk beside a server's store: without it, it can keep nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOM_BYTES_MIN = 4_000_000


def is_full(folder: Path) -> bool:
    """Whether so little room is left there that a server does not start."""
    return shutil.disk_usage(folder).free < ROOM_BYTES_MIN
