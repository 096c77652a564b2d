"""The verb `backup` of a daemon: what its centre holds, into a file beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leafcast.ask.api import Api, ApiError
from leafcast.centre.backup import BackupUnusable, write_backup
from leafcast.centre.centre import Centre
from leafcast.data_dir import DataDir
from relay.adapters.jetstream.request_reply import CannotConnect
from relay.adapters.jetstream.stream_backup import BackupFailed
from relay.ports import Clock


class Backups:
    """Writes backups of the tree whose data directory this is."""

    def __init__(self, centre: Centre, place: DataDir, clock: Clock) -> None:
        self._centre = centre
        self._place = place
        self._clock = clock

    async def backup(self, file: str) -> dict[str, Any]:
        """Write `file`, an absolute path: `{}`. Raises ApiError."""
        now_ms = self._clock.now().wall_ms
        try:
            await write_backup(Path(file), self._place, self._centre.streams(), now_ms)
        except BackupUnusable as error:
            message = f"{error.file}: {error.reason}"
            raise ApiError("BackupUnusable", message, error.remedy) from error
        except (BackupFailed, CannotConnect) as error:
            raise ApiError("BackupFailed", str(error), "try again") from error
        return {}


def register_backups(api: Api, centre: Centre, place: DataDir, clock: Clock) -> None:
    """Answer the verb `backup`."""
    api.register("backup", Backups(centre, place, clock).backup)
