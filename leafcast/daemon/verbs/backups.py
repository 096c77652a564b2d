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


def register_backups(api: Api, centre: Centre, place: DataDir, clock: Clock) -> None:
    """Answer the verb of the tree whose data directory this is."""

    async def backup(file: str) -> dict[str, Any]:
        """Write `file`, an absolute path: `{}`. Raises ApiError."""
        try:
            await write_backup(Path(file), place, centre.streams(), clock.now().wall_ms)
        except BackupUnusable as error:
            message = f"{error.file}: {error.reason}"
            raise ApiError("BackupUnusable", message, error.remedy) from error
        except (BackupFailed, CannotConnect) as error:
            raise ApiError("BackupFailed", str(error), "try again") from error
        return {}

    api.register("backup", backup)
