"""Processes, as a test sees them that did not start them itself."""

import os
from pathlib import Path


def alive(pid: int) -> bool:
    """Running, and not merely waiting to be reaped by whoever adopted it."""
    try:
        os.kill(pid, 0)
        if not Path("/proc/self").exists():
            return True
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def stands_still(pid: int) -> bool:
    """Whether all threads of it are stopped by a signal: each is so a moment after that."""
    states = [
        (task / "stat").read_text().rpartition(")")[2].split()[0]
        for task in Path(f"/proc/{pid}/task").iterdir()
    ]
    return set(states) == {"T"}
