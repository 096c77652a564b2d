"""Why a backup cannot be written, read or put back."""

from __future__ import annotations

from schemas.values.faults import Unusable

NO_BACKUP = "name a file that `leafcast backup` wrote"


class BackupUnusable(Unusable):
    """A backup that cannot be written or restored; says which file, why, and what to do."""


class BackupDamaged(BackupUnusable):
    """A backup some of which is lost or altered: no key and no place makes it good."""
