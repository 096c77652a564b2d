"""Runs of a member that are surely over, since it works on the same data directory after them.

Who runs a member holds the lock of its data directory, which the kernel frees once that process is
dead. That is so while the lock is the very one: the same file, since the same start of the machine.
A copy of the directory has another, and what it says of runs counts for nothing there.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from leafcast.data_dir import LOCK_FILE
from leafcast.machine import boot_id
from relay.atomic_file import atomic_write
from schemas.values.codec import from_json

FILE = "runs.json"
RUNS_MAX = 8


class FormerRuns:
    """The runs on a data directory, which must be locked; each is noted before it may hold."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
        self._lock = _lock(folder)
        self._over = tuple(self._kept())

    def begin(self, run: str) -> tuple[str, ...]:
        """Note a run that begins, and say which are over: none of those is under way any more.

        What cannot be noted is waited for like the run of any other member.
        """
        over, self._over = self._over, (*self._over, run)[-RUNS_MAX:]
        if self._lock:
            with suppress(OSError):
                form = {"lock": self._lock, "runs": self._over}
                atomic_write(self._file, json.dumps(form) + "\n")
        return over

    def forget(self) -> None:
        """Say of no run before now that it is over.

        Another one held after them: the memory of the lease may have been put back to their hold.
        """
        self._over = ()

    def _kept(self) -> list[str]:
        """What the file says, if the lock is the one that it was written under."""
        try:
            form = from_json(self._file.read_bytes())
            if self._lock and form["lock"] == self._lock:
                return [str(run) for run in form["runs"]][-RUNS_MAX:]
        except (OSError, ValueError, KeyError, TypeError):
            # Then the lease is waited for, as after any other member's.
            return []
        return []


def _lock(folder: Path) -> str:
    """What tells this lock from any other; "" if nothing does."""
    try:
        found = (folder / LOCK_FILE).stat()
    except FileNotFoundError:
        return ""
    boot = boot_id()
    return f"{boot} {found.st_dev} {found.st_ino}" if boot else ""
