"""Why a backup cannot be written, read or put back."""

from __future__ import annotations

import errno

from schemas.values.faults import Unusable

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
_NOT_WRITTEN = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})
NO_BACKUP = "name a file that `leafcast backup` wrote"
COPY_AGAIN = "copy it again, or name another backup"


class BackupUnusable(Unusable):
    """A backup that cannot be written or restored; says which file, why, and what to do."""


class BackupDamaged(BackupUnusable):
    """A backup some of which is lost or altered: no key and no place makes it good."""


def disk_remedy(error: OSError) -> str:
    """What helps where backups cannot be written, or read."""
    if error.errno in NO_ROOM:
        return "make room there, or name another folder"
    if error.errno in _NOT_WRITTEN:
        return "have the centre write there, or name another folder"
    return "see whether it is there and its disk is well, or name another folder"
