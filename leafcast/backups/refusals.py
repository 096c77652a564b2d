"""Why a backup cannot be written, read or put back."""

from __future__ import annotations

from pathlib import Path

NO_BACKUP = "name a file that `leafcast backup` wrote"


class BackupUnusable(Exception):
    """A backup that cannot be written or restored; says which file, why, and what to do."""

    def __init__(self, file: Path, reason: str, remedy: str) -> None:
        super().__init__(f"{file}: {reason}; {remedy}")
        self.file = file
        self.reason = reason
        self.remedy = remedy
