"""The verbs of a daemon about backups: one into a file beside it, and those on a timer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from leafcast.ask.api import ApiError, verb
from leafcast.backups.centre_files import is_same_disk
from leafcast.backups.folder_thread import FolderThread
from leafcast.backups.refusals import BackupUnusable, disk_remedy
from leafcast.backups.whole_file import write_backup
from leafcast.centre.centre import Centre
from leafcast.daemon.backup_timer import BackupTimer
from leafcast.data_dir import DataDir
from relay.adapters.jetstream.stream_reader import StreamDamaged
from relay.ports import BusBroken, Clock

MEND = "start the centre again, which makes it whole of what can be read; then see `doctor`"


class Backups:
    """What is answered; each raises ApiError."""

    def __init__(self, centre: Centre, place: DataDir, timer: BackupTimer, clock: Clock) -> None:
        self._centre, self._place, self._timer, self._clock = centre, place, timer, clock

    @verb("backup")
    async def backup(self, file: str) -> dict[str, Any]:
        """Write `file`, an absolute path: `{}`."""
        try:
            same_disk = await self._write(Path(file))
        except (BackupUnusable, BusBroken, OSError) as error:
            raise _refusal(error) from error
        self._timer.wrote_whole(same_disk=same_disk)
        return {}

    async def _write(self, file: Path) -> bool:
        """Write one; whether it lies on the centre's own disk."""
        place, server, clock = self._place, self._centre.streams(), self._clock

        def write() -> bool:
            asyncio.run(write_backup(file, place, server, clock))
            return is_same_disk(place.folder, file)

        # The disk may hang amid any of its writes, and the centre must not.
        return await FolderThread().run(write)

    @verb("backup-timer")
    async def change(
        self, every: int | None = None, keep: int | None = None, to: str = "", public: str = ""
    ) -> dict[str, Any]:
        """Change the timer, what is not said stays; `every` in seconds, 0 is off.

        The first backup by it, and the facts: `{written: {file, bytes, messages} | null, facts}`.
        """
        try:
            written = await self._timer.change(every, keep, to, bytes.fromhex(public))
        except (BackupUnusable, BusBroken, OSError) as error:
            raise _refusal(error) from error
        said = written and {
            "file": written.file,
            "bytes": written.bytes,
            "messages": written.messages,
        }
        return {"written": said, "facts": await self._timer.facts()}

    @verb("backups")
    async def facts(self) -> dict[str, Any]:
        """How the timer is set, and how the last backups went."""
        return await self._timer.facts()


def _refusal(error: BackupUnusable | BusBroken | OSError) -> ApiError:
    if isinstance(error, BackupUnusable):
        return ApiError("BackupUnusable", f"{error.what}: {error.reason}", error.remedy)
    if isinstance(error, OSError):
        where = error.filename or "the folder of backups"
        message = f"{where}: {error.strerror or error}"
        return ApiError("BackupUnusable", message, disk_remedy(error))
    remedy = MEND if isinstance(error, StreamDamaged) else "try again"
    return ApiError("BackupFailed", str(error), remedy)
